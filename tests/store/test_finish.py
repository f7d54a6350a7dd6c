"""Finishing: what becomes of a job after each kind of run, and which reports count."""

from __future__ import annotations

import pytest

from svcq.jobs import (
    Claim,
    How,
    Outcome,
    State,
    cancelled,
    completed,
    failed,
    interrupted,
    lost,
    rejected,
    snoozed,
    timed_out,
)
from svcq.store import Report, WorkerInfo
from tests.store.conftest import Desk

EVERY_OUTCOME = {
    "completed": completed("1"),
    "failed": failed("boom"),
    "rejected": rejected("no such file"),
    "timed_out": timed_out("too slow"),
    "cancelled": cancelled(),
    "interrupted": interrupted(),
    "lost": lost("its worker died"),
    "snoozed": snoozed(5000),
}
AFTERWARDS = {
    "completed": State.COMPLETED,
    "failed": State.RETRYING,
    "rejected": State.DEAD,
    "timed_out": State.RETRYING,
    "cancelled": State.CANCELLED,
    "interrupted": State.PENDING,
    "lost": State.PENDING,
    "snoozed": State.SCHEDULED,
}


def report(claim: Claim, outcome: Outcome) -> Report:
    return Report(claim.id, claim.run, claim.worker, outcome)


@pytest.mark.parametrize("how", EVERY_OUTCOME)
def test_each_outcome_moves_the_job_to_its_state(desk: Desk, how: str) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    assert desk.end(claim, EVERY_OUTCOME[how]) is AFTERWARDS[how]
    shown = desk.get(job)
    assert shown.state is AFTERWARDS[how]
    assert (shown.finished_at is not None) is (
        AFTERWARDS[how] in ("completed", "dead", "cancelled")
    )
    assert desk.store.counts()[AFTERWARDS[how]] == 1


@pytest.mark.parametrize("how", EVERY_OUTCOME)
def test_each_run_is_in_the_history(desk: Desk, how: str) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    desk.clock.advance(3)
    desk.end(claim, EVERY_OUTCOME[how])
    (run,) = desk.store.runs(job)
    assert (run.job, run.run, run.worker, run.host) == (job, 1, desk.worker, "here")
    assert run.how is How(how)
    assert run.error == EVERY_OUTCOME[how].error
    assert (run.ended_at - run.started_at).total_seconds() == 3


def test_history_has_exit_code_tail_and_result(desk: Desk) -> None:
    job = desk.add(backoff="fixed", backoff_base=0)
    desk.run(failed("exit code 2", exit_code=2, tail="cannot open a.mov"))
    desk.run(completed('{"size": 3}', exit_code=0, tail="done"))
    first, second = desk.store.runs(job)
    assert (first.exit_code, first.tail, first.result) == (2, "cannot open a.mov", None)
    assert (second.exit_code, second.tail, second.result) == (0, "done", {"size": 3})
    shown = desk.get(job)
    assert (shown.result, shown.exit_code, shown.error) == ({"size": 3}, 0, None)


@pytest.mark.parametrize("how", EVERY_OUTCOME)
def test_after_a_request_to_cancel_only_a_real_success_wins(desk: Desk, how: str) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    assert desk.store.cancel(job) is State.PROCESSING
    expected = State.COMPLETED if how == "completed" else State.CANCELLED
    assert desk.end(claim, EVERY_OUTCOME[how]) is expected
    assert desk.get(job).cancel_requested is False


@pytest.mark.parametrize("how", EVERY_OUTCOME)
def test_a_report_counts_only_from_the_worker_that_holds_the_job(desk: Desk, how: str) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    other = desk.store.register(WorkerInfo(host="there", pid=2))
    before = desk.told()
    assert desk.end(claim._replace(worker=other), EVERY_OUTCOME[how]) is None
    assert desk.state(job) is State.PROCESSING
    assert desk.told() == before
    assert desk.store.runs(job) == []


@pytest.mark.parametrize("run", [0, 2])
def test_a_report_counts_only_for_the_run_that_holds_the_job(desk: Desk, run: int) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    before = desk.told()
    assert desk.end(claim._replace(run=run)) is None
    assert desk.told() == before
    assert desk.state(job) is State.PROCESSING


