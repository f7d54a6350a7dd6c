"""Jobs that come after others."""

from __future__ import annotations

import pytest

from svcq.errors import DependencyCycle, NotFound
from svcq.jobs import Outcome, State, cancelled, completed, failed, interrupted, rejected
from svcq.store import Filter, Report
from tests.store.conftest import Desk

LONG_CHAIN = 2000


def test_a_child_waits_until_its_parent_has_completed(desk: Desk) -> None:
    parent = desk.add()
    child = desk.add(after=parent)
    assert desk.state(child) is State.BLOCKED
    assert desk.get(child).after == (parent,)
    assert desk.claimed(5) == [parent]


def test_a_child_may_run_when_all_parents_have_completed(desk: Desk) -> None:
    parents = [desk.add(), desk.add(), desk.add()]
    child = desk.add(after=parents)
    for claim in desk.claim(5):
        assert desk.state(child) is State.BLOCKED
        desk.end(claim)
    assert desk.state(child) is State.PENDING
    assert desk.claimed(5) == [child]


@pytest.mark.parametrize("outcome", [failed("boom"), interrupted()])
def test_a_parent_that_will_run_again_keeps_its_child_waiting(desk: Desk, outcome: Outcome) -> None:
    parent = desk.add()
    child = desk.add(after=parent)
    other = desk.add(after_any=parent)
    desk.run(outcome)
    assert desk.state(child) is State.BLOCKED
    assert desk.state(other) is State.BLOCKED


@pytest.mark.parametrize("outcome", [completed(), rejected("no"), cancelled()])
def test_after_any_waits_for_the_end_however_it_is(desk: Desk, outcome: Outcome) -> None:
    child = desk.add(after_any=desk.add())
    desk.run(outcome)
    assert desk.state(child) is State.PENDING


@pytest.mark.parametrize(
    ("outcome", "state"), [(rejected("no"), "dead"), (cancelled(), "cancelled")]
)
def test_a_parent_that_ends_badly_cancels_its_child(
    desk: Desk, outcome: Outcome, state: str
) -> None:
    parent = desk.add()
    child = desk.add(after=parent)
    desk.run(outcome)
    shown = desk.get(child)
    assert shown.state is State.CANCELLED
    assert shown.reason == f"job {parent}, which it comes after, is {state}"


def test_a_parent_that_expires_or_is_cancelled_waiting_cancels_its_child(desk: Desk) -> None:
    expiring, cancelled_ = desk.add(expires=5), desk.add()
    children = [desk.add(after=expiring), desk.add(after=cancelled_)]
    desk.store.cancel(cancelled_)
    desk.clock.advance(6)
    desk.store.expire()
    assert [desk.state(child) for child in children] == [State.CANCELLED] * 2


def test_a_held_child_is_cancelled_with_its_parent_too(desk: Desk) -> None:
    parent = desk.add()
    child = desk.add(after=parent, hold=True)
    desk.run(rejected("no"))
    assert desk.state(child) is State.CANCELLED


def test_a_held_child_stays_held_when_its_parent_completes(desk: Desk) -> None:
    child = desk.add(after=desk.add(), hold=True)
    desk.run()
    assert desk.state(child) is State.HELD
    assert desk.store.release(child) is State.PENDING


def test_a_child_released_before_its_parent_has_ended_is_blocked(desk: Desk) -> None:
    child = desk.add(after=desk.add(), hold=True)
    assert desk.store.release(child) is State.BLOCKED


def test_a_child_with_a_time_waits_for_both(desk: Desk) -> None:
    child = desk.add(after=desk.add(), delay=60)
    desk.run()
    assert desk.state(child) is State.SCHEDULED
    desk.clock.advance(60)
    assert desk.claimed() == [child]


def test_cancelling_goes_down_the_chain(desk: Desk) -> None:
    chain = [desk.add()]
    for _ in range(5):
        chain.append(desk.add(after=chain[-1]))
    desk.store.cancel(chain[0])
    assert {desk.state(job) for job in chain} == {State.CANCELLED}
    assert desk.store.counts()["blocked"] == 0


