"""Lines between a worker and its runners, on the system at hand."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_lines import Line
else:
    from svcq.host.linux_lines import Line

__all__ = ["Line"]
