"""What starts with a user's session, at the system at hand."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from svcq.host.windows_autostart import (
        TRAY_IS_HERE,
        TRAY_NEEDS,
        add_to_session,
        is_in_session,
        remove_from_session,
    )
else:
    from svcq.host.linux_autostart import (
        TRAY_IS_HERE,
        TRAY_NEEDS,
        add_to_session,
        is_in_session,
        remove_from_session,
    )

__all__ = [
    "TRAY_IS_HERE",
    "TRAY_NEEDS",
    "add_to_session",
    "is_in_session",
    "remove_from_session",
]
