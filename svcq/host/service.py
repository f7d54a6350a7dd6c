"""The service manager of the system at hand. Apart from the package itself: few callers need it."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_service import (
        Standing,
        install,
        notify,
        restart,
        standing,
        start,
        start_worker,
        stop,
        uninstall,
        why_leaving,
    )
else:
    from svcq.host.linux_service import (
        Standing,
        install,
        notify,
        restart,
        standing,
        start,
        start_worker,
        stop,
        uninstall,
        why_leaving,
    )

__all__ = [
    "Standing",
    "install",
    "notify",
    "restart",
    "standing",
    "start",
    "start_worker",
    "stop",
    "uninstall",
    "why_leaving",
]