def test_a_report_for_a_job_that_does_not_exist_changes_nothing(desk: Desk) -> None:
    assert desk.store.finish([Report(99, 1, desk.worker, completed())]) == [None]
    assert desk.store.last_change() == 0


def test_the_second_report_of_a_run_changes_nothing(desk: Desk) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    desk.end(claim)
    before = desk.told()
    assert desk.end(claim, failed("boom")) is None
    assert desk.told() == before
    assert desk.state(job) is State.COMPLETED


def test_the_second_report_of_a_run_in_one_batch_changes_nothing(desk: Desk) -> None:
    job = desk.add(max_attempts=5)
    (claim,) = desk.claim()
    answers = desk.store.finish([report(claim, failed("boom")), report(claim, completed("1"))])
    assert answers == [State.RETRYING, None]
    assert desk.get(job).failures == 1
    assert len(desk.store.runs(job)) == 1


def test_a_report_from_before_a_rescue_changes_nothing(desk: Desk) -> None:
    job = desk.add()
    (late,) = desk.claim()
    desk.store.rescue(desk.worker, lost("its worker died"))
    assert desk.end(late, completed("1")) is None
    desk.worker = desk.store.register(WorkerInfo(host="here", pid=3))
    (again,) = desk.claim()
    assert desk.end(late, completed("1")) is None
    assert desk.state(job) is State.PROCESSING
    assert desk.end(again) is State.COMPLETED


def test_the_same_worker_cannot_report_an_earlier_run(desk: Desk) -> None:
    desk.add(backoff="fixed", backoff_base=0)
    (first,) = desk.claim()
    desk.end(first, failed("boom"))
    (second,) = desk.claim()
    assert desk.end(first) is None
    assert desk.end(second) is State.COMPLETED


def test_a_batch_ends_each_job_in_its_own_way(desk: Desk) -> None:
    for _ in EVERY_OUTCOME:
        desk.add()
    claims = desk.claim(10)
    reports = [report(c, o) for c, o in zip(claims, EVERY_OUTCOME.values(), strict=True)]
    late = report(claims[0]._replace(run=7), completed())
    assert desk.store.finish([late, *reports]) == [None, *AFTERWARDS.values()]


def test_an_empty_batch_changes_nothing(desk: Desk) -> None:
    assert desk.store.finish([]) == []
    assert desk.store.last_change() == 0


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({"backoff": "exponential", "backoff_base": 3}, [3, 9, 27, 81]),
        ({"backoff": "exponential", "backoff_base": 3, "backoff_cap": "20s"}, [3, 9, 20, 20]),
        ({"backoff": "linear", "backoff_base": 5}, [5, 10, 15, 20]),
        ({"backoff": "linear", "backoff_base": 5, "backoff_cap": 12}, [5, 10, 12, 12]),
        ({"backoff": "fixed", "backoff_base": 7}, [7, 7, 7, 7]),
        ({"backoff": "exponential", "backoff_base": 0.5}, [0.5, 0.25, 0.125, 0.062]),
    ],
)
def test_the_wait_before_a_retry_follows_the_backoff(
    desk: Desk, options: dict[str, object], waits: list[float]
) -> None:
    job = desk.add(max_attempts=10, jitter=0, **options)
    for wait in waits:
        desk.run(failed("boom"))
        due = desk.get(job).run_at
        assert due is not None
        assert due.timestamp() - desk.clock.now / 1000 == pytest.approx(wait, abs=0.001)
        desk.clock.advance(wait - 0.001)
        assert desk.claim() == []
        desk.clock.advance(0.001)


def test_jitter_varies_the_wait_by_its_part(desk: Desk) -> None:
    waits = set()
    for _ in range(30):
        job = desk.add(backoff="fixed", backoff_base=100, jitter=0.5)
        desk.run(failed("boom"))
        due = desk.get(job).run_at
        assert due is not None
        waits.add(due.timestamp() - desk.clock.now / 1000)
    assert 50 <= min(waits) < max(waits) <= 150
    assert len(waits) > 10


def test_a_run_may_name_its_own_delay(desk: Desk) -> None:
    job = desk.add(backoff="fixed", backoff_base=1000)
    desk.run(failed("come back soon", delay_ms=2000))
    desk.clock.advance(2)
    assert desk.claimed() == [job]


