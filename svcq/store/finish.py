"""Finishing: outcomes of runs become states of jobs, all that has arrived in one transaction.

A report counts only from the worker and the run that hold the job. A late one changes nothing
and is answered as such.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from svcq.config import Config
from svcq.jobs import FINISHED, Claim, How, Outcome, State, Tally, next_state, waiting_state
from svcq.policy import policy_of, storable_text
from svcq.store.ends import settle_ties
from svcq.store.engine import NotAlone, Row, Transaction
from svcq.store.lanes import default_aging, rank_of
from svcq.store.ledger import Ledger
from svcq.store.letters import copy_dead_letter
from svcq.tuples import NamedTuple


class Place(NamedTuple):
    """What the counters need to know of a run. It cannot change while the run lasts."""

    queue: str
    task: str
    started_at: int


class Report(NamedTuple):
    """How a run ended, as its worker tells it; `place` saves the store a look at the job."""

    job: int
    run: int
    worker: int
    outcome: Outcome
    place: Place | None = None

    @classmethod
    def of(cls, claim: Claim, outcome: Outcome) -> Report:
        place = Place(claim.queue, claim.task, claim.started_at)
        return cls(claim.id, claim.run, claim.worker, outcome, place)


class _Held(NamedTuple):
    id: int
    lane: int
    state: str
    run: int
    worker: int
    ties: int
    cancel_requested: int
    failures: int
    losses: int
    interruptions: int
    snoozes: int
    started_at: int
    priority: int
    ready_at: int
    waits_on: int
    queue: str
    task: str


def finish(
    tx: Transaction, ledger: Ledger, reports: Sequence[Report], config: Config
) -> tuple[list[State | None], bool]:
    """Write what became of each run; None for a report that came too late. And whether other jobs
    had to do with one of them."""
    states: list[State | None] = [None] * len(reports)
    well: list[tuple[int, Report]] = []
    others: list[tuple[int, Report]] = []
    seen: set[tuple[int, int, int]] = set()
    for at, report in enumerate(reports):
        if report[:3] in seen:
            continue  # a second report of the same run comes too late
        seen.add(report[:3])
        happy = report.place is not None and report.outcome.how is How.COMPLETED
        (well if happy else others).append((at, report))
    held = _held(tx, [report.job for _, report in others])
    if not tx.alone and any(job.ties for job in held.values()):
        raise NotAlone
    for at, report in others:
        job = held.get(report.job)
        if job is None or (job.run, job.worker) != (report.run, report.worker):
            continue
        if report.outcome.how is How.COMPLETED:
            place = Place(job.queue, job.task, job.started_at)
            well.append((at, report._replace(place=place)))
            continue
        ledger.timed(job.queue, report.outcome.how, (tx.now - job.started_at,))
        tx.many("add_runs", [_history(tx, report, job.started_at)])
        states[at] = _settle(tx, ledger, job, report.outcome, config)
    done, tied = _complete(tx, ledger, well)
    for at in done:
        states[at] = State.COMPLETED
    return states, tied or any(job.ties for job in held.values())


def _held(tx: Transaction, ids: Sequence[int]) -> dict[int, _Held]:
    if not ids:
        return {}
    return {row[0]: _Held._make(row) for row in tx.rows("held_runs", ids=json.dumps(ids))}


def _complete(
    tx: Transaction, ledger: Ledger, reports: Sequence[tuple[int, Report]]
) -> tuple[list[int], bool]:
    """Write the runs that ended well, most of them in one statement; which reports were in time,
    and whether other jobs had to do with one of them."""
    batches: dict[tuple[int, int], dict[int, tuple[int, Report]]] = defaultdict(dict)
    for at, report in reports:
        batches[report.worker, report.run][report.job] = (at, report)
    written: list[int] = []
    ended: dict[tuple[str, str], list[Report]] = defaultdict(list)
    tied: list[tuple[int, int]] = []
    for (worker, run), batch in batches.items():
        ids = json.dumps(list(batch))
        for job, ties in tx.rows("complete_runs", ids=ids, worker=worker, run=run, now=tx.now):
            at, report = batch[job]
            written.append(at)
            ended[report.place[:2]].append(report)  # type: ignore[index]
            if ties:
                tied.append((job, ties))
    if tied and not tx.alone:
        raise NotAlone
    for (queue, task), done in ended.items():
        ledger.moved([one.job for one in done], State.PROCESSING, State.COMPLETED, queue, task)
        times = [tx.now - one.place.started_at for one in done if one.place is not None]
        ledger.timed(queue, How.COMPLETED, times)
        tx.many("add_runs", [
            _history(tx, one, one.place.started_at)
            for one in done if one.place is not None and one.outcome.says_something
        ])  # fmt: skip
    for job, ties in tied:
        settle_ties(tx, ledger, job, ties, State.COMPLETED, ran=True)
    return written, bool(tied)


def _history(tx: Transaction, report: Report, started_at: int) -> Row:
    outcome = report.outcome
    return (
        report.job, report.run, report.worker, started_at, tx.now, str(outcome.how),
        outcome.exit_code, _kept(outcome.error), _kept(outcome.tail), outcome.result,
        outcome.cpu_ms, outcome.peak_bytes,
    )  # fmt: skip


def _kept(text: str | None) -> str | None:
    """Jobs say what they like; one odd character must not cost a batch its reports."""
    return None if text is None else storable_text(text, "output")


def _settle(tx: Transaction, ledger: Ledger, job: _Held, outcome: Outcome, config: Config) -> State:
    """Write a run that did not simply succeed."""
    row = tx.row("policy_layers", id=job.id)
    assert row is not None
    aging_ms, *layers = row
    policy = policy_of(config.jobs, *layers)
    tally = Tally(job.failures, job.losses, job.interruptions, job.snoozes)
    verdict = next_state(outcome, tally, policy.bounds, bool(job.cancel_requested))
    run_at = None
    if outcome.how is How.SNOOZED:
        run_at = tx.now + (outcome.delay_ms or 0)
    elif verdict.goal is State.RETRYING:
        delay = outcome.delay_ms
        run_at = tx.now + (policy.retry_delay(verdict.tally.failures) if delay is None else delay)
    state = verdict.goal or waiting_state(
        held=False, waits_on=job.waits_on, run_at=run_at, now=tx.now
    )
    tx.run(
        "settle_run",
        id=job.id,
        worker=job.worker,
        run=job.run,
        state=state,
        rank=rank_of(job.ready_at, job.priority, aging_ms) if state is State.PENDING else None,
        due_at=run_at if state in (State.SCHEDULED, State.RETRYING) else None,
        run_at=run_at,
        finished_at=tx.now if state in FINISHED else None,
        reason=verdict.reason,
        **verdict.tally._asdict(),
    )
    ledger.moved((job.id,), State.PROCESSING, state, job.queue, job.task)
    if job.ties:
        settle_ties(tx, ledger, job.id, job.ties, state, ran=True)
    if state is State.DEAD:
        copy_dead_letter(tx, ledger, job.id, default_aging(config))
    return state
