"""Adding jobs: one, many, or as part of the caller's own transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from svcq.errors import NameTaken, NotFound, UniqueTaken
from svcq.later import Later
from svcq.policy import NewJob, Plan
from svcq.states import FINISHED, WAITING, State, waiting_state
from svcq.store.engine import Row, Transaction
from svcq.store.lanes import Lane, find_or_make_lane, rank_of
from svcq.store.ledger import Ledger
from svcq.times import MINUTE
from svcq.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json
    from typing import Any

    from svcq.store import ends
    from svcq.store.engine import Engine
else:
    json = Later("json")
    ends = Later("svcq.store.ends")

_PENDING = State.PENDING  # Python 3.11 takes its time to find a member of an enum

NAMES = ""  # the scope of job names; no queue has an empty name


class Added(NamedTuple):
    """What became of a job that was to be added: `created` is False for one that already was."""

    id: int
    state: State
    at: int
    queue_options: str = "{}"
    created: bool = True


def add(tx: Transaction, ledger: Ledger, jobs: Sequence[NewJob], aging_ms: int) -> list[Added]:
    """Add jobs in order. `aging_ms` is for queues that do not exist yet."""
    batch = _Batch(tx, ledger, aging_ms)
    row = tx.row("take_ids", n=len(jobs))
    assert row is not None
    first = row[0] - len(jobs) + 1
    added: list[Added] = []
    for job_id, job in enumerate(jobs, first):
        if job.plan.plain:
            added.append(batch.put(job_id, job))
        else:
            # It may refer to jobs before it in the same batch: they must be there to be seen.
            batch.flush()
            added.append(_add_tied(tx, ledger, batch, job_id, job))
    batch.flush()
    return added


def add_call(engine: Engine, job: NewJob) -> Added | None:
    """As add_plain for most calls, where an engine can do so in less; None where it cannot."""
    plan, task, args, _, copy_of = job
    if not (task and plan.usual and copy_of is None):
        return None
    row = engine.add_call((
        plan.queue, plan.host, plan.condition, plan.priority, task, args, plan.policy, plan.owner
    ))  # fmt: skip
    return None if row is None else Added(row[0], _PENDING, row[1], row[2])


def add_plain(tx: Transaction, job: NewJob, aging_ms: int) -> Added:
    """One job without ties, written straight: a batch and a ledger would double what it costs."""
    plan, task, args, _, copy_of = job
    queue = plan.queue
    place = queue, "task" if task else "command", plan.host, plan.condition
    found = tx.first("next_in_lane", place)
    if found is None:
        find_or_make_lane(tx, *place, key="", aging_ms=aging_ms)
        found = tx.first("next_in_lane", place)
        assert found is not None
    job_id, lane, aging_ms, queue_options = found
    now = tx.now
    if task and plan.usual and copy_of is None:
        state, kind, priority = _PENDING, "pending", plan.priority
        row = "add_call", (job_id, lane, priority, now, rank_of(now, priority, aging_ms))
        spec = "add_call_spec", (job_id, queue, task, args, plan.policy, now, plan.owner)
    else:
        env = find_or_add_environment(tx, plan.env)
        state, *values = _rows(now, job_id, job, Lane(lane, aging_ms, queue_options), 0, 0, env)
        kind, row, spec = state.value, ("add_jobs", values[0]), ("add_specs", values[1])
    tx.each(
        ("keep_id", (job_id,)),
        row,
        spec,
        ("add_changes", (job_id, kind, now)),
        ("add_counts", (queue, kind, task, 1)),
        ("add_minutes", (now // MINUTE, queue, "added", 0, 1, 0)),
    )
    return Added(job_id, state, now, queue_options)


def _rows(
    now: int, job_id: int, job: NewJob, lane: Lane, ties: int, waits_on: int, env: int | None
) -> tuple[State, Row, Row]:
    """A new job's state, and what it is in the tables of jobs and specs."""
    plan = job.plan
    run_at = now + plan.delay_ms if plan.delay_ms else plan.run_at
    state = waiting_state(held=plan.held, waits_on=waits_on, run_at=run_at, now=now)
    ready_at = rank = due_at = None
    if state is State.PENDING:
        ready_at = now
        rank = rank_of(now, plan.priority, lane.aging_ms)
    elif state is State.SCHEDULED:
        due_at = run_at
    expires_at = None if plan.expires_ms is None else now + plan.expires_ms
    row = (
        job_id, lane.id, state.value, plan.priority, ties, waits_on, ready_at, run_at, rank,
        due_at, expires_at,
    )  # fmt: skip
    spec = (
        job_id, plan.queue, job.task, job.command, job.args, plan.policy, now, plan.name,
        json.dumps(plan.tags) if plan.tags else None, plan.owner, plan.cwd, env, plan.host,
        plan.condition, plan.key, plan.unique_key, plan.orphaned, job.copy_of,
    )  # fmt: skip
    return state, row, spec


