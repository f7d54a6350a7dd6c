"""What the end of a job sets free: its keys, its name, the jobs that come after it.

Most jobs have no ties, and then none of this is read or written. `ties` in a job's row says which
of these it has, as bits.
"""

from __future__ import annotations

from svcq.jobs import FINISHED, State, waiting_state
from svcq.store.engine import Transaction
from svcq.store.ledger import Ledger
from svcq.store.place import place, read_standing
from svcq.tuples import NamedTuple

UNIQUE = 1
NAMED = 2
PARENT = 4
KEYED = 8


def end_waiting(tx: Transaction, ledger: Ledger, job: int, state: State, reason: str) -> None:
    """End a job that no worker holds, and with it what depends on it."""
    _end_all(tx, ledger, [_End(job, state, reason)])


def settle_ties(
    tx: Transaction, ledger: Ledger, job: int, ties: int, state: State, *, ran: bool = False
) -> None:
    """A job with ties stopped running (`ran`), ended, or both."""
    _end_all(tx, ledger, _let_go(tx, ledger, job, ties, state, ran=ran))


class _End(NamedTuple):
    job: int
    state: State
    reason: str


def _end_all(tx: Transaction, ledger: Ledger, ends: list[_End]) -> None:
    """A list and no recursion: a chain of jobs may be longer than Python's stack is deep."""
    ahead = ends[::-1]
    while ahead:
        job, state, reason = ahead.pop()
        standing = read_standing(tx, job)
        if standing.state in FINISHED:
            continue  # it came after two of those that ended
        place(tx, ledger, standing, state, reason=reason)
        ahead += reversed(_let_go(tx, ledger, job, standing.ties, state))


def _let_go(
    tx: Transaction, ledger: Ledger, job: int, ties: int, state: State, *, ran: bool = False
) -> list[_End]:
    """Free what a job held; return which jobs end because of it."""
    row = tx.row("ties_of", id=job) if ties & (UNIQUE | NAMED | KEYED) else None
    if row is not None:
        queue, name, unique_key, key, lane = row
        if ties & KEYED:
            if ran:
                tx.run("use_key", key=key, n=-1)
            if state in FINISHED:
                tx.run("count_live", lane=lane, n=-1)
            ledger.touched(key)
        if state in FINISHED and ties & UNIQUE:
            tx.run("free_unique", scope=queue, key=unique_key, job=job, now=tx.now)
        if state in FINISHED and ties & NAMED:
            tx.run("free_unique", scope="", key=name, job=job, now=tx.now)
    return _tell_children(tx, ledger, job, state) if state in FINISHED and ties & PARENT else []


def parent_reason(parent: int, state: State) -> str:
    return f"job {parent}, which it comes after, is {state}"


def _tell_children(tx: Transaction, ledger: Ledger, parent: int, state: State) -> list[_End]:
    """Let go of the jobs that waited for this one; return those that end with it."""
    orphans = []
    for child, needs, _, child_state, _, orphaned in tx.rows("children", parent=parent):
        if state is State.COMPLETED or needs == "end":
            tx.run("set_met", parent=parent, child=child, met=1)
            tx.run("count_unmet", id=child)
            if child_state == State.BLOCKED:
                _unblock(tx, ledger, child)
        elif child_state in (State.BLOCKED, State.HELD) and orphaned != "wait":
            orphans.append(_End(child, State.CANCELLED, parent_reason(parent, state)))
    return orphans


def _unblock(tx: Transaction, ledger: Ledger, child: int) -> None:
    standing = read_standing(tx, child)
    if not standing.waits_on:
        goal = waiting_state(held=False, waits_on=0, run_at=standing.run_at, now=tx.now)
        place(tx, ledger, standing, goal)
