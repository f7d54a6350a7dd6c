"""What explains where a job stands, from one consistent look; svcq/why.py puts it into words."""

from __future__ import annotations

from svcq.config import Config
from svcq.jobs import How, Job, State
from svcq.policy import Policy, policy_of
from svcq.store.engine import Transaction
from svcq.store.queues import Queue, read_queue
from svcq.store.read import get_job, view
from svcq.store.workers import Worker, workers
from svcq.times import DAY, MINUTE
from svcq.tuples import NamedTuple

# Beyond this a place in line is not counted out.
LONGEST_LINE = 1000
_RUNNING_SHOWN = 100


class Running(NamedTuple):
    """A job that stands in another's way by running."""

    id: int
    started_at: int
    progress: float | None


class Parent(NamedTuple):
    id: int
    state: State
    needs: str  # success, or end


class Limit(NamedTuple):
    """How many may run at once, how many do, and the first of them to have started."""

    most: int
    running: int
    jobs: list[Running]


class Facts(NamedTuple):
    now: int
    job: Job
    policy: Policy
    queue: Queue
    workers: list[Worker]
    usual_ms: int | None  # how long jobs of its queue took in the last day, on average
    ready_at: int | None = None
    in_front: int = 0  # LONGEST_LINE + 1 for more than that
    next_start: int | None = None  # when the rate of its queue lets the next one in
    queue_limit: Limit | None = None
    key_limit: Limit | None = None
    parents: tuple[Parent, ...] = ()


def gather(tx: Transaction, job_id: int, config: Config) -> Facts:
    """Read only what a job in its state needs explained."""
    job = get_job(tx, job_id, config)
    row = tx.row("policy_layers", id=job_id)
    assert row is not None
    facts = Facts(
        now=tx.now,
        job=job,
        policy=policy_of(config.jobs, *row[1:]),
        queue=read_queue(tx, job.queue),
        workers=workers(tx, ended=False),
        usual_ms=_usual_ms(tx, job.queue),
    )
    if job.state is State.PENDING:
        return _in_line(tx, facts)
    if job.state is State.BLOCKED:
        return facts._replace(
            parents=tuple(
                Parent(parent, State(state), needs)
                for parent, state, needs in tx.rows("unmet_parents", child=job_id)
            )
        )
    return facts


def _in_line(tx: Transaction, facts: Facts) -> Facts:
    job = facts.job
    place = tx.row("place_in_line", id=job.id)
    assert place is not None
    rank, ready_at, rate_next, key_most, key_running = place
    ahead = tx.row(
        "in_front", id=job.id, rank=rank, queue=job.queue, host=job.host or "",
        condition=job.condition or "", most=LONGEST_LINE + 1,
    )  # fmt: skip
    return facts._replace(
        ready_at=ready_at,
        in_front=ahead[0] if ahead else 0,
        next_start=_next_start(facts.queue, rate_next),
        queue_limit=_queue_limit(tx, facts.queue),
        key_limit=None
        if key_most is None
        else Limit(key_most, key_running, _running(tx, key=job.concurrency_key)),
    )


def _next_start(queue: Queue, rate_next: int) -> int | None:
    """GCRA turned around: from when on one more start fits."""
    if queue.rate is None:
        return None
    starts, period_ms = queue.rate
    return -(-(rate_next - period_ms * 1000 + period_ms * 1000 // starts) // 1000)


def _queue_limit(tx: Transaction, queue: Queue) -> Limit | None:
    if queue.concurrency is None:
        return None
    row = tx.row("running_in", queue=queue.name)
    return Limit(queue.concurrency, row[0] if row else 0, _running(tx, queue=queue.name))


def _running(tx: Transaction, *, queue: str | None = None, key: str | None = None) -> list[Running]:
    rows = tx.rows("running_jobs", queue=queue, key=key, n=_RUNNING_SHOWN)
    return [Running._make(row) for row in rows]


def _usual_ms(tx: Transaction, queue: str) -> int | None:
    times = [
        (n, total_ms)
        for _, _, kind, _, n, total_ms in tx.rows(
            "minutes_since", since=(tx.now - DAY) // MINUTE, queue=queue
        )
        if kind == How.COMPLETED
    ]
    runs = sum(n for n, _ in times)
    return round(sum(total for _, total in times) / runs) if runs else None


def first_in_line(tx: Transaction, n: int, config: Config) -> list[Job]:
    """The pending jobs that come first, each queue by its own order."""
    return [view(row, config) for row in tx.rows("first_in_line", n=n)]
