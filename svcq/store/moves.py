"""What people do with a job: cancel, hold, release, retry, move."""

from __future__ import annotations

import json

from svcq.errors import WrongState
from svcq.jobs import FINISHED, WAITING, State, waiting_state
from svcq.policy import NewJob, Plan
from svcq.store import ends
from svcq.store.engine import Transaction
from svcq.store.enqueue import add, take_name, take_unique_key
from svcq.store.lanes import find_or_make_lane
from svcq.store.ledger import Ledger
from svcq.store.place import Standing, place, read_standing


def cancel(tx: Transaction, ledger: Ledger, job: int, reason: str) -> State:
    """End a waiting job; ask for the end of a running one, which moves when it has stopped."""
    standing = read_standing(tx, job)
    if standing.state in FINISHED:
        raise WrongState(f"Job {job} is already {standing.state}: there is nothing to cancel.")
    if standing.state is State.PROCESSING:
        if tx.run("request_cancel", id=job):
            ledger.told(job, "cancel_requested")
        return State.PROCESSING
    ends.end_waiting(tx, ledger, job, State.CANCELLED, reason)
    return State.CANCELLED


def suspend(tx: Transaction, ledger: Ledger, job: int, *, paused: bool) -> None:
    """Let a running command stand still, or go on."""
    standing = read_standing(tx, job)
    if standing.state is not State.PROCESSING:
        raise WrongState(
            f"Job {job} is {standing.state}: only what runs can be paused"
            f"{'; hold it instead' if standing.state in WAITING else ''}."
        )
    if standing.task:
        raise WrongState(f"Job {job} is a task: only a command can be paused while it runs.")
    if tx.run("suspend", id=job, paused=int(paused)):
        ledger.told(job, "paused" if paused else "resumed")


def hold(tx: Transaction, ledger: Ledger, job: int) -> State:
    standing = read_standing(tx, job)
    if standing.state is State.HELD or standing.state not in WAITING:
        raise WrongState(
            f"Job {job} is {standing.state}: only a job that waits can be held"
            f"{', so cancel it instead' if standing.state is State.PROCESSING else ''}."
        )
    place(tx, ledger, standing, State.HELD)
    return State.HELD


def release(tx: Transaction, ledger: Ledger, job: int) -> State:
    standing = read_standing(tx, job)
    if standing.state is not State.HELD:
        raise WrongState(f"Job {job} is {standing.state}, not held: there is nothing to release.")
    return _place_again(tx, ledger, standing)


def retry(tx: Transaction, ledger: Ledger, job: int) -> State:
    """Run a finished job once more, under the same id; or let one that is retrying go now."""
    standing = read_standing(tx, job)
    if standing.state is State.RETRYING:
        return _place_again(tx, ledger, standing._replace(run_at=None))
    if standing.state not in FINISHED:
        raise WrongState(
            f"Job {job} is {standing.state}: only a job that has ended or is retrying "
            "can be retried."
        )
    return revive(tx, ledger, standing)


def copy(tx: Transaction, ledger: Ledger, job: int, aging_ms: int) -> int:
    """A new job that runs the same; what only one job can have stays with the old one."""
    standing = read_standing(tx, job)
    row = tx.row("spec", id=job)
    assert row is not None
    (queue, task, command, args, options, _, tags, owner, cwd, _, host, condition, key, _, _,
     env, _) = row  # fmt: skip
    plan = Plan(
        queue, options, standing.priority, tags=tuple(json.loads(tags or "[]")), host=host,
        condition=condition, key=key, cwd=cwd, env=env, owner=owner,
    )  # fmt: skip
    return add(tx, ledger, [NewJob(plan, task, args, command)], aging_ms)[0].id


def revive(tx: Transaction, ledger: Ledger, standing: Standing) -> State:
    """Bring a finished job back, with its keys and its children."""
    state = _start_over(tx, ledger, standing)
    ahead = _recall_children(tx, standing)[::-1]
    while ahead:
        child = read_standing(tx, ahead.pop())
        if child.state in FINISHED:
            _start_over(tx, ledger, child)
            ahead += reversed(_recall_children(tx, child))
    return state


def _start_over(tx: Transaction, ledger: Ledger, standing: Standing) -> State:
    job = standing.id
    row = tx.row("spec", id=job)
    assert row is not None
    queue, task, _, _, _, name, _, _, _, _, host, condition, key, unique_key, *_ = row
    if unique_key is not None:
        plan = Plan(queue, unique_key=unique_key, on_duplicate="refuse")
        take_unique_key(tx, ledger, job, plan)
    if name is not None:
        take_name(tx, job, name)
    lane = find_or_make_lane(
        tx, queue=queue, kind="task" if task else "command", host=host, condition=condition,
        key=key, aging_ms=standing.aging_ms,
    )  # fmt: skip
    if key:
        tx.run("set_key", key=key, concurrency=None)
        tx.run("count_live", lane=lane.id, n=1)
    tx.run("start_over", id=job, lane=lane.id)
    tx.run("count_unmet", id=job)
    return _place_again(tx, ledger, read_standing(tx, job))


def _recall_children(tx: Transaction, parent: Standing) -> list[int]:
    """A finished parent is to run again: its children wait for it again.

    Return those that were cancelled because of it and must be brought back.
    """
    if not parent.ties & ends.PARENT:
        return []
    cancelled = []
    causes = {ends.parent_reason(parent.id, state) for state in FINISHED}
    for child, _, met, state, reason, _ in tx.rows("children", parent=parent.id):
        if met and state in (State.BLOCKED, State.HELD):
            tx.run("set_met", parent=parent.id, child=child, met=0)
            tx.run("count_unmet", id=child)
        elif state == State.CANCELLED and reason in causes:
            tx.run("set_met", parent=parent.id, child=child, met=0)
            cancelled.append(child)
    return cancelled


def move(tx: Transaction, ledger: Ledger, job: int, *, to_front: bool) -> None:
    """Put a pending job before, or behind, all others of its queue."""
    standing = read_standing(tx, job)
    if standing.state is not State.PENDING:
        raise WrongState(
            f"Job {job} is {standing.state}: only a pending job has a place in line to move from."
        )
    edges = tx.row("edge_rank", queue=standing.queue)
    assert edges is not None
    rank = edges[0] - 1 if to_front else edges[1] + 1
    tx.run("set_rank", id=job, rank=rank)
    ledger.told(job, "moved")
    if standing.key:
        ledger.touched(standing.key)


def _place_again(tx: Transaction, ledger: Ledger, standing: Standing) -> State:
    state = waiting_state(
        held=False, waits_on=standing.waits_on, run_at=standing.run_at, now=tx.now
    )
    place(tx, ledger, standing, state)
    return state
