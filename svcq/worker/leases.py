"""Workers of other machines that are not heard of any more, and frozen ones of this machine.

Nobody's word and nobody's clock counts but what was seen here: a worker is lost when its number has
stayed the same for the whole of `lease`, on the clock of this machine that goes on while it sleeps,
and all the while we could see the store.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable

from svcq.errors import SvcqError
from svcq.host import clocks, processes
from svcq.jobs import lost
from svcq.store import Store, Worker
from svcq.times import format_duration
from svcq.worker.heartbeat import CUT_OFF
from svcq.worker.places import MAY_BE_KILLED, Places
from svcq.worker.rescue import Rescued, is_ours, rescue_dead

# Shares of the lease: between two looks, and after how long without one nothing counts any more.
LOOK = 1 / 12
_BLIND = 1 / 4


class Silences:
    """For how long each number has stayed the same before our eyes."""

    def __init__(self, lease: float, clock: Callable[[], float] = clocks.since_boot) -> None:
        self._lease = lease
        self._clock = clock
        self._looked = clock()
        self._since: dict[int, tuple[int, float]] = {}

    def look(self, numbers: Iterable[tuple[int, int]]) -> dict[int, float]:
        """The workers and their numbers as they are now; for how long each has been silent."""
        now = self._clock()
        if now - self._looked > _BLIND * self._lease:
            self._since = {}  # we slept, or could not see the store
        self._looked = now
        seen = {}
        for worker, number in numbers:
            before, since = self._since.get(worker, (None, now))
            seen[worker] = (number, since if before == number else now)
        self._since = seen
        return {worker: now - since for worker, (_, since) in seen.items()}

    def forget(self) -> None:
        """The store could not be seen."""
        self._since = {}


class Neighbours:
    """The dead: those of this machine by their locks, others by their silence. `me` is spared."""

    def __init__(
        self, store: Store, places: Places, say: Callable[[str], None], me: int | None = None
    ) -> None:
        self._store = store
        self._places = places
        self._say = say
        self._me = me
        self._lease = store.config.workers.lease / 1000
        self._silences = Silences(self._lease)
        self._next = 0.0
        self._signs: frozenset[str] = frozenset()

    def look(self) -> list[Rescued]:
        """Take back what the dead held. To ask a store of many machines is left to when there is a
        reason to, or it is time."""
        store = self._store
        if not store.engine.shared:
            return rescue_dead(store, self._places, self._say, me=self._me)
        signs = frozenset(self._places.dead_locks())
        if clocks.awake() < self._next and signs <= self._signs:
            return []
        try:
            workers = store.workers()
            rescued = rescue_dead(store, self._places, self._say, me=self._me, workers=workers)
            gone = {one.worker.id for one in rescued}
            rescued += self._rescue_silent([one for one in workers if one.id not in gone])
        except (SvcqError, OSError):
            self._silences.forget()
            raise
        self._signs = signs
        self._next = clocks.awake() + LOOK * self._lease
        return rescued

    def _rescue_silent(self, workers: Iterable[Worker]) -> list[Rescued]:
        store = self._store
        known = {one.id: one for one in workers if one.lease_until is None and one.id != self._me}
        numbers = {one.id: one.beat for one in known.values()}
        silences = self._silences.look([*numbers.items(), *store.stranded()])
        rescued = []
        for number, silence in silences.items():
            worker = known.get(number)
            if worker is not None and self._may_be_killed(worker):
                if silence > CUT_OFF * self._lease_of(worker):
                    self._end_frozen(worker, silence)
            elif silence > self._lease_of(worker):
                rescued += self._take(number, worker, numbers.get(number))
        return rescued

    def _lease_of(self, worker: Worker | None) -> float:
        """As it says itself: the settings of two machines may differ."""
        said = None if worker is None else worker.silence_ms
        return self._lease if said is None else said / 1000

    def _may_be_killed(self, worker: Worker) -> bool:
        """Ours, and no program of someone else's that has a worker inside."""
        if not is_ours(self._store, self._places, worker):
            return False
        try:
            lock = self._places.worker_lock(worker.pid, worker.born or "")
            return lock.read_text() in MAY_BE_KILLED
        except FileNotFoundError:
            return False  # it has just left

    def _end_frozen(self, worker: Worker, silence: float) -> None:
        """It would not end its jobs in time. Its lock is free when it is dead, and then it is
        rescued as others are."""
        seen = processes.look_at(worker.pid)
        if seen is not None and seen.born == (worker.born or "").partition("-")[0]:
            self._say(
                f"Worker {worker.id} (pid {worker.pid}) was killed: it stood still for "
                f"{silence:.0f} s, and others would run its jobs beside it."
            )
            processes.signal_tree([seen], signal.SIGKILL)

    def _take(self, number: int, worker: Worker | None, beat: int | None) -> list[Rescued]:
        lease = format_duration(round(self._lease_of(worker) * 1000))
        where = "" if worker is None else f" on {worker.host}"
        outcome = lost(f"worker {number}{where} was not heard of for {lease}")
        jobs = self._store.rescue_silent(number, -1 if beat is None else beat, outcome)
        if jobs is None or worker is None:
            return []
        return [Rescued(worker, jobs)]
