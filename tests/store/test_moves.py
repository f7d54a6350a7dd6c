"""What people do with a job: cancel, hold, release, retry, move."""

from __future__ import annotations

import pytest

from svcq.errors import WrongState
from svcq.jobs import State, failed, interrupted, lost, snoozed
from tests.store.conftest import Desk


def test_a_waiting_job_is_cancelled_at_once(desk: Desk) -> None:
    job = desk.add()
    assert desk.store.cancel(job, "no longer needed") is State.CANCELLED
    assert desk.get(job).reason == "no longer needed"
    assert desk.claim() == []


def test_a_running_job_is_asked_to_stop_once(desk: Desk) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    for _ in range(2):
        assert desk.store.cancel(job) is State.PROCESSING
    assert desk.get(job).cancel_requested
    assert desk.store.cancel_requests(desk.worker) == [(job, claim.run)]
    assert [c.kind for c in desk.store.changes(0)].count("cancel_requested") == 1


def test_a_held_and_released_job_has_its_old_place_in_line(desk: Desk) -> None:
    first = desk.add()
    desk.clock.advance(1)
    second = desk.add()
    desk.store.hold(first)
    desk.clock.advance(60)
    desk.store.release(first)
    assert desk.claimed(2) == [first, second]


@pytest.mark.parametrize(
    ("options", "state"),
    [({}, State.PENDING), ({"delay": 60}, State.SCHEDULED)],
)
def test_a_released_job_stands_where_it_would_without_the_hold(
    desk: Desk, options: dict[str, object], state: State
) -> None:
    assert desk.store.release(desk.add(hold=True, **options)) is state


def test_a_retrying_job_that_was_held_is_not_out_of_attempts(desk: Desk) -> None:
    job = desk.add(max_attempts=3)
    desk.run(failed("boom"))
    desk.store.hold(job)
    desk.clock.advance(3600)
    assert desk.store.release(job) is State.PENDING
    assert desk.get(job).failures == 1


def test_a_retrying_job_can_be_let_go_now(desk: Desk) -> None:
    job = desk.add(backoff="fixed", backoff_base=1000)
    desk.run(failed("boom"))
    assert desk.store.retry(job) is State.PENDING
    assert desk.get(job).failures == 1
    assert desk.claimed() == [job]


def test_a_retry_by_a_person_counts_attempts_from_the_beginning(desk: Desk) -> None:
    job = desk.add(max_attempts=2, backoff="fixed", backoff_base=0)
    for outcome in (interrupted(), lost("gone"), snoozed(0), failed("1"), failed("2")):
        desk.run(outcome)
    assert desk.state(job) is State.DEAD
    desk.store.retry(job)
    shown = desk.get(job)
    assert (shown.failures, shown.losses, shown.interruptions, shown.snoozes) == (0, 0, 0, 0)
    assert (shown.run, shown.reason, shown.finished_at) == (5, None, None)
    desk.run(failed("3"))
    assert desk.state(job) is State.RETRYING
    assert [run.run for run in desk.store.runs(job)] == [1, 2, 3, 4, 5, 6]


def test_a_retried_job_stands_at_the_end_of_the_line(desk: Desk) -> None:
    again = desk.add()
    desk.run()
    desk.clock.advance(1)
    first = desk.add()
    desk.clock.advance(1)
    desk.store.retry(again)
    assert desk.claimed(2) == [first, again]


def test_a_retried_job_does_not_wait_for_its_old_time(desk: Desk) -> None:
    job = desk.add(delay=3600)
    desk.store.cancel(job)
    assert desk.store.retry(job) is State.PENDING


def test_a_retried_job_has_its_concurrency_key_again(desk: Desk) -> None:
    job = desk.add(concurrency_key="k")
    desk.run()
    desk.store.retry(job)
    other = desk.add(concurrency_key="k")
    (claim,) = desk.claim(5)
    assert claim.id == job
    desk.end(claim)
    assert desk.claimed(5) == [other]


def test_a_moved_job_is_first_or_last_of_its_queue(desk: Desk) -> None:
    jobs = [desk.add(priority=p) for p in (5, 0, 0)] + [desk.add(concurrency_key="k")]
    desk.store.move(jobs[2])
    desk.store.move(jobs[0], to_front=False)
    assert desk.claimed(4) == [jobs[2], jobs[1], jobs[3], jobs[0]]


def test_a_keyed_job_can_be_moved_to_the_front(desk: Desk) -> None:
    desk.add()
    desk.add(concurrency_key="k")
    last = desk.add(concurrency_key="k")
    desk.store.move(last)
    assert desk.claimed(1) == [last]


def test_a_moved_job_stays_in_front_of_later_ones_of_its_priority(desk: Desk) -> None:
    desk.add()
    moved = desk.add()
    desk.store.move(moved)
    desk.clock.advance(1)
    desk.add()
    assert desk.claimed(1) == [moved]


def test_an_edit_of_something_else_leaves_a_moved_job_in_front(desk: Desk) -> None:
    desk.add(priority=1)
    moved = desk.add()
    desk.store.move(moved)
    desk.edit(moved, tags=["urgent"])
    assert desk.claimed(1) == [moved]


def test_each_refusal_says_what_could_be_done(desk: Desk) -> None:
    job = desk.add()
    desk.claim()
    with pytest.raises(WrongState, match="cancel it instead"):
        desk.store.hold(job)
    with pytest.raises(WrongState, match="only a job that has ended or is retrying"):
        desk.store.retry(job)