def test_a_delay_of_nothing_is_a_delay_too(desk: Desk) -> None:
    job = desk.add(backoff="fixed", backoff_base=1000)
    desk.run(failed("at once", delay_ms=0))
    assert desk.claimed() == [job]


def test_a_job_is_dead_when_it_is_out_of_attempts(desk: Desk) -> None:
    job = desk.add(max_attempts=3, backoff="fixed", backoff_base=0)
    for _ in range(3):
        desk.run(failed("boom"))
    shown = desk.get(job)
    assert (shown.state, shown.reason) == (State.DEAD, "out of attempts")
    assert (shown.failures, shown.attempts, shown.error) == (3, 3, "boom")
    assert [run.run for run in desk.store.runs(job)] == [1, 2, 3]


def test_the_queue_speaks_where_the_job_is_silent(desk: Desk) -> None:
    desk.store.set_queue("default", {"max_attempts": 1})
    silent, own = desk.add(), desk.add(max_attempts=2)
    for claim in desk.claim(2):
        desk.end(claim, failed("boom"))
    assert (desk.state(silent), desk.state(own)) == (State.DEAD, State.RETRYING)


def test_a_rejected_job_is_dead_at_once(desk: Desk) -> None:
    job = desk.add(max_attempts=9)
    desk.run(rejected("no such customer"))
    shown = desk.get(job)
    assert (shown.state, shown.reason, shown.error) == (State.DEAD, "rejected", "no such customer")
    assert shown.failures == 0


@pytest.mark.parametrize(
    ("outcome", "options", "counter", "reason"),
    [
        (lost("gone"), {"max_losses": 2}, "losses", "lost too often"),
        (interrupted(), {"max_interruptions": 2}, "interruptions", "interrupted too often"),
    ],
)
def test_losses_and_interruptions_are_bounded_by_their_own_numbers(
    desk: Desk, outcome: Outcome, options: dict[str, object], counter: str, reason: str
) -> None:
    job = desk.add(max_attempts=1, **options)
    for _ in range(2):
        desk.run(outcome)
        assert desk.state(job) is State.PENDING
    desk.run(outcome)
    shown = desk.get(job)
    assert (shown.state, shown.reason, shown.failures) == (State.DEAD, reason, 0)
    assert getattr(shown, counter) == 3


def test_a_job_may_ask_to_be_dead_when_lost(desk: Desk) -> None:
    job = desk.add(on_lost="dead", max_losses=5)
    desk.run(lost("gone"))
    assert desk.get(job).reason == "lost too often"


def test_interruption_is_not_failure(desk: Desk) -> None:
    job = desk.add(max_attempts=1)
    for _ in range(20):
        desk.run(interrupted())
    shown = desk.get(job)
    assert (shown.state, shown.failures, shown.attempts) == (State.PENDING, 0, 0)
    assert shown.interruptions == 20


def test_an_interrupted_job_goes_back_to_its_place_in_line(desk: Desk) -> None:
    first = desk.add()
    desk.clock.advance(1)
    second = desk.add()
    desk.run(interrupted())
    assert desk.claimed(2) == [first, second]


def test_a_snoozed_job_waits_and_counts_nothing_against_itself(desk: Desk) -> None:
    job = desk.add(max_attempts=1)
    for _ in range(5):
        desk.run(snoozed(10_000))
        assert desk.state(job) is State.SCHEDULED
        assert desk.claim() == []
        desk.clock.advance(10)
    shown = desk.get(job)
    assert (shown.snoozes, shown.failures) == (5, 0)
    desk.run()
    assert desk.state(job) is State.COMPLETED


def test_a_snooze_of_no_time_makes_it_pending(desk: Desk) -> None:
    job = desk.add()
    desk.run(snoozed(0))
    assert desk.state(job) is State.PENDING


def test_progress_is_taken_from_the_run_that_holds_the_job(desk: Desk) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    assert desk.store.progress(claim, 0.4, "encoding")
    shown = desk.get(job)
    assert (shown.progress, shown.progress_note) == (0.4, "encoding")
    assert not desk.store.progress(claim._replace(run=2), 0.9)
    desk.end(claim)
    before = desk.told()
    assert not desk.store.progress(claim, 0.9)
    assert desk.told() == before
    assert desk.get(job).progress == 0.4
