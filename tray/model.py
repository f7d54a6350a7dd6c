"""The words of the tray: what is known, what is shown, what can be asked for. Knows no display."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from svcq.jobs import Job
from svcq.schedules import Schedule

MOST_UNSEEN = 1000
"""Failures that are counted; more are just more."""


class Snapshot(NamedTuple):
    """What the service said when it was last asked."""

    counts: Mapping[str, int]
    running: tuple[Job, ...] = ()
    recent: tuple[Job, ...] = ()
    queues: Mapping[str, bool] = {}
    """By name: whether it is paused."""
    rules: Mapping[str, str] = {}
    """By name: what its own options say is told of its jobs."""
    schedules: tuple[Schedule, ...] = ()
    role: str = "admin"
    account: str | None = None
    version: str = ""

    def may_steer(self, job: Job) -> bool:
        return self.role == "admin" or (self.role == "user" and job.owner == self.account)

    @property
    def paused(self) -> bool:
        return bool(self.queues) and all(self.queues.values())


class Situation(NamedTuple):
    """All that the icon, its tooltip and its menu show."""

    snapshot: Snapshot | None = None
    says: str = ""
    """Why there is no snapshot."""
    unseen: int = 0
    """Failures since someone last looked."""
    troubles: tuple[str, ...] = ()
    """What else is wrong, such as that nobody shows notifications."""
    service: Literal["own", "machine", "other"] = "own"
    """Whose service it is, which decides who may start and stop it."""


Kind = Literal["idle", "running", "paused", "down"]


class Icon(NamedTuple):
    """What is drawn; equal ones look alike."""

    kind: Kind
    failed: bool = False
    number: int = 0
    progress: float | None = None


class Action(NamedTuple):
    """What a click asks for."""

    verb: str
    what: Any = None


class Item(NamedTuple):
    """A line of the menu. By its key it stays the same one while its words change."""

    key: str
    text: str = ""
    action: Action | None = None
    enabled: bool = True
    children: tuple[Item, ...] = ()


SEPARATOR = "-"


class Look(NamedTuple):
    icon: Icon
    tooltip: tuple[str, ...]
    menu: tuple[Item, ...]


class Note(NamedTuple):
    """A notification. One with the same key takes the place of the one before."""

    key: str
    title: str
    body: str
    click: Action
    buttons: tuple[tuple[str, Action], ...] = ()
    icon: Icon = Icon("idle")
