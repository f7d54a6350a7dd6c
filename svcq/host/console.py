"""Terminals and pipes that a command line prints to, on the system at hand."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_console import prepare, shows_colours
else:
    from svcq.host.linux_console import prepare, shows_colours

__all__ = ["prepare", "shows_colours"]
