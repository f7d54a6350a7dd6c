"""Unique keys and names: who has them, what a second job gets, when they are free again."""

from __future__ import annotations

import pytest

from svcq.errors import NameTaken, UniqueTaken
from svcq.jobs import Outcome, State, cancelled, completed, failed, interrupted, rejected, snoozed
from svcq.store import Added
from tests.store.conftest import Desk


def test_by_default_the_existing_job_comes_back(desk: Desk) -> None:
    first = desk.add(unique_key="a")
    added = desk.store.enqueue([desk.new(unique_key="a")])
    assert added == [Added(first, State.PENDING, desk.clock.now, created=False)]
    assert desk.store.counts()["pending"] == 1


def test_the_existing_job_comes_back_within_one_batch_too(desk: Desk) -> None:
    first, second, other = desk.store.enqueue(
        [desk.new(unique_key="a"), desk.new(unique_key="a"), desk.new(unique_key="b")]
    )
    assert (second.id, second.created) == (first.id, False)
    assert other.created


def test_a_job_that_runs_holds_its_key(desk: Desk) -> None:
    first = desk.add(unique_key="a")
    desk.claim()
    assert desk.store.enqueue([desk.new(unique_key="a")]) == [
        Added(first, State.PROCESSING, desk.clock.now, created=False)
    ]


def test_a_caller_may_ask_to_be_refused(desk: Desk) -> None:
    first = desk.add(unique_key="daily report")
    before = desk.told()
    with pytest.raises(UniqueTaken, match="'daily report' in queue default") as caught:
        desk.add(unique_key="daily report", on_duplicate="refuse")
    assert caught.value.job == first
    assert f"job {first}, which is pending" in str(caught.value)
    assert desk.told() == before


@pytest.mark.parametrize("waiting", [{}, {"delay": 60}, {"hold": True}])
def test_a_caller_may_replace_a_job_that_waits(desk: Desk, waiting: dict[str, object]) -> None:
    first = desk.add(unique_key="a", **waiting)
    second = desk.add(unique_key="a", on_duplicate="replace")
    assert desk.state(first) is State.CANCELLED
    assert desk.get(first).reason == "replaced by a newer job"
    assert desk.store.enqueue([desk.new(unique_key="a")])[0].id == second


def test_a_job_that_waits_for_its_next_attempt_can_be_replaced(desk: Desk) -> None:
    first = desk.add(unique_key="a")
    desk.run(failed("boom"))
    desk.add(unique_key="a", on_duplicate="replace")
    assert desk.state(first) is State.CANCELLED


def test_a_job_that_runs_cannot_be_replaced(desk: Desk) -> None:
    first = desk.add(unique_key="a")
    desk.claim()
    with pytest.raises(UniqueTaken, match=f"job {first}, which is processing"):
        desk.add(unique_key="a", on_duplicate="replace")
    assert desk.state(first) is State.PROCESSING


def test_a_key_belongs_to_its_queue(desk: Desk) -> None:
    first = desk.add(unique_key="a", queue="mail")
    second = desk.add(unique_key="a", queue="video", on_duplicate="refuse")
    assert first != second


@pytest.mark.parametrize("outcome", [completed(), rejected("no"), cancelled()])
def test_a_key_is_free_when_its_job_ends(desk: Desk, outcome: Outcome) -> None:
    first = desk.add(unique_key="a", name="report")
    desk.run(outcome)
    assert desk.add(unique_key="a", name="report", on_duplicate="refuse") != first


def test_a_key_is_free_when_its_job_is_cancelled_expires_or_is_purged(desk: Desk) -> None:
    for end in (
        desk.store.cancel,
        lambda _: (desk.clock.advance(11), desk.store.expire()),
        lambda _: desk.store.purge([State.PENDING]),
    ):
        job = desk.add(unique_key="a", name="report", on_duplicate="refuse", expires=10)
        end(job)


@pytest.mark.parametrize("outcome", [failed("boom"), snoozed(9), interrupted()])
def test_a_key_stays_taken_between_runs(desk: Desk, outcome: Outcome) -> None:
    first = desk.add(unique_key="a")
    desk.run(outcome)
    assert desk.add(unique_key="a") == first


