"""Changing a job that still waits: each option, and what hangs on it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from svcq.errors import NameTaken, NotFound, UniqueTaken
from svcq.jobs import State, failed
from svcq.policy import NewJob, Plan
from svcq.store import Filter
from tests.store.conftest import Desk


@pytest.mark.parametrize(
    ("options", "attribute", "value"),
    [
        ({"queue": "other"}, "queue", "other"),
        ({"name": "new"}, "name", "new"),
        ({"tags": ["b", "a"]}, "tags", ("a", "b")),
        ({"priority": 7}, "priority", 7),
        ({"max_attempts": 9}, "max_attempts", 9),
        ({"unique_key": "u"}, "unique_key", "u"),
        ({"when": "idle>10m"}, "condition", "idle>10m"),
        ({"host": "there"}, "host", "there"),
        ({"concurrency_key": "k"}, "concurrency_key", "k"),
        ({"cwd": "/srv"}, "cwd", "/srv"),
        ({"expires": 60}, "expires_at", datetime.fromtimestamp(1_800_000_060, UTC)),
        ({"delay": 60}, "run_at", datetime.fromtimestamp(1_800_000_060, UTC)),
        ({"run_at": 1_800_000_060}, "run_at", datetime.fromtimestamp(1_800_000_060, UTC)),
        ({"timeout": 60}, "options", {"timeout": 60, "max_attempts": 2}),
    ],
)
def test_each_option_can_be_changed_and_the_rest_stays(
    desk: Desk, options: dict[str, object], attribute: str, value: object
) -> None:
    job = desk.add(max_attempts=2, tags=["old"], name="old")
    before = desk.get(job).as_json()
    desk.edit(job, **options)
    assert getattr(desk.get(job), attribute) == value
    after = desk.get(job).as_json()
    changed = {key for key in before if before[key] != after[key]}
    assert changed <= {attribute, "options", "state"}


def test_an_edit_is_told(desk: Desk) -> None:
    job = desk.add()
    desk.edit(job, priority=1)
    assert [change.kind for change in desk.store.changes(0)] == ["pending", "edited"]


def test_the_command_the_task_or_its_arguments_can_be_changed(desk: Desk) -> None:
    job = desk.add()
    plan = Plan("default")
    desk.store.edit(job, NewJob(plan, command='["ls"]'), {"command"})
    assert (desk.get(job).command, desk.get(job).task) == (["ls"], None)
    assert desk.claim(kinds=("task",)) == []
    desk.store.edit(job, NewJob(plan, "send", '[["a"],{}]'), {"task", "args"})
    assert (desk.get(job).command, desk.get(job).task, desk.get(job).args) == (None, "send", ["a"])
    desk.store.edit(job, NewJob(plan, "send", '[["b"],{}]'), {"args"})
    assert desk.get(job).args == ["b"]
    assert [claim.task for claim in desk.claim(kinds=("task",))] == ["send"]


def test_counters_follow_a_job_to_its_new_queue_and_task(desk: Desk) -> None:
    job = desk.add()
    desk.edit(job, queue="other")
    assert desk.store.counts("default")["pending"] == 0
    assert desk.store.counts("other")["pending"] == 1
    desk.store.edit(job, NewJob(Plan("x"), "send", "[[],{}]"), {"task", "args"})
    (stats,) = desk.store.stats("other")
    assert stats.tasks == {"send": {"pending": 1}}


def test_a_higher_priority_puts_a_job_in_front(desk: Desk) -> None:
    desk.add()
    job = desk.add()
    desk.edit(job, priority=1)
    assert desk.claimed() == [job]


def test_a_new_time_moves_a_job_between_pending_and_scheduled(desk: Desk) -> None:
    job = desk.add()
    assert desk.edit(job, delay=60) is State.SCHEDULED
    assert desk.claim() == []
    assert desk.edit(job, delay=0) is State.PENDING
    assert desk.claimed() == [job]


def test_a_time_that_has_passed_does_not_put_a_job_in_front(desk: Desk) -> None:
    job = desk.add(delay=3600)
    desk.clock.advance(10)
    first = desk.add()
    desk.clock.advance(10)
    assert desk.edit(job, run_at=datetime(2001, 1, 1, tzinfo=UTC)) is State.PENDING
    assert desk.claimed(2) == [first, job]


def test_a_retrying_job_keeps_its_state_and_gets_its_new_time(desk: Desk) -> None:
    job = desk.add(backoff="fixed", backoff_base=1000)
    desk.run(failed("boom"))
    assert desk.edit(job, delay=5) is State.RETRYING
    desk.clock.advance(5)
    assert desk.claimed() == [job]


def test_a_retrying_job_may_be_given_an_expiry(desk: Desk) -> None:
    job = desk.add(backoff="fixed", backoff_base=1000)
    desk.run(failed("boom"))
    desk.edit(job, expires=5)
    desk.clock.advance(6)
    assert desk.claim() == []
    assert desk.get(job).reason == "expired"


def test_a_job_moves_to_another_concurrency_key(desk: Desk) -> None:
    first, second = desk.add(concurrency_key="a"), desk.add(concurrency_key="a")
    desk.edit(second, concurrency_key="b")
    assert desk.claimed(5) == [first, second]


def test_a_new_unique_key_is_taken_and_the_old_one_free(desk: Desk) -> None:
    job, other = desk.add(unique_key="a"), desk.add(unique_key="b")
    before = desk.told()
    with pytest.raises(UniqueTaken, match=f"'b' in queue default is taken by job {other}"):
        desk.edit(job, unique_key="b")
    assert desk.told() == before
    desk.edit(job, unique_key="c")
    assert desk.add(unique_key="c") == job
    assert desk.add(unique_key="a") not in (job, other)


def test_a_unique_key_goes_along_to_another_queue(desk: Desk) -> None:
    job = desk.add(unique_key="a")
    desk.edit(job, queue="other")
    assert desk.add(unique_key="a", queue="other") == job
    assert desk.add(unique_key="a") != job


def test_a_new_name_is_taken_and_the_old_one_free(desk: Desk) -> None:
    job, other = desk.add(name="a"), desk.add(name="b")
    with pytest.raises(NameTaken, match=f"job {other}"):
        desk.edit(job, name="b")
    desk.edit(job, name="c")
    assert desk.store.find_named("c") == job
    desk.add(name="a")


def test_tags_are_replaced(desk: Desk) -> None:
    job = desk.add(tags=["a", "b"])
    desk.edit(job, tags=["b", "c"])
    found = {tag: desk.store.list(Filter(tag=tag)) for tag in "abc"}
    assert {tag: [one.id for one in jobs] for tag, jobs in found.items()} == {
        "a": [], "b": [job], "c": [job],
    }  # fmt: skip


def test_an_environment_is_replaced(desk: Desk) -> None:
    job = desk.add(env={"A": "1"})
    desk.edit(job, env={"A": "2"})
    (claim,) = desk.claim()
    assert claim.id == job
    assert claim.env is not None
    assert json.loads(desk.store.environment(claim.env) or "") == {"A": "2"}


def test_parents_are_replaced(desk: Desk) -> None:
    first, second = desk.add(hold=True), desk.add(hold=True)
    job = desk.add(after=first)
    assert desk.edit(job, after=second) is State.BLOCKED
    assert desk.get(job).after == (second,)
    desk.store.cancel(first)
    assert desk.state(job) is State.BLOCKED
    with pytest.raises(NotFound, match="Job 99"):
        desk.edit(job, after=99)
    assert desk.get(job).after == (second,)
    assert desk.edit(job, after=[]) is State.PENDING


def test_a_pending_job_may_be_made_to_wait(desk: Desk) -> None:
    parent, job = desk.add(hold=True), desk.add()
    assert desk.edit(job, after=parent) is State.BLOCKED
    assert desk.claim() == []


def test_an_orphans_fate_can_be_changed(desk: Desk) -> None:
    parent = desk.add()
    job = desk.add(after=parent)
    desk.edit(job, if_parent_fails="wait")
    desk.store.cancel(parent)
    assert desk.state(job) is State.BLOCKED
