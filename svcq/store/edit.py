"""Changing a job that still waits."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import NamedTuple

from svcq.errors import DependencyCycle, WrongState
from svcq.jobs import WAITING, State, waiting_state
from svcq.policy import NewJob, Plan
from svcq.store import ends
from svcq.store.engine import Transaction
from svcq.store.enqueue import (
    NAMES,
    failed_parent,
    find_or_add_environment,
    take_name,
    take_unique_key,
    tie_to_parents,
)
from svcq.store.lanes import find_or_make_lane
from svcq.store.ledger import Ledger
from svcq.store.place import Standing, place, read_standing


class _Spec(NamedTuple):
    queue: str
    task: str
    command: str | None
    args: str | None
    options: str
    name: str | None
    tags: str | None
    owner: str | None
    cwd: str | None
    env: int | None
    host: str
    condition: str
    key: str
    unique_key: str | None
    orphaned: str | None
    vars: str | None
    expires_at: int | None


def edit(
    tx: Transaction, ledger: Ledger, job: int, new: NewJob, said: Collection[str], aging_ms: int
) -> State:
    """Replace what `said` names (fields of the plan, task, command, args) by what `new` has."""
    standing = read_standing(tx, job)
    if standing.state not in WAITING:
        raise WrongState(f"Job {job} is {standing.state}: only a job that waits can be edited.")
    row = tx.row("spec", id=job)
    assert row is not None
    old = _Spec._make(row)
    spec, plan = _merge(tx, old, new, said), new.plan
    _swap_keys(tx, ledger, job, old, spec, plan)
    _swap_tags(tx, job, old, spec)
    if {"after", "after_any"} & set(said):
        _swap_parents(tx, job, plan)
    lane = _swap_lane(tx, ledger, standing.lane, old, spec, plan, aging_ms)
    ties = (standing.ties & ends.PARENT) | _ties_of(spec)
    priority = plan.priority if "priority" in said else standing.priority
    run_at = _new_run_at(tx, standing, plan, said)
    expires_at = old.expires_at
    if "expires_ms" in said and plan.expires_ms is not None:
        expires_at = tx.now + plan.expires_ms
    tx.run("edit_job", id=job, old=standing.state, lane=lane, priority=priority, ties=ties,
           run_at=run_at, expires_at=expires_at)  # fmt: skip
    tx.run("edit_spec", id=job, **{k: v for k, v in spec._asdict().items() if k in _WRITTEN})
    if (spec.queue, spec.task) != (old.queue, old.task):
        ledger.renamed(standing.state, (old.queue, old.task), (spec.queue, spec.task))
    ledger.told(job, "edited")
    held = plan.held if "held" in said else standing.state is State.HELD
    state = _place_after_edit(tx, ledger, standing, held=held)
    failed = failed_parent(tx, plan._replace(orphaned=spec.orphaned))
    if failed is not None:
        ends.end_waiting(tx, ledger, job, State.CANCELLED, ends.parent_reason(*failed))
        return State.CANCELLED
    return state


_WRITTEN = frozenset(_Spec._fields) - {"owner", "vars", "expires_at"}


def _merge(tx: Transaction, old: _Spec, new: NewJob, said: Collection[str]) -> _Spec:
    plan, fresh = new.plan, {}
    for name in ("queue", "name", "cwd", "host", "condition", "key", "unique_key", "orphaned"):
        if name in said:
            fresh[name] = getattr(plan, name)
    if "policy" in said:
        fresh["options"] = json.dumps({**json.loads(old.options), **json.loads(plan.policy)})
    if "tags" in said:
        fresh["tags"] = json.dumps(plan.tags) if plan.tags else None
    if "command" in said:
        fresh.update(command=new.command, task="", args=None)
    if "task" in said:
        fresh.update(task=new.task, args=new.args, command=None)
    elif "args" in said:
        fresh["args"] = new.args
    if "env" in said and plan.env is not None:
        fresh["env"] = find_or_add_environment(tx, plan.env)
    return old._replace(**fresh)


def _ties_of(spec: _Spec) -> int:
    return (
        (ends.UNIQUE if spec.unique_key is not None else 0)
        | (ends.NAMED if spec.name is not None else 0)
        | (ends.KEYED if spec.key else 0)
    )


def _swap_keys(
    tx: Transaction, ledger: Ledger, job: int, old: _Spec, spec: _Spec, plan: Plan
) -> None:
    if (old.queue, old.unique_key) != (spec.queue, spec.unique_key):
        if old.unique_key is not None:
            tx.run("free_unique", scope=old.queue, key=old.unique_key, job=job, now=tx.now)
        if spec.unique_key is not None:
            wanted = plan._replace(
                queue=spec.queue, unique_key=spec.unique_key, on_duplicate="refuse"
            )
            take_unique_key(tx, ledger, job, wanted)
    elif plan.unique_ms is not None and spec.unique_key is not None:
        until = tx.now + plan.unique_ms
        tx.run("take_unique", scope=spec.queue, key=spec.unique_key, job=job, until=until)
    if old.name != spec.name:
        if old.name is not None:
            tx.run("free_unique", scope=NAMES, key=old.name, job=job, now=tx.now)
        if spec.name is not None:
            take_name(tx, job, spec.name)


def _swap_tags(tx: Transaction, job: int, old: _Spec, spec: _Spec) -> None:
    if old.tags != spec.tags:
        for tag in json.loads(old.tags or "[]"):
            tx.run("drop_tags", tag=tag, job=job)
        tx.many("add_tags", [(tag, job) for tag in json.loads(spec.tags or "[]")])


def _swap_parents(tx: Transaction, job: int, plan: Plan) -> None:
    wanted = [*plan.after, *plan.after_any]
    cycle = tx.row("ancestors_among", id=job, ids=json.dumps(wanted))
    if cycle is not None:
        raise DependencyCycle(
            f"Job {job} cannot come after job {cycle[0]}, which itself waits for job {job}: "
            "name other jobs."
        )
    tx.run("drop_parents", child=job)
    if wanted:
        tie_to_parents(tx, job, plan.after, plan.after_any)
    tx.run("count_unmet", id=job)


def _swap_lane(
    tx: Transaction, ledger: Ledger, lane: int, old: _Spec, spec: _Spec, plan: Plan, aging_ms: int
) -> int:
    new = find_or_make_lane(
        tx, queue=spec.queue, kind="task" if spec.task else "command", host=spec.host,
        condition=spec.condition, key=spec.key, aging_ms=aging_ms,
    )  # fmt: skip
    if old.key:
        tx.run("count_live", lane=lane, n=-1)
        ledger.touched(old.key)
    if spec.key:
        tx.run("set_key", key=spec.key, concurrency=plan.key_concurrency)
        tx.run("count_live", lane=new.id, n=1)
        ledger.touched(spec.key)
    return new.id


def _new_run_at(
    tx: Transaction, standing: Standing, plan: Plan, said: Collection[str]
) -> int | None:
    if "delay_ms" in said:
        return tx.now + plan.delay_ms
    return plan.run_at if "run_at" in said else standing.run_at


def _place_after_edit(tx: Transaction, ledger: Ledger, old: Standing, *, held: bool) -> State:
    """The state may have changed with the time or the parents, the rank with the priority."""
    standing = read_standing(tx, old.id)
    state = waiting_state(held=held, waits_on=standing.waits_on, run_at=standing.run_at, now=tx.now)
    if state is State.PENDING:
        if (old.state, old.priority, old.queue) == (state, standing.priority, standing.queue):
            return state  # it keeps its place, to which someone may have moved it
        if standing.ready_at is None:
            # It may run from now on, however long ago the time is that it was given.
            standing = standing._replace(ready_at=tx.now)
    if state is State.SCHEDULED and standing.state is State.RETRYING:
        state = State.RETRYING
    place(tx, ledger, standing, state)
    return state
