"""Keeps the configured number of workers at work: adopts those that are there, drains those of
another version, replaces those that died.

The store and the lock files are its whole memory, so that a new service goes on where the last one
was cut off. A worker started for the service says so in its lock file; those that people start are
left alone.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable

from svcq.config import Config
from svcq.host import processes, service
from svcq.store import Store, Worker
from svcq.version import __version__
from svcq.worker import spool
from svcq.worker.places import Places
from svcq.worker.program import slots_of, start_detached, worker_command, worker_log
from svcq.worker.program import worker_environment as environment_of
from svcq.worker.rescue import rescue_dead

KEPT = ("--kept",)  # tells a worker that it is the service's
_SOON = 30.0  # seconds within which a worker that was started is to be there
_LONGEST_BACKOFF = 60.0
_HEALTHY = 30.0  # seconds after which an end is no failed start


class Supervisor:
    def __init__(self, store: Store, config: Config, say: Callable[[str], None]) -> None:
        self._store = store
        self._places = Places(config.home)
        self._say = say
        self._starting: dict[int, float] = {}
        self._numbers = itertools.count(1)
        self._known: dict[int, float] = {}  # worker: first seen
        self._backoff = 0.0
        self._next_start = 0.0

    def look(self, config: Config) -> str:
        """See that all is as it should be; how things are, in a line."""
        spool.deliver(self._places.spool, self._store)
        self._rescue()
        mine = self.mine()
        self._adopt(mine)
        slots = slots_of(config)
        fresh = [one for one in mine if one.state == "running" and _fits(one, slots)]
        for one in mine:
            if one.state == "running" and one not in fresh:
                self._drain(one, "is of another version or size; it finishes what it holds")
        # What those hold that are on their way out still takes its share of the machine.
        held = sum(one.running for one in mine if one not in fresh) // slots
        missing = config.workers.count - len(fresh) - len(self._starting)
        for one in sorted(fresh, key=lambda one: one.running)[: max(-missing, 0)]:
            self._drain(one, "is one too many; it finishes what it holds")
        for _ in range(missing - held):
            self._start(config)
        running = sum(one.running for one in mine)
        return f"Workers: {len(fresh)}; jobs running: {running}"

    def mine(self) -> list[Worker]:
        """The workers of the service on this machine, whichever service started them."""
        here = socket.gethostname()
        return [one for one in self._store.workers() if one.host == here and self._kept(one)]

    def _kept(self, worker: Worker) -> bool:
        try:
            lock = self._places.worker_lock(worker.pid, worker.born or "")
            return lock.read_text() == "kept"
        except OSError:
            return False

    def renew(self) -> None:
        """Replace all: a worker reads the settings once, when it starts."""
        for one in self.mine():
            if one.state == "running":
                self._drain(one, "has older settings; it finishes what it holds")

    def drain(self, *, now: bool = False) -> list[Worker]:
        """Let all of them end: when they are done, or now; those that still run something."""
        mine = self.mine()
        for one in mine:
            self._store.drain(one.id, now=now)
        return [one for one in mine if one.running]

    def _drain(self, worker: Worker, why: str) -> None:
        self._store.drain(worker.id)
        self._say(f"Worker {worker.id} (pid {worker.pid}) {why}.")

    def _rescue(self) -> None:
        for worker, jobs in rescue_dead(self._store, self._places, self._say):
            held = ", ".join(map(str, jobs)) or "no jobs"
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
        for pid, since in list(self._starting.items()):
            if processes.process_born(pid) is None or now - since > _SOON:
                del self._starting[pid]
                self._say(f"A worker (pid {pid}) did not come up: see logs/workers.log.")
                self._ended(since)

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
        env = environment_of(config)
        # Ours alone; a worker that talked to the manager in our name would confuse it.
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INVOCATION_ID"):
            env.pop(name, None)
        pid = service.start_worker(
            worker_command(KEPT), env, worker_log(config), next(self._numbers)
        )
        if pid is None:
            pid = start_detached(config, KEPT)
        self._starting[pid] = time.monotonic()


def _fits(worker: Worker, slots: int) -> bool:
    return worker.version == __version__ and worker.slots == slots