def test_a_diamond_runs_top_sides_bottom(desk: Desk) -> None:
    top = desk.add()
    sides = [desk.add(after=top), desk.add(after=top)]
    bottom = desk.add(after=sides)
    ran = []
    while claims := desk.claim(5):
        ran.append([claim.id for claim in claims])
        for claim in claims:
            desk.end(claim)
    assert ran == [[top], sides, [bottom]]


def test_a_diamond_is_cancelled_once(desk: Desk) -> None:
    top = desk.add()
    bottom = desk.add(after=[desk.add(after=top), desk.add(after=top)])
    desk.store.cancel(top)
    told = [change.kind for change in desk.store.changes(0) if change.job == bottom]
    assert told == ["blocked", "cancelled"]


def test_a_child_may_ask_to_wait_for_a_parent_that_failed(desk: Desk) -> None:
    parent = desk.add(max_attempts=1)
    child = desk.add(after=parent, if_parent_fails="wait")
    desk.run(failed("boom"))
    assert desk.state(child) is State.BLOCKED
    desk.store.retry(parent)
    desk.run()
    assert desk.state(child) is State.PENDING


def test_cancelled_children_return_to_blocked_when_the_parent_is_retried(desk: Desk) -> None:
    parent = desk.add()
    child = desk.add(after=parent)
    grandchild = desk.add(after=child)
    desk.run(rejected("no"))
    desk.store.retry(parent)
    assert desk.state(child) is State.BLOCKED
    assert desk.state(grandchild) is State.BLOCKED
    assert [desk.run() for _ in range(3)] == [parent, child, grandchild]


def test_a_child_that_a_person_cancelled_stays_cancelled(desk: Desk) -> None:
    parent = desk.add()
    child = desk.add(after=parent)
    desk.store.cancel(child)
    desk.run(rejected("no"))
    desk.store.retry(parent)
    assert desk.state(child) is State.CANCELLED


def test_a_blocked_child_waits_again_for_a_parent_that_is_run_once_more(desk: Desk) -> None:
    first, second = desk.add(), desk.add(hold=True)
    child = desk.add(after=[first, second])
    desk.run()
    desk.store.retry(first)
    desk.store.release(second)
    claims = {claim.id: claim for claim in desk.claim(5)}
    desk.end(claims[second])
    assert desk.state(child) is State.BLOCKED
    desk.end(claims[first])
    assert desk.state(child) is State.PENDING


def test_a_child_that_has_started_is_left_alone_when_its_parent_is_retried(desk: Desk) -> None:
    parent = desk.add()
    child = desk.add(after=parent)
    desk.run()
    (claim,) = desk.claim()
    desk.store.retry(parent)
    desk.run(rejected("no"))
    assert desk.state(child) is State.PROCESSING
    assert desk.end(claim) is State.COMPLETED


def test_a_child_of_a_completed_parent_is_pending_at_once(desk: Desk) -> None:
    parent = desk.add()
    desk.run()
    assert desk.state(desk.add(after=parent)) is State.PENDING


def test_a_child_of_a_parent_that_has_failed_is_cancelled_at_once(desk: Desk) -> None:
    """Blocked it would wait for good, and silently."""
    parent = desk.add()
    desk.run(rejected("no"))
    child = desk.add(after=parent)
    shown = desk.get(child)
    assert shown.state is State.CANCELLED
    assert shown.reason == f"job {parent}, which it comes after, is dead"
    assert desk.state(desk.add(after_any=parent)) is State.PENDING
    assert desk.state(desk.add(after=parent, if_parent_fails="wait")) is State.BLOCKED
    desk.store.retry(parent)
    assert desk.state(child) is State.BLOCKED


