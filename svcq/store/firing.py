"""Firing: the row of a schedule moves on and its job is added, in one transaction.

Guarded by the row's revision and by an index over (schedule, nominal time): of two clocks, the
second finds nothing to do.
"""

from __future__ import annotations

from typing import NamedTuple

from svcq.config import Config
from svcq.errors import SvcqError
from svcq.jobs import State
from svcq.schedules import Decision, Firing, How, Schedule, due_at, new_job
from svcq.store import enqueue as adding
from svcq.store import moves, schedules
from svcq.store.engine import Transaction
from svcq.store.lanes import default_aging
from svcq.store.ledger import Ledger

_NEWEST = 1 << 62


def fire(
    tx: Transaction, ledger: Ledger, schedule: Schedule, decision: Decision, why: str,
    config: Config,
) -> list[Firing]:  # fmt: skip
    """Do what was decided, unless someone was faster; what became of it."""
    # A clock that was set back a little may show a time again that has had its job.
    steps = [
        step for step in decision.steps
        if tx.row("fired_for", schedule=schedule.name, nominal=step.nominal) is None
    ]  # fmt: skip
    row = tx.row("advance_schedule", name=schedule.name, revision=schedule.revision, now=tx.now,
                 next_at=decision.next_at, due_at=decision.due_at, rows=len(steps))  # fmt: skip
    if row is None:
        return []
    fired = []
    for number, step in enumerate(steps, schedule.firings + 1):
        one = Firing(schedule.name, number, step.nominal, tx.now, step.how, None, step.missed,
                     step.ran, why if step.missed else None)  # fmt: skip
        if step.how is not How.MISSED:
            one = _with_job(tx, one, _queue(tx, ledger, schedule, row[0], config))
        tx.many("add_firings", [one])
        fired.append(one)
    return fired


def fail(tx: Transaction, schedule: Schedule, error: str) -> list[Firing]:
    """Its job cannot be queued: that is noted, and it moves on to its next time.

    One whose times themselves cannot be told, as when its zone is no longer known, is paused.
    """
    assert schedule.next_ms is not None
    paused, next_at = 0, None
    try:
        next_at = schedule.trigger.next_after(max(schedule.next_ms, tx.now))
    except SvcqError:
        paused = 1
    row = tx.row("advance_schedule", name=schedule.name, revision=schedule.revision, now=tx.now,
                 next_at=next_at, due_at=due_at(next_at, schedule.jitter_ms), rows=1)  # fmt: skip
    if row is None:
        return []
    if paused:
        tx.run("pause_schedule", name=schedule.name)
    been = tx.row("fired_for", schedule=schedule.name, nominal=schedule.next_ms) is not None
    one = Firing(schedule.name, schedule.firings + 1, None if been else schedule.next_ms, tx.now,
                 How.FAILED, note=error)  # fmt: skip
    tx.many("add_firings", [one])
    return [one]


def fire_now(tx: Transaction, ledger: Ledger, name: str, config: Config) -> Firing:
    """A job of it beside its times, which stay as they are."""
    schedule = schedules.get(tx, name)
    row = tx.row("number_firing", name=name)
    assert row is not None
    number, env = row
    one = Firing(name, number, None, tx.now, How.ASKED)
    one = _with_job(tx, one, _queue(tx, ledger, schedule, env, config))
    tx.many("add_firings", [one])
    return one


class _Queued(NamedTuple):
    job: int | None
    why_not: str | None = None


def _with_job(tx: Transaction, one: Firing, queued: _Queued) -> Firing:
    if queued.job is None:
        return one._replace(how=How.SKIPPED, note=queued.why_not)
    tx.run("set_last_job", name=one.schedule, job=queued.job, nominal=one.nominal_ms)
    return one._replace(job=queued.job)


def _queue(
    tx: Transaction, ledger: Ledger, schedule: Schedule, env: str | None, config: Config
) -> _Queued:
    """Add the job of a firing, as far as those before it allow."""
    new = new_job(schedule, env, config.queue)
    unfinished = [
        (job, State(state)) for job, state in tx.rows("unfinished_of", name=schedule.name)
    ]
    if unfinished:
        job, state = unfinished[0]
        if schedule.overlap == "skip":
            return _Queued(None, f"its job {job} is still {state}")
        if schedule.overlap == "replace":
            why = f"replaced by a newer job of schedule {schedule.name}"
            ended = [(old, moves.cancel(tx, ledger, old, why)) for old, _ in unfinished]
            unfinished = [one for one in ended if one[1] is State.PROCESSING]
        # Never two at once: it starts when those have ended, however.
        after = tuple(old for old, _ in unfinished)
        new = new._replace(plan=new.plan._replace(after_any=after))
    (added,) = adding.add(tx, ledger, [new], default_aging(config))
    if not added.created:
        return _Queued(None, f"job {added.id} has its unique key")
    return _Queued(added.id)


def history(tx: Transaction, name: str | None, limit: int, before: int | None) -> list[Firing]:
    if name is None:
        rows = tx.rows("all_firings", n=limit)
    else:
        rows = tx.rows("firings", schedule=name, n=limit, before=before or _NEWEST)
        if not rows:
            schedules.get(tx, name)  # says so when there is no such schedule
    return [_firing(row) for row in rows]


def firing_of(tx: Transaction, job: int) -> Firing | None:
    row = tx.row("firing_of", job=job)
    return None if row is None else _firing(row)


def _firing(row: tuple[object, ...]) -> Firing:
    one = Firing._make(row)
    return one._replace(how=How(one.how))