class _Batch:
    """Rows on their way into the tables."""

    def __init__(self, tx: Transaction, ledger: Ledger, aging_ms: int) -> None:
        self._tx = tx
        self._ledger = ledger
        self._aging_ms = aging_ms
        self._lanes: dict[tuple[str, str, str, str, str], Lane] = {}
        self._environments: dict[str | None, int | None] = {None: None}
        self._jobs: list[Row] = []
        self._specs: list[Row] = []
        self._ids: dict[tuple[State, str, str], list[int]] = {}

    def put(self, job_id: int, job: NewJob, *, ties: int = 0, waits_on: int = 0) -> Added:
        lane = self.lane_of(job.plan, job.kind)
        variables = job.plan.env
        if variables not in self._environments:
            self._environments[variables] = find_or_add_environment(self._tx, variables)
        env = self._environments[variables]
        state, row, spec = _rows(self._tx.now, job_id, job, lane, ties, waits_on, env)
        self._jobs.append(row)
        self._specs.append(spec)
        self._ids.setdefault((state, job.plan.queue, job.task), []).append(job_id)
        return Added(job_id, state, self._tx.now, lane.queue_options)

    def lane_of(self, plan: Plan, kind: str) -> Lane:
        place = (plan.queue, kind, plan.host, plan.condition, plan.key)
        lane = self._lanes.get(place)
        if lane is None:
            lane = self._lanes[place] = find_or_make_lane(
                self._tx, queue=plan.queue, kind=kind, host=plan.host,
                condition=plan.condition, key=plan.key, aging_ms=self._aging_ms,
            )  # fmt: skip
        return lane

    def flush(self) -> None:
        if not self._jobs:
            return
        self._tx.many("add_jobs", self._jobs)
        self._tx.many("add_specs", self._specs)
        for (state, queue, task), ids in self._ids.items():
            self._ledger.added(ids, state, queue, task)
        self._jobs, self._specs, self._ids = [], [], {}


def _add_tied(tx: Transaction, ledger: Ledger, batch: _Batch, job_id: int, job: NewJob) -> Added:
    """Add a job that has to do with other rows: keys, names, parents, tags."""
    plan = job.plan
    ties = 0
    if plan.unique_key is not None:
        existing = take_unique_key(tx, ledger, job_id, plan)
        if existing is not None:
            return existing
        ties |= ends.UNIQUE
    if plan.name is not None:
        take_name(tx, job_id, plan.name)
        ties |= ends.NAMED
    waits_on = 0
    if plan.after or plan.after_any:
        waits_on = tie_to_parents(tx, job_id, plan.after, plan.after_any)
    if plan.key:
        ties |= ends.KEYED
    added = batch.put(job_id, job, ties=ties, waits_on=waits_on)
    batch.flush()
    if plan.key:
        tx.run("set_key", key=plan.key, concurrency=plan.key_concurrency)
        tx.run("count_live", lane=batch.lane_of(plan, job.kind).id, n=1)
        ledger.touched(plan.key)
    if plan.tags:
        tx.many("add_tags", [(tag, job_id) for tag in plan.tags])
    failed = failed_parent(tx, plan) if waits_on else None
    if failed is not None:
        # As if it had been added a moment earlier; blocked, it would wait for good.
        ends.end_waiting(tx, ledger, job_id, State.CANCELLED, ends.parent_reason(*failed))
        return added._replace(state=State.CANCELLED)
    return added


