"""svcq: a job queue that a computer runs as a service.

    import svcq

    @svcq.task(queue="mail", max_attempts=5, timeout=60)
    def send(to: str, subject: str) -> None: ...

    send.enqueue("a@example.org", subject="hi")

    client = svcq.Client()
    client.command(["ffmpeg", "-i", "a.mov", "a.mp4"], queue="video", notify=True)

Names are imported when they are first used: a command line that prints one line should not pay
for a scheduler.
"""

from __future__ import annotations

from svcq.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from svcq.client import (
        Client as Client,
    )
    from svcq.client import (
        configure as configure,
    )
    from svcq.client import (
        default_client as default_client,
    )
    from svcq.config import Config as Config
    from svcq.errors import (
        InvalidArguments as InvalidArguments,
    )
    from svcq.errors import (
        InvalidInput as InvalidInput,
    )
    from svcq.errors import (
        NameTaken as NameTaken,
    )
    from svcq.errors import (
        NotFound as NotFound,
    )
    from svcq.errors import (
        NotHeld as NotHeld,
    )
    from svcq.errors import (
        NotPermitted as NotPermitted,
    )
    from svcq.errors import (
        Refused as Refused,
    )
    from svcq.errors import (
        StoreError as StoreError,
    )
    from svcq.errors import (
        SvcqError as SvcqError,
    )
    from svcq.errors import (
        UniqueTaken as UniqueTaken,
    )
    from svcq.errors import (
        WaitTimeout as WaitTimeout,
    )
    from svcq.errors import (
        WrongState as WrongState,
    )
    from svcq.jobs import Job as Job
    from svcq.jobs import State as State
    from svcq.library import Worker as Worker
    from svcq.policy import Options as Options
    from svcq.schedules import Firing as Firing
    from svcq.schedules import Schedule as Schedule
    from svcq.tasks import (
        Reject as Reject,
    )
    from svcq.tasks import (
        Retry as Retry,
    )
    from svcq.tasks import (
        Snooze as Snooze,
    )
    from svcq.tasks import (
        Task as Task,
    )
    from svcq.tasks import (
        current_job as current_job,
    )
    from svcq.tasks import (
        task as task,
    )

_HOMES = {
    "svcq.client": ("Client", "configure", "default_client"),
    "svcq.config": ("Config",),
    "svcq.errors": (
        "InvalidArguments", "InvalidInput", "NameTaken", "NotFound", "NotHeld", "NotPermitted",
        "Refused", "StoreError", "SvcqError", "UniqueTaken", "WaitTimeout", "WrongState",
    ),
    "svcq.jobs": ("Job", "State"),
    "svcq.library": ("Worker",),
    "svcq.policy": ("Options",),
    "svcq.schedules": ("Firing", "Schedule"),
    "svcq.tasks": ("Reject", "Retry", "Snooze", "Task", "current_job", "task"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]  # noqa: PLE0604 (they are strings, by construction)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'svcq' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
