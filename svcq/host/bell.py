"""The doorbell of the system at hand."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_bell import Bell, listening, ring
else:
    from svcq.host.linux_bell import Bell, listening, ring

__all__ = ["Bell", "listening", "ring"]
