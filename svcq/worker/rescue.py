"""Taking back the jobs of workers that died on this machine. Any worker, or the service, may do it.

A worker lives as long as its lock file is locked, or, where its tasks have forked processes that
keep it locked, as long as its own process lives. Before its jobs go back, the processes they
started are dead: two scans in a row must find none.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from svcq.host import processes
from svcq.jobs import Outcome, interrupted, lost
from svcq.store import Store, Worker
from svcq.worker import spool
from svcq.worker.places import Note, Places, Seat, marker_of, runners_marker
from svcq.worker.trees import Tree


class Rescued(NamedTuple):
    worker: Worker
    jobs: list[int]


def rescue_dead(
    store: Store,
    places: Places,
    say: Callable[[str], None],
    *,
    me: int | None = None,
    killed: Collection[int] = (),
    workers: Iterable[Worker] | None = None,
) -> list[Rescued]:
    """Find the dead workers of this machine, or of those that are given, and take back what they
    held.

    `killed` are processes that were ended on purpose: their jobs count as interrupted.
    """
    boot = processes.boot_id()
    rescued = []
    for worker in store.workers() if workers is None else workers:
        if worker.id == me or worker.lease_until is not None:
            continue
        if not is_ours(store, places, worker):
            continue
        lock = places.worker_lock(worker.pid, worker.born or "")
        same = worker.boot == boot
        if _lives(store, worker, lock) if same else processes.lock_is_held(lock):
            continue
        # What it knew before it died counts for more than its death.
        spool.deliver(places.spool, store)
        if same and not _end_trees(store, places, worker, say):
            continue
        seats = places.seats(worker.pid, worker.born or "")
        seats.name_outputs(places.home)
        jobs = store.rescue(worker.id, _outcome(worker, boot, killed))
        seats.remove()
        lock.unlink(missing_ok=True)
        places.awake_note(worker.pid, worker.born or "").unlink(missing_ok=True)
        rescued.append(Rescued(worker, jobs))
    return rescued


def is_ours(store: Store, places: Places, worker: Worker) -> bool:
    """Whether we can tell if it lives. Where machines share a store, two may have one name, and one
    may have two homes: there a worker is ours when its lock is in our home."""
    if worker.host != socket.gethostname():
        return False
    lock = places.worker_lock(worker.pid, worker.born or "")
    return not store.engine.shared or lock.exists()


def _lives(store: Store, worker: Worker, lock: Path) -> bool:
    if not processes.lock_is_held(lock):
        return False
    born, _, _ = (worker.born or "").partition("-")
    if processes.process_born(worker.pid) == born:
        return True
    Tree(runners_marker(store.id(), worker.id), None, lock).kill(patience=1.0)
    # Held still, it is by someone we cannot see: a worker in a container that shares the home.
    return processes.lock_is_held(lock)


def _end_trees(store: Store, places: Places, worker: Worker, say: Callable[[str], None]) -> bool:
    """Whether every process of every job of the worker is gone."""
    store_id = store.id()
    seats = places.seats(worker.pid, worker.born or "")
    Tree(runners_marker(store_id, worker.id), None, None).kill()
    left = [one for pen in seats.pens() for one in Tree("-", None, None, pen).kill()]
    left += [one for seat in seats.used() for one in Tree("-", _leader(seat), seat.lock).kill()]
    for job, run in store.runs_of(worker.id):
        left += Tree(marker_of(store_id, job, run), None, None).kill()
    if left:
        pids = ", ".join(sorted({str(one.pid) for one in left}))
        say(f"The jobs of dead worker {worker.id} wait: processes {pids} cannot be killed.")
        return False
    for pen in seats.pens():
        pen.remove()
    return True


def _leader(seat: Seat) -> int | None:
    """The first process of a run, if it still is that process."""
    note = Note.read(seat.lock)
    if note is None or note.pid is None:
        return None
    return note.pid if processes.process_born(note.pid) == note.born else None


def _outcome(worker: Worker, boot: str, killed: Collection[int]) -> Outcome:
    if worker.boot != boot:
        return interrupted("the machine was restarted")
    if worker.pid in killed:
        return interrupted("its worker was stopped")
    return lost(f"worker {worker.id} (pid {worker.pid}) died")
