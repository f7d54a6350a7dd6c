"""Terminals for commands that want one, on the system at hand."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_terminal import Terminal
else:
    from svcq.host.linux_terminal import Terminal

__all__ = ["Terminal"]
