"""Every setting there is: its name, its default, what it allows and what it is for.

The classes below are that table. An attribute has the name of its key in the file; durations are
words there and milliseconds here. `SETTINGS` lists all of them by their dotted names.

Every command of the command line reads this, so it does without dataclasses: they bring `inspect`,
which takes longer to import than all of svcq's configuration.
"""

from __future__ import annotations

from collections.abc import Mapping

from svcq.config.kinds import (
    Address,
    Choice,
    Duration,
    HostName,
    Hours,
    Kind,
    Name,
    Number,
    Place,
    QueueRules,
    StoreAddress,
    TomlValue,
    Whole,
)
from svcq.config.projects import Project
from svcq.config.targets import Target
from svcq.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Literal


class Setting(NamedTuple):
    key: str
    """Its dotted name, such as `jobs.max_attempts`."""
    default: TomlValue
    """As it would stand in the file."""
    kind: Kind
    about: str


_declared: list[Setting] = []


def _setting(key: str, default: TomlValue, kind: Kind, about: str) -> Any:
    """Note a setting; the value its attribute has where the file says nothing."""
    _declared.append(Setting(key, default, kind, about))
    return kind.read(default)


def _kept_for(key: str, default: str, about: str) -> Any:
    return _setting(key, default, Duration("0s", "36500d"), about)


class JobDefaults(NamedTuple):
    """What holds for a job when neither it, nor its task, nor its queue says otherwise."""

    max_attempts: int = _setting(
        "jobs.max_attempts", 3, Whole(1, 1000), "how often a job may run before it is dead"
    )
    backoff: Literal["exponential", "linear", "fixed"] = _setting(
        "jobs.backoff",
        "exponential",
        Choice(("exponential", "linear", "fixed")),
        "how the wait grows: base ** failures, base * failures, or always base",
    )
    backoff_base: float = _setting(
        "jobs.backoff_base", 2.0, Number(0, 86400), "the base of that wait, in seconds"
    )
    backoff_cap: int = _setting(
        "jobs.backoff_cap", "1h", Duration("0s", "365d"), "the longest wait for an attempt"
    )
    jitter: float = _setting(
        "jobs.jitter", 0.1, Number(0, 1), "by which part a wait is varied at random"
    )
    timeout: int | None = _setting(
        "jobs.timeout",
        "",
        Duration("1ms", "365d", none=""),
        "how long one run may take; empty for no limit",
    )
    grace: int = _setting(
        "jobs.grace", "10s", Duration("0s", "1h"), "from asking a job to end to killing it"
    )
    on_lost: Literal["retry", "dead"] = _setting(
        "jobs.on_lost",
        "retry",
        Choice(("retry", "dead")),
        "what becomes of a job whose worker died",
    )
    max_losses: int = _setting(
        "jobs.max_losses", 3, Whole(0, 1000), "how often a job may lose its worker"
    )
    max_interruptions: int = _setting(
        "jobs.max_interruptions", 100, Whole(0, 1_000_000), "how often a job may be interrupted"
    )
    keep_awake: Literal["mains", "always", "never"] = _setting(
        "jobs.keep_awake",
        "mains",
        Choice(("mains", "always", "never")),
        "whether the machine stays awake while a job runs: on mains power, always or never",
    )
    max_payload: int = _setting(
        "jobs.max_payload",
        1 << 20,
        Whole(1 << 10, 64 << 20),
        "the largest arguments or result, in bytes of JSON",
    )


class QueueDefaults(NamedTuple):
    """What holds for a queue that does not say otherwise."""

    aging: int | None = _setting(
        "queues.aging",
        "1h",
        Duration("1s", "365d", none="never"),
        "the wait that lifts a job by one level of priority; never makes priority strict",
    )


class Retention(NamedTuple):
    """How long the past is kept."""

    completed: int = _kept_for("retention.completed", "7d", "completed jobs")
    dead: int = _kept_for("retention.dead", "30d", "dead jobs")
    cancelled: int = _kept_for("retention.cancelled", "7d", "cancelled jobs")
    changes: int = _kept_for(
        "retention.changes", "1d", "the changes that pages and notifications follow"
    )
    activity: int = _kept_for("retention.activity", "30d", "the per-minute statistics")
    firings: int = _kept_for("retention.firings", "90d", "what became of the times of schedules")


