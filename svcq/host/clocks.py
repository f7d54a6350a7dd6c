"""Clocks that nobody can set, of the system at hand: seconds since some moment, each its own."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_clocks import awake, since_boot
else:
    from svcq.host.linux_clocks import awake, since_boot

__all__ = ["awake", "since_boot"]