@pytest.mark.parametrize("option", ["after", "after_any"])
def test_an_unknown_parent_is_refused(desk: Desk, option: str) -> None:
    known = desk.add()
    before = desk.told()
    with pytest.raises(NotFound, match=r"Job 77, which this one is to come after"):
        desk.add(**{option: [known, 77]})
    assert desk.told() == before


def test_a_pruned_parent_is_refused(desk: Desk) -> None:
    parent = desk.add()
    desk.run()
    desk.store.purge([State.COMPLETED])
    with pytest.raises(NotFound, match=f"Job {parent}, which this one is to come after"):
        desk.add(after=parent)


def test_a_parent_may_stand_just_before_its_child_in_a_batch(desk: Desk) -> None:
    first = desk.add() + 1
    added = desk.store.enqueue([desk.new(), desk.new(after=first), desk.new(after=first + 1)])
    assert [one.state for one in added] == [State.PENDING, State.BLOCKED, State.BLOCKED]
    assert desk.get(added[2].id).after == (added[1].id,)


def test_a_parent_behind_its_child_in_a_batch_is_unknown(desk: Desk) -> None:
    first = desk.add() + 1
    with pytest.raises(NotFound):
        desk.store.enqueue([desk.new(after=first + 1), desk.new()])
    assert desk.store.counts()["pending"] == 1


def test_a_cycle_is_refused(desk: Desk) -> None:
    top = desk.add()
    middle = desk.add(after=top)
    bottom = desk.add(after=middle)
    before = desk.told()
    for parent in (middle, bottom):
        with pytest.raises(DependencyCycle, match=f"Job {top} cannot come after job {parent}"):
            desk.edit(top, after=parent)
    with pytest.raises(DependencyCycle, match=f"Job {top} cannot come after"):
        desk.edit(top, after_any=top)
    assert desk.told() == before
    assert desk.get(top).after == ()


@pytest.mark.parametrize("state", [State.COMPLETED, State.DEAD, State.PENDING])
def test_no_purge_leaves_a_job_blocked_for_good(desk: Desk, state: State) -> None:
    """A parent that is still waited for stays, or takes its children along."""
    outcomes = {State.COMPLETED: completed(), State.DEAD: rejected("no")}
    parent, other = desk.add(), desk.add(hold=True)
    children = [
        desk.add(after=[parent, other], if_parent_fails="wait"),
        desk.add(after=[parent, other], if_parent_fails="wait", hold=True),
    ]
    if state in outcomes:
        desk.run(outcomes[state])
    desk.store.purge([state])
    there = {job.id for job in desk.store.list(Filter())}
    for child in children:
        assert desk.get(child).state in (State.BLOCKED, State.HELD)
        assert state is State.COMPLETED or parent in there
    desk.store.release(children[1])
    desk.store.release(other)
    if state is not State.COMPLETED:
        desk.store.retry(parent)
    while desk.claim(5):
        pass
    for job in (parent, other) if parent in there else (other,):
        desk.store.finish([Report(job, desk.get(job).run, desk.worker, completed())])
    assert [desk.state(child) for child in children] == [State.PENDING] * 2


def test_a_long_chain_is_cancelled_and_brought_back(desk: Desk) -> None:
    first = desk.add(max_attempts=1)
    desk.store.enqueue([desk.new(after=job) for job in range(first, first + LONG_CHAIN - 1)])
    assert desk.store.counts()["blocked"] == LONG_CHAIN - 1
    desk.run(failed("boom"))
    assert desk.store.counts()["cancelled"] == LONG_CHAIN - 1
    desk.store.retry(first)
    assert desk.store.counts()["blocked"] == LONG_CHAIN - 1
    desk.store.cancel(first)
    assert desk.store.counts()["cancelled"] == LONG_CHAIN


def test_a_long_chain_is_walked_for_cycles(desk: Desk) -> None:
    first = desk.add()
    desk.store.enqueue([desk.new(after=job) for job in range(first, first + LONG_CHAIN - 1)])
    with pytest.raises(DependencyCycle):
        desk.edit(first, after=first + LONG_CHAIN - 1)
