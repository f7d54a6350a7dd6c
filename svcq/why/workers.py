"""What the workers have to do with it: whether any could take a job, and has room."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from svcq.store import Facts, Worker
from svcq.why.words import Cause, counted

_START_ONE = "start one: svcq worker start"


def no_worker(facts: Facts, lives: Callable[[Worker], bool]) -> Cause | None:
    """Whether there is no worker at all that could take it."""
    living = [worker for worker in facts.workers if lives(worker)]
    host = facts.job.host
    if host is not None:
        living = [worker for worker in living if worker.host == host]
    where = "" if host is None else f" on {host}, where alone it may run"
    remedy = _START_ONE if host is None else f"{_START_ONE} there"
    if not living:
        died = len(facts.workers) if host is None else 0
        lost = "" if not died else f" ({counted(died, 'worker')} died)"
        return Cause("no_worker", f"no worker is alive{where}{lost}; {remedy}.")
    if all(worker.state == "draining" for worker in living):
        return Cause("draining", f"every worker{where} is ending and takes nothing new; {remedy}.")
    return None


def working(facts: Facts, lives: Callable[[Worker], bool]) -> list[Worker]:
    """The workers that take new jobs where it may run."""
    host = facts.job.host
    living = [one for one in facts.workers if lives(one) and one.state == "running"]
    return [one for one in living if host in (None, one.host)]


def slots_of(workers: Sequence[Worker]) -> tuple[int, int]:
    """How many they have, and how many of these are in use."""
    return sum(one.slots for one in workers), sum(one.running for one in workers)


def all_busy(workers: Sequence[Worker]) -> Cause | None:
    slots, used = slots_of(workers)
    if used < slots:
        return None
    which = f"all {slots:,} slots" if slots > 1 else "the only slot"
    verb = "is" if slots == 1 else "are"
    return Cause("busy", f"{which} of {counted(len(workers), 'worker')} {verb} in use.")
