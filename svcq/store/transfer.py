"""Export and import: a whole store as lines of JSON.

The first line says what this is; then come the queues, then the jobs in order of their ids, each
with its parents and runs, then the schedules, each with its history. A job that was running is
exported as interrupted: it waits again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from svcq.errors import DependencyCycle, InvalidInput
from svcq.jobs import FINISHED, State, waiting_state
from svcq.policy import NewJob, Plan
from svcq.store import ends
from svcq.store.engine import Row, Transaction
from svcq.store.enqueue import find_or_add_environment, take_name, take_unique_key
from svcq.store.lanes import find_or_make_lane, rank_of
from svcq.store.ledger import Ledger
from svcq.store.records import checked_job, checked_queue, checked_schedule
from svcq.store.transfer_schedules import export_schedules, import_schedule
from svcq.strict import parse_json

FORMAT = 1
BATCH = 500

_COLUMNS = [
    "id",
    "state",
    "priority",
    "run",
    "failures",
    "losses",
    "interruptions",
    "snoozes",
    "ready_at",
    "run_at",
    "due_at",
    "expires_at",
    "started_at",
    "finished_at",
    "reason",
    "progress",
    "progress_note",
    "queue",
    "task",
    "command",
    "args",
    "options",
    "created_at",
    "name",
    "tags",
    "owner",
    "cwd",
    "env",
    "host",
    "condition",
    "key",
    "key_concurrency",
    "unique_key",
    "unique_until",
    "orphaned",
    "copy_of",
    "moved",
]
_QUEUE_COLUMNS = [
    "name",
    "paused",
    "weight",
    "concurrency",
    "rate_count",
    "rate_ms",
    "aging_ms",
    "dead_letter",
    "options",
]
_RUN_COLUMNS = [
    "run", "started_at", "ended_at", "how", "exit_code", "error", "tail", "result", "cpu_ms",
    "peak_bytes",
]  # fmt: skip
_AS_THEY_ARE = (
    "priority", "run", "failures", "losses", "interruptions", "snoozes", "run_at", "expires_at",
    "started_at", "finished_at", "reason", "progress", "progress_note",
)  # fmt: skip


def export(tx: Transaction, *, environments: bool) -> Iterator[str]:
    yield json.dumps({"svcq": FORMAT, "exported_at": tx.now})
    for row in tx.rows("queues"):
        yield json.dumps({"queue": dict(zip(_QUEUE_COLUMNS, row, strict=True))})
    after = 0
    while rows := tx.rows("export_jobs", after=after, n=BATCH):
        after = rows[-1][0]
        ids = json.dumps([row[0] for row in rows])
        parents = _grouped(tx.rows("export_parents", ids=ids))
        runs = _grouped(tx.rows("export_runs", ids=ids))
        for row in rows:
            job = _exported(dict(zip(_COLUMNS, row, strict=True)), environments=environments)
            job["parents"] = [list(parent) for parent in parents[job["id"]]]
            job["runs"] = [dict(zip(_RUN_COLUMNS, run, strict=True)) for run in runs[job["id"]]]
            yield json.dumps({"job": {k: v for k, v in job.items() if v not in (None, "", [])}})
    yield from export_schedules(tx, environments=environments)


def _grouped(rows: Iterable[Row]) -> Mapping[int, list[Row]]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for owner, *rest in rows:
        groups[owner].append(tuple(rest))
    return groups


def _exported(job: dict[str, Any], *, environments: bool) -> dict[str, Any]:
    if not environments:
        job["env"] = None
    job["moved"] = job["moved"] or None  # few are
    if job["state"] == State.PROCESSING:
        job.update(state=State.PENDING.value, interruptions=job["interruptions"] + 1)
    return job


class Importer:
    """Takes lines one by one, inside one transaction."""

    def __init__(self, tx: Transaction, ledger: Ledger, aging_ms: int) -> None:
        self._tx = tx
        self._ledger = ledger
        self._aging_ms = aging_ms
        row = tx.row("last_id")
        self._keeps_ids = row is None or row[0] == 0
        self._new_ids: dict[int, int] = {}
        self._parents: list[tuple[int, int, Sequence[tuple[int, str, int]]]] = []
        self._line = 0

    def take(self, line: str) -> None:
        self._line += 1
        try:
            self._take(line)
        except InvalidInput as error:
            raise self._bad(self._line, error) from None

    def finish(self) -> int:
        """Tie children to their parents, which may stand below them; how many jobs there were."""
        if not self._line:
            raise InvalidInput("The import is empty: give what `svcq export` wrote.")
        ids = self._new_ids
        for line, child, parents in self._parents:
            unknown = next((parent for parent, *_ in parents if parent not in ids), None)
            if unknown is not None:
                error = InvalidInput(f"The job comes after job {unknown}, which is not in the file")
                raise self._bad(line, error)
            self._tie(child, [(ids[parent], needs, met) for parent, needs, met in parents])
        self._refuse_cycles()
        if self._keeps_ids and ids:
            # Last: where a sequence gives ids, to set it is not undone with the rest.
            self._tx.row("ids_from", last=max(ids))
        return len(ids)

    def _take(self, line: str) -> None:
        record = _parsed(line)
        if self._line == 1:
            if record.get("svcq") != FORMAT:
                raise InvalidInput(f"This is not an export of svcq in format {FORMAT}")
        elif "queue" in record:
            self._take_queue(checked_queue(record["queue"]))
        elif "job" in record:
            self._take_job(checked_job(record["job"]))
        elif "schedule" in record:
            import_schedule(self._tx, checked_schedule(record["schedule"]), self._new_ids)
        else:
            raise InvalidInput("It holds neither a queue, a job nor a schedule")

    def _bad(self, line: int, error: InvalidInput) -> InvalidInput:
        return InvalidInput(
            f"Line {line} of the import cannot be used ({str(error).rstrip('.')}): "
            "correct it or export anew; nothing was imported."
        )

    def _take_queue(self, queue: Mapping[str, Any]) -> None:
        """Settings come along for queues that are new here; existing ones keep theirs."""
        if self._tx.row("queue", name=queue["name"]) is None:
            self._tx.run("make_queue", name=queue["name"], aging_ms=queue["aging_ms"])
            self._tx.run("save_queue", **queue)

    def _take_job(self, job: Mapping[str, Any]) -> None:
        tx, now = self._tx, self._tx.now
        new_id, state = self._new_id(job["id"]), job["state"]
        plan = _plan_of(job)
        unfinished = state not in FINISHED
        ties = self._take_keys(new_id, plan, job["unique_until"], unfinished=unfinished)
        waits_on = sum(not met for _, _, met in job["parents"])
        if job["parents"]:
            self._parents.append((self._line, new_id, job["parents"]))
        if state is State.BLOCKED and not waits_on:
            state = waiting_state(held=False, waits_on=0, run_at=job["run_at"], now=now)
        elif state in (State.PENDING, State.SCHEDULED) and waits_on:
            state = State.BLOCKED
        lane = find_or_make_lane(
            tx, queue=plan.queue, kind="task" if job["task"] else "command", host=plan.host,
            condition=plan.condition, key=plan.key, aging_ms=self._aging_ms,
        )  # fmt: skip
        if plan.key:
            if unfinished:
                tx.run("set_key", key=plan.key, concurrency=plan.key_concurrency)
                tx.run("count_live", lane=lane.id, n=1)
            self._ledger.touched(plan.key)  # a lane of ended jobs alone goes again
        ready_at = job["ready_at"]
        pending = state is State.PENDING
        if pending and ready_at is None:
            ready_at = now
        due = state in (State.SCHEDULED, State.RETRYING)
        rank = rank_of(ready_at, plan.priority, lane.aging_ms) + job["moved"] if pending else None
        tx.run(
            "import_jobs",
            id=new_id,
            lane=lane.id,
            state=state,
            ties=ties,
            waits_on=waits_on,
            ready_at=ready_at,
            rank=rank,
            due_at=(now if job["due_at"] is None else job["due_at"]) if due else None,
            **{name: job[name] for name in _AS_THEY_ARE},
        )
        self._insert_spec(new_id, job, NewJob(plan, job["task"], job["args"], job["command"]))
        self._ledger.added((new_id,), state, plan.queue, job["task"])

    def _new_id(self, old: int) -> int:
        if old in self._new_ids:
            raise InvalidInput(f"The job {old} stands twice")
        if self._keeps_ids:
            new = old
        else:
            row = self._tx.row("take_ids", n=1)
            assert row is not None
            new = int(row[0])
        self._new_ids[old] = new
        return new

    def _take_keys(self, job: int, plan: Plan, until: int | None, *, unfinished: bool) -> int:
        tx = self._tx
        ties = ends.KEYED if plan.key else 0
        if plan.unique_key is not None:
            ties |= ends.UNIQUE
            if unfinished or (until is not None and until > tx.now):
                take_unique_key(tx, self._ledger, job, plan)
                tx.run("take_unique", scope=plan.queue, key=plan.unique_key, job=job, until=until)
        if plan.name is not None:
            ties |= ends.NAMED
            if unfinished:
                take_name(tx, job, plan.name)
        return ties

    def _tie(self, child: int, parents: Sequence[tuple[int, str, int]]) -> None:
        self._tx.many(
            "add_parents", [(parent, child, needs, met) for parent, needs, met in parents]
        )
        ids = json.dumps([parent for parent, *_ in parents])
        self._tx.run("mark_parents", tie=ends.PARENT, ids=ids)

    def _refuse_cycles(self) -> None:
        ids = self._new_ids
        graph = {child: [ids[parent] for parent, *_ in all_] for _, child, all_ in self._parents}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            olds = {new: old for old, new in ids.items()}
            ring = ", ".join(str(olds[new]) for new in error.args[1])
            raise DependencyCycle(
                f"The jobs {ring} of the import wait for each other: "
                "correct their parents; nothing was imported."
            ) from None

    def _insert_spec(self, job_id: int, job: Mapping[str, Any], new: NewJob) -> None:
        tx, plan = self._tx, new.plan
        tx.run(
            "add_specs",
            id=job_id,
            queue=plan.queue,
            task=new.task,
            command=new.command,
            args=new.args,
            options=plan.policy,
            created_at=job["created_at"],
            name=plan.name,
            tags=json.dumps(plan.tags) if plan.tags else None,
            owner=plan.owner,
            cwd=plan.cwd,
            env=None if plan.env is None else find_or_add_environment(tx, plan.env),
            host=plan.host,
            condition=plan.condition,
            key=plan.key,
            unique_key=plan.unique_key,
            orphaned=plan.orphaned,
            copy_of=self._new_ids.get(job["copy_of"]),
        )
        tx.many("add_tags", [(tag, job_id) for tag in plan.tags])
        tx.many(
            "add_runs",
            [
                (job_id, run["run"], None, run["started_at"], run["ended_at"], run["how"],
                 run["exit_code"], run["error"], run["tail"], run["result"], run["cpu_ms"],
                 run["peak_bytes"])
                for run in job["runs"]
            ],
        )  # fmt: skip


def _parsed(line: str) -> dict[str, Any]:
    try:
        record = parse_json(line)
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidInput("It contains a lone surrogate, which is no text") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"It is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise InvalidInput("It is not a JSON object")
    return record


def _plan_of(job: Mapping[str, Any]) -> Plan:
    same = ("queue", "priority", "name", "tags", "unique_key", "orphaned", "condition", "host",
            "key", "key_concurrency", "cwd", "env", "owner")  # fmt: skip
    return Plan(policy=job["options"], on_duplicate="refuse", **{name: job[name] for name in same})