def test_a_window_holds_the_key_after_the_end(desk: Desk) -> None:
    first = desk.add(unique_key="a", unique_for=60)
    desk.run()
    assert desk.store.enqueue([desk.new(unique_key="a")]) == [
        Added(first, State.COMPLETED, desk.clock.now, created=False)
    ]
    with pytest.raises(UniqueTaken, match=f"job {first}, which is completed"):
        desk.add(unique_key="a", on_duplicate="refuse")
    desk.clock.advance(60)
    assert desk.add(unique_key="a") != first


def test_a_window_that_has_passed_frees_nothing_while_the_job_lives(desk: Desk) -> None:
    first = desk.add(unique_key="a", unique_for=60, hold=True)
    desk.clock.advance(61)
    assert desk.add(unique_key="a") == first


def test_a_window_outlives_a_purge(desk: Desk) -> None:
    first = desk.add(unique_key="a", unique_for=60)
    desk.run()
    desk.store.purge([State.COMPLETED])
    with pytest.raises(UniqueTaken, match=f"taken by job {first}, which was removed: wait until"):
        desk.add(unique_key="a")
    desk.clock.advance(60)
    desk.store.cleanup()
    assert desk.add(unique_key="a", on_duplicate="refuse") > first


def test_an_ended_job_within_its_window_can_be_replaced(desk: Desk) -> None:
    first = desk.add(unique_key="a", unique_for=60)
    desk.run()
    second = desk.add(unique_key="a", on_duplicate="replace")
    assert desk.state(first) is State.COMPLETED
    assert desk.add(unique_key="a") == second


def test_a_removed_job_within_its_window_can_be_replaced(desk: Desk) -> None:
    first = desk.add(unique_key="a", unique_for=60)
    desk.run()
    desk.store.purge([State.COMPLETED])
    second = desk.add(unique_key="a", on_duplicate="replace")
    assert second > first
    assert desk.add(unique_key="a") == second


def test_retrying_into_a_taken_key_is_refused(desk: Desk) -> None:
    first = desk.add(unique_key="a")
    desk.run()
    second = desk.add(unique_key="a")
    before = desk.told()
    with pytest.raises(UniqueTaken, match=f"taken by job {second}"):
        desk.store.retry(first)
    assert desk.state(first) is State.COMPLETED
    assert desk.told() == before


def test_a_retried_job_has_its_key_again(desk: Desk) -> None:
    first = desk.add(unique_key="a", name="report")
    desk.run()
    desk.store.retry(first)
    assert desk.add(unique_key="a") == first
    with pytest.raises(NameTaken):
        desk.add(name="report")
    desk.run()
    assert desk.add(unique_key="a", name="report") != first


def test_a_job_is_not_in_its_own_way_when_it_is_retried_within_its_window(desk: Desk) -> None:
    first = desk.add(unique_key="a", unique_for=60)
    desk.run()
    assert desk.store.retry(first) is State.PENDING
    desk.run()
    assert desk.add(unique_key="a") == first
    desk.clock.advance(60)
    assert desk.add(unique_key="a") != first


def test_two_unfinished_jobs_cannot_have_one_name(desk: Desk) -> None:
    first = desk.add(name="backup")
    before = desk.told()
    with pytest.raises(NameTaken, match=f"'backup' belongs to job {first}, which is pending") as no:
        desk.add(name="backup", queue="other")
    assert no.value.job == first
    assert desk.told() == before


def test_a_name_resolves_to_the_newest_job(desk: Desk) -> None:
    desk.add(name="backup")
    desk.run()
    newest = desk.add(name="backup")
    assert desk.store.find_named("backup") == newest


def test_a_name_and_a_key_do_not_collide(desk: Desk) -> None:
    assert desk.add(name="a") != desk.add(unique_key="a", on_duplicate="refuse")


def test_retrying_into_a_taken_name_is_refused(desk: Desk) -> None:
    first = desk.add(name="backup")
    desk.run()
    second = desk.add(name="backup")
    with pytest.raises(NameTaken, match=f"job {second}"):
        desk.store.retry(first)


def test_a_replaced_job_takes_the_jobs_after_it_along(desk: Desk) -> None:
    first = desk.add(unique_key="a")
    child = desk.add(after=first)
    desk.add(unique_key="a", on_duplicate="replace")
    assert desk.state(child) is State.CANCELLED