class Workers(NamedTuple):
    """What `svcq up` and the service keep running."""

    count: int = _setting(  # type: ignore[assignment]  # a tuple has a count, which nobody asks for
        "workers.count", 1, Whole(0, 256), "how many workers there are"
    )
    slots: int = _setting(
        "workers.slots",
        0,
        Whole(0, 10_000),
        "how many jobs each runs at a time; 0 for as many as there are cores",
    )
    accept: Literal["tasks", "commands", "both"] = _setting(
        "workers.accept",
        "both",
        Choice(("tasks", "commands", "both")),
        "what they run: tasks, commands or both",
    )
    lease: int = _setting(
        "workers.lease",
        "1m",
        Duration("2s", "1h"),
        "on PostgreSQL: how long a worker may be silent before others take its jobs; "
        "the same on all machines",
    )
    on_cut: Literal["stop", "keep"] = _setting(
        "workers.on_cut",
        "stop",
        Choice(("stop", "keep")),
        "on PostgreSQL: whether a worker that cannot reach the store for two thirds of its lease "
        "stops its jobs, or keeps them and lets others run them a second time",
    )


class Clock(NamedTuple):
    """What fires schedules."""

    late: int = _setting(
        "clock.late",
        "1m",
        Duration("1s", "1h"),
        "how late a schedule may fire and its time does not count as missed",
    )
    catch_up: int = _setting(
        "clock.catch_up",
        100,
        Whole(1, 10_000),
        "how many missed times, the last ones, are made up for with missed = all",
    )


class Web(NamedTuple):
    """Where the service is asked: by the page, by programs, by other users."""

    port: int = _setting(
        "web.port", 0, Whole(0, 65535), "of the page and the API; 0 for the last one, or any"
    )
    socket: str = _setting(
        "web.socket",
        "",
        Place(),
        "the local socket for other users; the service of the whole machine has one by itself",
    )
    address: str = _setting(
        "web.address",
        "",
        Address(),
        "an address beyond this machine to listen on as well, which needs a certificate",
    )
    name: str = _setting("web.name", "", HostName(), "the name by which others reach that address")
    certificate: str = _setting(
        "web.certificate", "", Place(), "the file of its certificate, with those that lead to it"
    )
    key: str = _setting("web.key", "", Place(), "the file of the certificate's private key")


class Tray(NamedTuple):
    """The icon in the panel of a desktop, and what it tells."""

    notifications: Literal["on", "off"] = _setting(
        "tray.notifications", "on", Choice(("on", "off")), "whether the desktop is told of ends"
    )
    long_job: int | None = _setting(
        "tray.long_job",
        "1m",
        Duration("0s", "365d", none=""),
        "a success is told of when it took so long; empty for never. Failures always are",
    )
    quiet: tuple[int, int] | None = _setting(
        "tray.quiet",
        "",
        Hours(),
        "the hours in which nothing pops up, such as 22:00-07:00; it is told of afterwards",
    )
    rules: Mapping[str, str] = _setting(
        "tray.rules",
        "",
        QueueRules(),
        "what is told of some queues: all, failures or never, such as video=all, night=never",
    )
    start_service: Literal["yes", "no"] = _setting(
        "tray.start_service",
        "yes",
        Choice(("yes", "no")),
        "whether the tray starts your service when it finds none",
    )


class Config(NamedTuple):
    directory: str  # its home, as text
    store: str = _setting(
        "store",
        "svcq.db",
        StoreAddress(),
        "where jobs are kept: a file (in the home, unless its path is absolute) "
        "or a postgresql:// URL",
    )
    queue: str = _setting("queue", "default", Name(), "the queue of a job that names none")
    busy_wait: int = _setting(
        "busy_wait",
        "30s",
        Duration("0s", "1h"),
        "how long a write waits for another program's lock",
    )
    jobs: JobDefaults = JobDefaults()
    queues: QueueDefaults = QueueDefaults()
    retention: Retention = Retention()
    workers: Workers = Workers()
    clock: Clock = Clock()
    web: Web = Web()
    tray: Tray = Tray()
    targets: tuple[Target, ...] = ()
    projects: tuple[Project, ...] = ()

    @property
    def home(self) -> Path:
        from pathlib import Path

        return Path(self.directory)

    def works_like(self, other: Config) -> bool:
        """Whether they differ at most in what is told of, which is nothing to a worker."""
        return self == other._replace(tray=self.tray, targets=self.targets)

    @property
    def store_is_shared(self) -> bool:
        """Whether other machines may use it too."""
        return "://" in self.store

    def __repr__(self) -> str:
        """Without what may hold a password, which must not reach a log."""
        secret = ("store", "targets")
        shown = {name: value for name, value in self._asdict().items() if name not in secret}
        return f"Config({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


SECTIONS: Mapping[
    str, type[JobDefaults | QueueDefaults | Retention | Workers | Clock | Web | Tray]
] = {
    "jobs": JobDefaults,
    "queues": QueueDefaults,
    "retention": Retention,
    "workers": Workers,
    "clock": Clock,
    "web": Web,
    "tray": Tray,
}


# Those without a section first, as the file has them.
SETTINGS: Mapping[str, Setting] = {
    setting.key: setting for setting in sorted(_declared, key=lambda one: "." in one.key)
}
