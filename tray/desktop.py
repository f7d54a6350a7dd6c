"""The desktop at hand; chosen here, once, and nowhere else in the tray."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from .windows_desktop import Desktop, examine, in_session, need_display
    from .windows_session import Session
else:
    from .linux_desktop import Desktop, examine, in_session, need_display
    from .linux_session import Session

__all__ = ["Desktop", "Session", "examine", "in_session", "need_display"]
