"""A store on every engine, with a clock that the test sets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from svcq.config import Config, load
from svcq.jobs import Claim, Job, Outcome, State, completed
from svcq.policy import NewJob, Options, make_plan, said_fields
from svcq.store import Claimer, Report, Store, WorkerInfo, open_store

if TYPE_CHECKING:
    from tests.postgres import Server

ENGINES = ("sqlite",) if sys.platform == "win32" else ("sqlite", "postgres")


class Clock:
    """Milliseconds that pass only when told to."""

    def __init__(self, now: int = 1_800_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


class Desk:
    """A store with the few shorthands that most tests use."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.worker = store.register(WorkerInfo(host="here", pid=1, slots=10))

    def add(self, task: str = "work", args: str = "[[],{}]", **options: object) -> int:
        """Add a task (or, with `command`, a command) and return its id."""
        return self.store.enqueue([self.new(task, args, **options)])[0].id

    def new(self, task: str = "work", args: str = "[[],{}]", **options: object) -> NewJob:
        command = options.pop("command", None)
        plan = make_plan(Options(**options), default_queue="default")  # type: ignore[arg-type]
        if command is not None:
            return NewJob(plan, command=str(command))
        return NewJob(plan, task, args)

    def claim(self, n: int = 1, **claimer: object) -> list[Claim]:
        return self.store.claim(Claimer(self.worker, **claimer), n)  # type: ignore[arg-type]

    def claimed(self, n: int = 1, **claimer: object) -> list[int]:
        """The ids of the next jobs, claimed."""
        return [claim.id for claim in self.claim(n, **claimer)]

    def end(self, claim: Claim, outcome: Outcome | None = None) -> State | None:
        report = Report.of(claim, outcome or completed())
        return self.store.finish([report])[0]

    def run(self, outcome: Outcome | None = None) -> int:
        """Claim the next job, end it, and return its id."""
        (claim,) = self.claim()
        self.end(claim, outcome)
        return claim.id

    def edit(self, job: int, **options: object) -> State:
        """Change what the options name, as the client does."""
        given = Options(**options)  # type: ignore[arg-type]
        return self.store.edit(job, self.new(**options), said_fields(given))

    def state(self, job: int) -> State:
        return self.store.state(job)

    def get(self, job: int) -> Job:
        return self.store.get(job)

    def told(self) -> tuple[dict[str, int], int]:
        """What a refused call must leave as it was."""
        return self.store.counts(), self.store.last_change()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=ENGINES)
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Config]:
    """A home of its own, and a store of its own on each engine."""
    if request.param == "sqlite":
        yield load(tmp_path / "home", {})
        return
    server: Server = request.getfixturevalue("postgres")
    with server.lent() as address:
        yield load(tmp_path / "home", {"SVCQ_STORE": address})


@pytest.fixture
def open_again(config: Config, clock: Clock) -> Iterator[Callable[[], Store]]:
    """Opens the same store as often as it is called."""
    opened: list[Store] = []

    def open_it() -> Store:
        opened.append(open_store(config, clock=clock))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_again: Callable[[], Store]) -> Store:
    return open_again()


@pytest.fixture
def desk(store: Store, clock: Clock) -> Desk:
    return Desk(store, clock)
