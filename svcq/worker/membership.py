"""Being a worker of a store: registered, alive by a lock, awake by a bell."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Collection, Container, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from svcq import host
from svcq.errors import SvcqError
from svcq.host import processes
from svcq.host.bell import Bell
from svcq.store import Claimer, Store, WorkerInfo
from svcq.version import __version__
from svcq.worker.nursery import Nursery
from svcq.worker.places import Places

_numbers = itertools.count(1)


class Membership:
    """`pens`: it runs commands, and may divide the cgroup it was given, if any."""

    def __init__(
        self, store: Store, places: Places, slots: int, *, kept: bool = False, pens: bool = False
    ) -> None:
        places.prepare()
        self._store = store
        self._host = socket.gethostname()
        pid = os.getpid()
        # A process may hold several workers; each has a lock of its own, held before it is known.
        born = f"{processes.process_born(pid)}-{next(_numbers)}"
        self._lock_path = places.worker_lock(pid, born)
        self.lock = processes.hold_lock(self._lock_path)
        if kept and self.lock is not None:
            os.write(self.lock, b"kept")  # by the service, which looks for this
        self.seats = places.seats(pid, born)
        self.awake_note = places.awake_note(pid, born)
        own = processes.Pens.given() if pens else None
        if own is not None:
            self.seats.note_pens(own)
        self.nursery = Nursery(own)
        self.id = store.register(
            WorkerInfo(self._host, pid, processes.boot_id(), born, slots, __version__)
        )
        bells = Path(store.bells)
        host.private_directory(bells)
        self.bell = Bell(bells, str(self.id))

    def claimer(
        self, queues: Sequence[str], kinds: Collection[str], holding: Container[str] = ()
    ) -> Claimer:
        """Asks for jobs of these kinds, of the queues that one of these patterns fits."""

        def serves(queue: str) -> bool:
            return any(fnmatchcase(queue, pattern) for pattern in queues)

        return Claimer(self.id, self._host, None if "*" in queues else serves, kinds, holding)

    def leave(self, *, holds_jobs: bool = False) -> None:
        """End; what it holds against its will is left to be rescued by others."""
        self.bell.close()
        if holds_jobs:
            return
        with suppress(SvcqError):
            self._store.leave(self.id)
        self.nursery.close()
        self.seats.remove()
        if self.lock is not None:
            os.close(self.lock)
        self._lock_path.unlink(missing_ok=True)
