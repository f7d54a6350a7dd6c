"""What time does: jobs become due, expire, and are let go; and what a purge takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from svcq.errors import InvalidInput, NotFound
from svcq.jobs import State, completed, failed, rejected
from svcq.store import Filter, Store, tidy
from tests.store.conftest import Desk
from tests.store.tables import look, write

DAY = 86_400


def gone(desk: Desk, job: int) -> bool:
    try:
        desk.state(job)
    except NotFound:
        return True
    return False


def rows_in(store: Store, table: str) -> int:
    return look(store, f"SELECT count(*) FROM {table}")[0][0]


def test_jobs_whose_time_has_come_are_promoted(desk: Desk) -> None:
    soon, later, retrying = desk.add(delay=5), desk.add(delay=60), desk.add()
    desk.run(failed("boom", delay_ms=5000))
    desk.clock.advance(5)
    assert desk.store.promote() == 2
    assert [desk.state(job) for job in (soon, later, retrying)] == [
        State.PENDING, State.SCHEDULED, State.PENDING,
    ]  # fmt: skip
    assert desk.store.promote() == 0


def test_the_next_thing_to_happen_is_known(desk: Desk) -> None:
    assert desk.store.next_due() is None
    desk.add(delay=60)
    desk.add(hold=True, expires=30)
    assert desk.store.next_due() == desk.clock.now + 30_000


@pytest.mark.parametrize(
    "options", [{}, {"hold": True}, {"delay": 60}, {"after": 1}], ids=lambda o: str([*o])
)
def test_a_job_expires_in_whichever_state_it_waits(desk: Desk, options: dict[str, object]) -> None:
    desk.add(hold=True)
    job = desk.add(expires=5, **options)
    desk.clock.advance(5)
    assert desk.store.expire() == 1
    assert desk.get(job).reason == "expired"


def test_many_jobs_expire_over_a_few_calls(desk: Desk) -> None:
    desk.store.enqueue([desk.new(expires=5) for _ in range(500)])
    desk.clock.advance(6)
    while desk.store.expire():
        pass
    assert desk.store.counts()["dead"] == 500


def end_one_of_each(desk: Desk, queue: str = "default") -> dict[State, int]:
    jobs = {}
    for state, outcome in ((State.COMPLETED, completed("1")), (State.DEAD, rejected("no"))):
        jobs[state] = desk.add(queue=queue)
        desk.run(outcome)
    jobs[State.CANCELLED] = desk.add(queue=queue)
    desk.store.cancel(jobs[State.CANCELLED])
    return jobs


@pytest.mark.parametrize(
    ("days", "left"),
    [
        (6.9, {State.COMPLETED, State.DEAD, State.CANCELLED}),
        (7, {State.DEAD}),
        (29.9, {State.DEAD}),
        (30, set()),
    ],
)
def test_each_finished_state_is_kept_for_its_time(
    desk: Desk, days: float, left: set[State]
) -> None:
    jobs = end_one_of_each(desk)
    waiting = desk.add()
    desk.clock.advance(days * DAY)
    assert desk.store.cleanup() == 3 - len(left)
    assert {state for state, job in jobs.items() if not gone(desk, job)} == left
    assert desk.state(waiting) is State.PENDING
    assert sum(desk.store.counts().values()) == len(left) + 1


def test_a_queue_may_keep_longer_or_shorter(desk: Desk) -> None:
    desk.store.set_queue("short", {"keep_completed": "1h"})
    desk.store.set_queue("long", {"keep_completed": "30d"})
    jobs = {q: end_one_of_each(desk, q)[State.COMPLETED] for q in ("short", "default", "long")}
    desk.clock.advance(2 * 3600)
    desk.store.cleanup()
    assert {q for q, job in jobs.items() if gone(desk, job)} == {"short"}
    desk.clock.advance(8 * DAY)
    desk.store.cleanup()
    assert {q for q, job in jobs.items() if gone(desk, job)} == {"short", "default"}


def test_a_large_past_is_let_go_whatever_is_kept_between(desk: Desk) -> None:
    desk.store.set_queue("long", {"keep_completed": "30d"})
    for i in range(30):
        desk.store.enqueue([desk.new(queue=("default", "long")[i % 2]) for _ in range(20)])
    while claims := desk.claim(100):
        for claim in claims:
            desk.end(claim)
    desk.clock.advance(8 * DAY)
    assert desk.store.cleanup() == 300
    assert desk.store.counts()["completed"] == 300


@pytest.mark.parametrize("child", [{}, {"hold": True}], ids=["blocked", "held"])
def test_a_parent_is_kept_while_a_job_waits_for_it(desk: Desk, child: dict[str, object]) -> None:
    parent = desk.add()
    waiting = desk.add(after=parent, if_parent_fails="wait", **child)
    desk.run(rejected("no"))
    desk.clock.advance(60 * DAY)
    assert desk.store.cleanup() == 0
    desk.store.cancel(waiting)
    assert desk.store.cleanup() == 1
    assert gone(desk, parent)


def test_a_removed_job_leaves_nothing_behind(desk: Desk) -> None:
    desk.add(tags=["a"], name="n", unique_key="u", concurrency_key="k", env={"A": "1"})
    desk.run(failed("boom", tail="x"))
    desk.store.purge(list(set(State) - {State.PROCESSING}))
    desk.store.cleanup()
    tables = ("jobs", "specs", "tags", "runs", "unique_keys", "environments", "keys", "parents")
    assert {table: rows_in(desk.store, table) for table in tables} == dict.fromkeys(tables, 0)


def test_an_environment_goes_with_the_last_job_that_has_it(desk: Desk) -> None:
    first, second = desk.add(env={"A": "1"}), desk.add(env={"A": "1"})
    (claim, _) = desk.claim(2)
    assert claim.env is not None
    for job, left in ((first, 1), (second, 0)):
        desk.store.rescue(desk.worker, rejected("no"))
        write(desk.store, "DELETE FROM specs WHERE id = ?", (job,))
        desk.store.cleanup()
        assert (desk.store.environment(claim.env) is not None) is bool(left)


@pytest.mark.parametrize("state", sorted(set(State) - {State.PROCESSING}))
def test_a_purge_takes_one_state_and_leaves_the_others(desk: Desk, state: State) -> None:
    from tests.store.test_transitions import MAKE

    jobs = {one: make(desk) for one, make in MAKE.items() if one is not State.PENDING}
    jobs[State.PENDING] = desk.add()
    before = desk.store.counts()
    assert desk.store.purge([state]) == before[state]
    assert gone(desk, jobs[state])
    assert desk.store.counts()[state] == 0


def test_a_purge_may_be_of_one_queue(desk: Desk) -> None:
    here, there = desk.add(queue="a"), desk.add(queue="b")
    assert desk.store.purge([State.PENDING], "a") == 1
    assert (gone(desk, here), gone(desk, there)) == (True, False)


def test_a_purge_of_many_goes_in_batches(desk: Desk) -> None:
    desk.store.enqueue([desk.new() for _ in range(450)])
    assert desk.store.purge([State.PENDING]) == 450


def test_what_a_worker_holds_is_never_purged(desk: Desk) -> None:
    desk.add()
    desk.claim()
    with pytest.raises(InvalidInput, match="processing cannot be purged: cancel them first"):
        desk.store.purge([State.PROCESSING])
    assert desk.store.counts()["processing"] == 1


def test_old_changes_are_let_go_and_their_numbers_go_on(desk: Desk) -> None:
    for _ in range(10):
        desk.add()
    last = desk.store.last_change()
    desk.clock.advance(2 * DAY)
    desk.store.cleanup()
    assert desk.store.last_change() == last
    assert len(desk.store.changes(0)) == 1
    desk.add()
    assert desk.store.last_change() == last + 1


def test_old_changes_are_let_go_however_many_there_are(desk: Desk) -> None:
    """One look every ten minutes must keep up with a queue that never rests."""
    for _ in range(3):
        desk.store.enqueue([desk.new() for _ in range(tidy.CHANGES_BATCH)])
    desk.clock.advance(2 * DAY)
    new = desk.add()
    desk.store.cleanup()
    assert [change.job for change in desk.store.changes(0)] == [new]


def test_changes_of_a_clock_that_was_far_ahead_do_not_stand_in_the_way(desk: Desk) -> None:
    desk.clock.advance(3 * DAY)
    desk.store.enqueue([desk.new() for _ in range(tidy.CHANGES_BATCH)])
    desk.clock.advance(-3 * DAY)
    desk.add()
    desk.clock.advance(DAY + 1)
    new = desk.add()
    desk.store.cleanup()
    assert [change.job for change in desk.store.changes(0)] == [new]


def test_old_activity_is_let_go(desk: Desk) -> None:
    desk.add()
    desk.clock.advance(31 * DAY)
    desk.store.cleanup()
    assert rows_in(desk.store, "minutes") == 0


@pytest.mark.parametrize("config", ["sqlite"], indirect=True)
def test_the_file_shrinks(desk: Desk, open_again: Callable[[], Store]) -> None:
    file = Path(desk.store.config.store)
    desk.store.enqueue([desk.new("work", f'[["{"x" * 2000}"],{{}}]') for _ in range(2000)])
    desk.store.close()
    full = file.stat().st_size
    desk.store.purge([State.PENDING])
    desk.store.cleanup()
    desk.store.close()
    assert file.stat().st_size < full / 2
    assert open_again().list(Filter()) == []
