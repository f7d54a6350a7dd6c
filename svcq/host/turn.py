"""Letting others go first, on the system at hand."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_turn import Turn
else:
    from svcq.host.linux_turn import Turn

__all__ = ["Turn"]
