"""Being a worker of a store: registered, alive by a lock, awake by a bell."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Collection, Container, Sequence
from contextlib import ExitStack, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from svcq.errors import SvcqError
from svcq.host import clocks, processes
from svcq.host.bell import Bell
from svcq.store import Claimer, Store, WorkerInfo
from svcq.version import __version__
from svcq.worker.heartbeat import Heartbeat
from svcq.worker.nursery import Nursery
from svcq.worker.places import BY_ITSELF, KEPT, Places

_numbers = itertools.count(1)


class Membership:
    """`alone`: it is a program of its own, and may divide the cgroup it was given, if any."""

    def __init__(
        self,
        store: Store,
        places: Places,
        slots: int,
        say: Callable[[str], None] = print,
        *,
        kept: bool = False,
        alone: bool = False,
    ) -> None:
        places.prepare()
        self._store = store
        self._host = socket.gethostname()
        pid = os.getpid()
        # A process may hold several workers; each has a lock of its own, held before it is known.
        born = f"{processes.process_born(pid)}-{next(_numbers)}"
        self._lock_path = places.worker_lock(pid, born)
        self.lock = processes.hold_lock(self._lock_path)
        if (alone or kept) and self.lock is not None:
            os.write(self.lock, (KEPT if kept else BY_ITSELF).encode())
        self.seats = places.seats(pid, born)
        self.awake_note = places.awake_note(pid, born)
        own = processes.Pens.given() if alone else None
        if own is not None:
            self.seats.note_pens(own)
        self.nursery = Nursery(own)
        since = clocks.since_boot()
        self.id = store.register(
            WorkerInfo(self._host, pid, processes.boot_id(), born, slots, __version__)
        )
        bells = Path(store.bells)
        bells.mkdir(mode=0o700, exist_ok=True)
        self.bell = Bell(bells, str(self.id))
        self._hearing = ExitStack()
        self._hearing.enter_context(store.engine.hear(self.bell))
        self.heartbeat: Heartbeat | None = None
        if store.engine.shared:
            on_cut = store.config.workers.on_cut
            self.heartbeat = Heartbeat(store, self.id, since, on_cut=on_cut, say=say)

    @property
    def cut_off(self) -> bool:
        """Whether nothing may be started: others may be about to take what this worker holds."""
        return self.heartbeat is not None and self.heartbeat.cut_off

    def claimer(
        self, queues: Sequence[str], kinds: Collection[str], holding: Container[str] = ()
    ) -> Claimer:
        """Asks for jobs of these kinds, of the queues that one of these patterns fits."""

        def serves(queue: str) -> bool:
            return any(fnmatchcase(queue, pattern) for pattern in queues)

        return Claimer(self.id, self._host, None if "*" in queues else serves, kinds, holding)

    def leave(self, *, holds_jobs: bool = False) -> None:
        """End; what it holds against its will is left to be rescued by others."""
        self._hearing.close()
        self.bell.close()
        if self.heartbeat is not None:
            self.heartbeat.close()
        if holds_jobs:
            return
        with suppress(SvcqError):
            self._store.leave(self.id)
        self.nursery.close()
        self.seats.remove()
        if self.lock is not None:
            os.close(self.lock)
        self._lock_path.unlink(missing_ok=True)
