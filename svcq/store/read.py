"""Looking: jobs, history, changes."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any

from svcq.config import Config
from svcq.errors import NotFound
from svcq.jobs import FINISHED, Change, How, Job, Run, State
from svcq.policy import policy_of, shown_policy
from svcq.store.engine import Row, Transaction
from svcq.times import moment
from svcq.tuples import NamedTuple

_NEWEST = 1 << 62
_LISTS = {
    **dict.fromkeys(FINISHED, "list_finished"),
    **dict.fromkeys((State.HELD, State.BLOCKED, State.PROCESSING), "list_standing"),
    **dict.fromkeys((State.SCHEDULED, State.RETRYING), "list_due"),
}


class Filter(NamedTuple):
    """Which jobs to list; None is any. `before` is an id: the cursor of the next page."""

    states: Collection[State] | None = None
    queue: str | None = None
    task: str | None = None
    tag: str | None = None
    owner: str | None = None
    since_ms: int | None = None
    grep: str | None = None
    before: int | None = None
    limit: int = 100


def get_job(tx: Transaction, job: int, config: Config) -> Job:
    row = tx.row("job", id=job)
    if row is None:
        raise NotFound(f"There is no job {job}: it never was, or it was removed after its end.")
    return view(row, config)


def find_named(tx: Transaction, name: str) -> int:
    """The newest job of that name."""
    row = tx.row("jobs_named", name=name)
    if row is None or row[0] is None:
        raise NotFound(f"There is no job named {name!r}: list the jobs to see their names.")
    return int(row[0])


def list_jobs(tx: Transaction, wanted: Filter, config: Config) -> list[Job]:
    values: dict[str, Any] = {
        "queue": wanted.queue,
        "task": wanted.task,
        "tag": wanted.tag,
        "owner": wanted.owner,
        "since": wanted.since_ms,
        "grep": wanted.grep or None,
        "n": wanted.limit,
    }
    states = list(State) if wanted.states is None else list(wanted.states)
    if len(states) == 1 and states[0] in _LISTS:
        values.update(_page_by_time(tx, wanted, states[0]))
        rows = tx.rows(_LISTS[states[0]], state=states[0], **values)
    else:
        rows = tx.rows(
            "list_jobs", states=json.dumps(states), before=wanted.before or _NEWEST, **values
        )
    return [view(row, config) for row in rows]


def _page_by_time(tx: Transaction, wanted: Filter, state: State) -> dict[str, int]:
    """Where a page of one state begins: behind the job that ended the page before."""
    if wanted.before is None:
        first = -1 if _LISTS[state] == "list_due" else _NEWEST
        return {"at": first, "before": first}
    if _LISTS[state] == "list_standing":
        return {"at": 0, "before": wanted.before}
    row = tx.row("time_in_list", id=wanted.before, state=state)
    if row is None:
        raise NotFound(
            f"Job {wanted.before}, where the page before ended, is no longer {state}: "
            "list from the start."
        )
    return {"at": row[0], "before": wanted.before}


def list_runs(tx: Transaction, job: int) -> list[Run]:
    return [
        Run(job, run, worker, host, moment(start), moment(end), How(how), code, error, tail,
            None if result is None else json.loads(result), cpu_ms, peak_bytes)
        for job, run, worker, host, start, end, how, code, error, tail, result, cpu_ms, peak_bytes
        in tx.rows("runs", job=job)
    ]  # fmt: skip


def environment_of(tx: Transaction, job: int) -> dict[str, str] | None:
    row = tx.row("spec", id=job)
    if row is None:
        raise NotFound(f"There is no job {job}: it never was, or it was removed after its end.")
    variables: dict[str, str] | None = None if row[15] is None else json.loads(row[15])
    return variables


def changes_after(tx: Transaction, cursor: int, limit: int, until: int) -> list[Change]:
    rows = tx.rows("changes_after", after=cursor, until=until, n=limit)
    return [Change(seq, job, kind, moment(at)) for seq, job, kind, at in rows]


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else moment(ms)


def view(row: Row, config: Config) -> Job:
    (id_, queue, state, name, reason, priority, run, failures, losses, interruptions, snoozes,
     created_at, run_at, expires_at, started_at, finished_at, exit_code, error, progress, note,
     cancel_requested, paused, result, tags, owner, worker, command, task, args, options,
     queue_options, task_policy, cwd, host, condition, key, unique_key, after,
     copy_of) = row  # fmt: skip
    positional, named = json.loads(args) if args else ((), {})
    succeeded = state == State.COMPLETED
    return Job(
        id=id_,
        queue=queue,
        state=State(state),
        name=name,
        reason=reason,
        priority=priority,
        run=run,
        attempts=failures + (1 if succeeded or state == State.PROCESSING else 0),
        max_attempts=policy_of(config.jobs, queue_options, task_policy, options).max_attempts,
        failures=failures,
        losses=losses,
        interruptions=interruptions,
        snoozes=snoozes,
        created_at=moment(created_at),
        run_at=_moment(run_at),
        expires_at=_moment(expires_at),
        started_at=_moment(started_at),
        finished_at=_moment(finished_at),
        exit_code=exit_code,
        error=None if succeeded else error,
        progress=progress,
        progress_note=note,
        cancel_requested=bool(cancel_requested),
        paused=bool(paused) and state == State.PROCESSING,
        result=json.loads(result) if result is not None and succeeded else None,
        tags=_words(tags),
        owner=owner,
        worker=worker,
        command=None if command is None else json.loads(command),
        task=task or None,
        args=list(positional),
        kwargs=dict(named),
        options=shown_policy(options),
        cwd=cwd,
        host=host or None,
        condition=condition or None,
        concurrency_key=key or None,
        unique_key=unique_key,
        after=tuple(json.loads(after)) if after else (),
        copy_of=copy_of,
    )


def _words(tags: str | None) -> tuple[str, ...]:
    return tuple(json.loads(tags)) if tags else ()
