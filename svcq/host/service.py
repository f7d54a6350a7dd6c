"""The service manager of the system at hand. Apart from the package itself: few callers need it."""

from __future__ import annotations

import sys

from svcq.host.standing import Standing, Trouble

if sys.platform == "win32":
    from svcq.host.windows_service import (
        Manager,
        acting_as_account,
        answer,
        become_account,
        manager,
        notify,
    )
else:
    from svcq.host.linux_account import acting as acting_as_account
    from svcq.host.linux_account import become as become_account
    from svcq.host.linux_service import Manager, notify
    from svcq.host.linux_workers import answer

    def manager(*, system: bool = False, linger: bool = True) -> Manager:
        """Of the whole machine, or of the user who asks; whose service may go on without them."""
        if system:
            from svcq.host.linux_system import SystemManager

            return SystemManager()
        from svcq.host.linux_user import UserManager

        return UserManager(linger=linger)


__all__ = [
    "Manager",
    "Standing",
    "Trouble",
    "acting_as_account",
    "answer",
    "become_account",
    "manager",
    "notify",
]