def failed_parent(tx: Transaction, plan: Plan) -> tuple[int, State] | None:
    """A parent that ended badly before its child was added."""
    if plan.orphaned == "wait":
        return None
    states = [
        (job, State(state)) for job, state in tx.rows("states_of", ids=json.dumps(plan.after))
    ]
    return next(((job, s) for job, s in states if s in FINISHED and s is not State.COMPLETED), None)


def take_unique_key(tx: Transaction, ledger: Ledger, job_id: int, plan: Plan) -> Added | None:
    """Take the plan's unique key, or answer with the job that has it, as the plan wishes."""
    key = plan.unique_key
    holder = tx.row("unique_holder", scope=plan.queue, key=key, now=tx.now)
    if holder is not None and holder[0] == job_id:
        return None  # it is run again within its own window
    if holder is not None:
        job, state = holder[0], State(holder[1]) if holder[1] else None
        if plan.on_duplicate == "existing" and state is not None:
            return Added(job, state, tx.now, created=False)
        if plan.on_duplicate == "replace" and state in WAITING:
            ends.end_waiting(tx, ledger, job, State.CANCELLED, "replaced by a newer job")
        elif plan.on_duplicate != "replace" or state is State.PROCESSING:
            ended = state is None or state in FINISHED
            raise UniqueTaken(
                f"The unique key {key!r} in queue {plan.queue} is taken by job {job}, which "
                f"{f'is {state}' if state else 'was removed'}: "
                f"{'wait until its time has passed' if ended else 'wait for it, cancel it'}, "
                "or use another key.",
                job,
            )
    until = None if plan.unique_ms is None else tx.now + plan.unique_ms
    tx.run("take_unique", scope=plan.queue, key=key, job=job_id, until=until)
    return None


def take_name(tx: Transaction, job_id: int, name: str) -> None:
    holder = tx.row("unique_holder", scope=NAMES, key=name, now=tx.now)
    if holder is not None and holder[0] != job_id:
        raise NameTaken(
            f"The name {name!r} belongs to job {holder[0]}, which is {holder[1]}: "
            "wait for it to end, cancel it, or use another name.",
            holder[0],
        )
    tx.run("take_unique", scope=NAMES, key=name, job=job_id, until=None)


def tie_to_parents(
    tx: Transaction, child: int, after: Iterable[int], after_any: Iterable[int]
) -> int:
    """Note the parents of a job; return how many it still waits for."""
    needs = {**dict.fromkeys(after_any, "end"), **dict.fromkeys(after, "success")}
    ids = json.dumps(list(needs))
    states = {job: State(state) for job, state in tx.rows("lock_parents", ids=ids)}
    missing = [parent for parent in needs if parent not in states]
    if missing:
        raise NotFound(
            f"Job {missing[0]}, which this one is to come after, does not exist or was removed: "
            "list the jobs and name one that is there."
        )
    met = {parent: is_met(need, states[parent]) for parent, need in needs.items()}
    tx.many("add_parents", [(p, child, needs[p], int(met[p])) for p in needs])
    tx.run("mark_parents", tie=ends.PARENT, ids=ids)
    return sum(not done for done in met.values())


def is_met(need: str, parent: State) -> bool:
    return parent is State.COMPLETED or (need == "end" and parent in FINISHED)


def find_or_add_environment(tx: Transaction, variables: str | None) -> int | None:
    if variables is None:
        return None
    # As Python's random.py does: hashlib loads all of OpenSSL, and `svcq add` would wait for it.
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    digest = blake2b(variables.encode(), digest_size=32).hexdigest()
    row: Any = tx.row("find_environment", digest=digest)
    if row is None:
        row = tx.row("add_environment", digest=digest, vars=variables)
    return int(row[0])
