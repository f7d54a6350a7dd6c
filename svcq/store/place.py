"""Moving a job that no worker holds from one state to another."""

from __future__ import annotations

from svcq.errors import NotFound, WrongState
from svcq.jobs import FINISHED, State, may_become
from svcq.store.engine import Transaction
from svcq.store.lanes import rank_of
from svcq.store.ledger import Ledger
from svcq.tuples import NamedTuple


class Standing(NamedTuple):
    """Where a job stands, and what its rank depends on."""

    id: int
    state: State
    lane: int
    priority: int
    ties: int
    waits_on: int
    run: int
    ready_at: int | None
    run_at: int | None
    queue: str
    task: str
    key: str
    aging_ms: int


def read_standing(tx: Transaction, job: int) -> Standing:
    row = tx.row("standing", id=job)
    if row is None:
        raise NotFound(f"There is no job {job}: it never was, or it was removed after its end.")
    return Standing._make(row)._replace(state=State(row[1]))


def place(
    tx: Transaction, ledger: Ledger, job: Standing, state: State, *, reason: str | None = None
) -> None:
    """Put a job into `state`, with the columns that go with it, and note it.

    The state it has already is allowed: an edit may have changed what its columns depend on.
    """
    if state is not job.state and not may_become(job.state, state):
        raise WrongState(f"Job {job.id} is {job.state} and cannot become {state}.")
    ready_at, rank, due_at = job.ready_at, None, None
    if state is State.PENDING:
        if ready_at is None:
            # What waited for its time was ready then, however late someone looked.
            ready_at = job.run_at if job.state is State.SCHEDULED else tx.now
        rank = rank_of(ready_at or tx.now, job.priority, job.aging_ms)
    elif state in (State.SCHEDULED, State.RETRYING):
        due_at = job.run_at
    changed = tx.run(
        "place_job",
        id=job.id,
        old=job.state,
        state=state,
        rank=rank,
        due_at=due_at,
        run_at=job.run_at,
        ready_at=ready_at,
        finished_at=tx.now if state in FINISHED else None,
        reason=reason,
    )
    if not changed:
        raise WrongState(f"Job {job.id} changed while it was looked at: try again.")
    if state is not job.state:
        ledger.moved((job.id,), job.state, state, job.queue, job.task)
    if job.key:
        ledger.touched(job.key)
