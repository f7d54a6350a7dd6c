"""Sleep and power of the system at hand: keeping it awake, putting it to sleep or out."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_power import Inhibitor, shut_down, sleep
else:
    from svcq.host.linux_power import Inhibitor, shut_down, sleep

__all__ = ["Inhibitor", "shut_down", "sleep"]
