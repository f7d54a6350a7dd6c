"""Keeps the configured number of workers at work: adopts those that are there, drains those of
another version or with older settings, replaces those that died.

The store and the lock files are its whole memory, so that a new service goes on where the last one
was cut off. Which workers are its own, and how it gets more of them, its crew knows.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from svcq.config import Config, Followed
from svcq.errors import SvcqError
from svcq.host import processes
from svcq.service.wishes import Wishes
from svcq.store import Store, Worker
from svcq.trouble import Trouble
from svcq.version import __version__
from svcq.worker import spool
from svcq.worker.leases import Neighbours
from svcq.worker.places import Places

_SOON = 30.0  # seconds within which a worker that was started is to be there
_LONGEST_BACKOFF = 60.0
_KEEPS_STORE = "They name another store: this one is kept until svcq is started anew."
_HEALTHY = 30.0  # seconds after which an end is no failed start


class Crew(Protocol):
    """The workers of one supervisor."""

    hindrance: str  # what keeps them from being as they should, if anything

    def has(self, worker: Worker) -> bool:
        """Whether a worker of this machine is one of them."""
        ...

    def size(self, config: Config) -> tuple[int, int]:
        """How many there are to be, and how many slots each is to have."""
        ...

    def start(self, config: Config) -> int | None:
        """Start one more; its pid, or None where that cannot be done now."""
        ...


class _Started(NamedTuple):
    """A worker that is still to come up; by `born` its pid is told from one that is used again."""

    since: float
    born: str | None


class Supervisor:
    def __init__(
        self,
        store: Store,
        config: Config,
        say: Callable[[str], None],
        crew: Crew,
        wishes: Wishes | None = None,
    ) -> None:
        self._store = store
        self._settings = Followed(config)
        self._places = Places(config.home)
        self._say = say
        self._crew = crew
        self._wishes = wishes or Wishes()
        self._starting: dict[int, _Started] = {}
        self._outdated: set[int] = set()  # pids of those that may have read older settings
        self._known: dict[int, float] = {}  # worker: first seen
        self._backoff = 0.0
        self._next_start = 0.0
        self._trouble = Trouble(say)
        self._neighbours = Neighbours(store, self._places, say)

    def tend(self) -> str:
        """Follow the settings, and see that all is as they say; how things are, in a line.

        What is wrong is such a line too, and said once: a store may be away for long.
        """
        try:
            before = self._settings.config
            if self._settings.changed() and (
                self._settings.moved or not self._settings.config.works_like(before)
            ):
                self._say("The settings have changed and were read again.")
                if self._settings.moved:
                    self._say(_KEEPS_STORE)
                self._renew()
            if self._wishes.take_anew():
                self._renew()
            how = self._look(self._settings.config)
            self._trouble.over()
        except (SvcqError, OSError) as error:
            how = str(error)
            self._trouble.met(error)
        return how

    def _look(self, config: Config) -> str:
        spool.deliver(self._places.spool, self._store)
        self._rescue()
        mine = self.mine()
        self._adopt(mine)
        count, slots = self._crew.size(config)
        rest = self._wishes.rest
        count = 0 if rest else count
        fresh = [one for one in mine if one.state == "running" and self._fits(one, slots)]
        for one in mine:
            if one.state == "running" and one not in fresh:
                old = one.pid in self._outdated
                why = "has older settings" if old else "is of another version or size"
                self._drain(one, f"{why}; it finishes what it holds")
        # What those hold that are on their way out still takes its share of the machine.
        held = sum(one.running for one in mine if one not in fresh) // slots
        missing = count - len(fresh) - len(self._starting)
        for one in sorted(fresh, key=lambda one: one.running)[: max(-missing, 0)]:
            why = "is to rest" if rest else "is one too many"
            self._drain(one, f"{why}; it finishes what it holds")
        if rest == "now":
            for one in mine:
                self._store.drain(one.id, now=True)
        for _ in range(missing - held):
            self._start(config)
        running = sum(one.running for one in mine)
        how = f"Workers: {len(fresh)}; jobs running: {running}"
        how = f"{how}; at rest until svcq is resumed" if rest else how
        return f"{how}; {self._crew.hindrance}" if self._crew.hindrance else how

    def _fits(self, worker: Worker, slots: int) -> bool:
        same = worker.version == __version__ and worker.slots == slots
        return same and worker.pid not in self._outdated

    def mine(self) -> list[Worker]:
        """Those of its crew that are known to the store."""
        here = socket.gethostname()
        return [one for one in self._store.workers() if one.host == here and self._crew.has(one)]

    def _renew(self) -> None:
        """Replace all: a worker reads the settings once, when it starts."""
        self._store.config = self._settings.config
        self._outdated |= {one.pid for one in self.mine()} | self._starting.keys()

    def _drain(self, worker: Worker, why: str) -> None:
        self._store.drain(worker.id)
        self._say(f"Worker {worker.id} (pid {worker.pid}) {why}.")

    def _rescue(self) -> None:
        here = socket.gethostname()
        for worker, jobs in self._neighbours.look():
            held = ", ".join(map(str, jobs)) or "no jobs"
            if worker.host != here:
                self._say(f"Worker {worker.id} on {worker.host} is silent; it held {held}.")
                continue
            self._say(f"Worker {worker.id} (pid {worker.pid}) died; it held {held}.")
            self._ended(self._known.pop(worker.id, 0.0))

    def _adopt(self, mine: list[Worker]) -> None:
        now = time.monotonic()
        for one in mine:
            if one.pid in self._starting:
                del self._starting[one.pid]
            elif one.id not in self._known:
                self._say(f"Worker {one.id} (pid {one.pid}, {one.version}) goes on with us.")
            self._known.setdefault(one.id, now)
        there = {one.id for one in mine}
        self._known = {one: since for one, since in self._known.items() if one in there}
        self._outdated &= {one.pid for one in mine} | self._starting.keys()
        for pid, started in list(self._starting.items()):
            gone = started.born is None or processes.process_born(pid) != started.born
            if gone or now - started.since > _SOON:
                del self._starting[pid]
                self._say(f"A worker (pid {pid}) did not come up: svcq log --workers tells more.")
                self._ended(started.since)

    def _ended(self, since: float) -> None:
        """The first replacement comes at once; what keeps dying is started ever more slowly."""
        lived = time.monotonic() - since
        self._next_start = time.monotonic() + self._backoff
        self._backoff = 0 if lived > _HEALTHY else min(2 * self._backoff + 1, _LONGEST_BACKOFF)
        if self._backoff >= _LONGEST_BACKOFF:
            self._say("Workers keep dying as soon as they start: svcq doctor may know why.")

    def _start(self, config: Config) -> None:
        if time.monotonic() < self._next_start:
            return
        pid = self._crew.start(config)
        if pid is None:
            self._ended(time.monotonic())
        else:
            self._starting[pid] = _Started(time.monotonic(), processes.process_born(pid))
