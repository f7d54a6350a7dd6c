"""Adding jobs: one, many, later."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from svcq.errors import NotFound, UniqueTaken
from svcq.jobs import State, failed
from tests.store.conftest import Desk
from tests.store.tables import COUNTS, look


def test_a_job_is_as_it_was_said(desk: Desk) -> None:
    job = desk.add(
        "send", '[["a"],{"b":2}]', queue="mail", name="letter", tags=["x", "a"], priority=4,
        cwd="/srv", when="idle>10m", host="here", concurrency_key="k", unique_key="u",
        max_attempts=5, env={"A": "1"},
    )  # fmt: skip
    shown = desk.get(job)
    assert (shown.queue, shown.name, shown.tags, shown.priority) == (
        "mail",
        "letter",
        ("a", "x"),
        4,
    )
    assert (shown.task, shown.args, shown.kwargs, shown.command) == ("send", ["a"], {"b": 2}, None)
    assert (shown.cwd, shown.condition, shown.host) == ("/srv", "idle>10m", "here")
    assert (shown.concurrency_key, shown.unique_key, shown.max_attempts) == ("k", "u", 5)
    assert shown.created_at.timestamp() * 1000 == desk.clock.now
    assert (shown.run, shown.attempts, shown.failures) == (0, 0, 0)


def test_a_command_is_an_argv_or_a_line(desk: Desk) -> None:
    assert desk.get(desk.add(command='["ls","-l"]')).command == ["ls", "-l"]
    assert desk.get(desk.add(command='"ls -l | wc"')).command == "ls -l | wc"


def test_many_jobs_get_numbers_in_a_row(desk: Desk) -> None:
    added = desk.store.enqueue([desk.new() for _ in range(1000)])
    assert [one.id for one in added] == list(range(1, 1001))
    assert desk.store.counts()["pending"] == 1000


def test_a_job_by_itself_is_written_as_one_of_many(desk: Desk) -> None:
    """The shortest way in decides where it stands in line, too."""
    desk.store.set_queue("default", {"aging": "90s"})
    desk.add()  # makes the lane, so that the next one finds it
    for priority in (0, 7, -3):
        new = desk.new(args='[["ä\\"\\\\"],{}]', priority=priority, max_attempts=4)
        before = desk.store.last_change()
        alone = desk.store.enqueue([new])[0]
        first, _ = together = desk.store.enqueue([new, new])
        assert (alone.state, alone.at, alone.queue_options) == first[1:4]
        rows = look(desk.store, _ROWS)[-3:]
        assert [row[0] for row in rows] == [alone.id, *(one.id for one in together)]
        assert rows[0][1:] == rows[1][1:] == rows[2][1:]
        told = desk.store.changes(before)
        assert [(change.job, change.kind) for change in told] == [
            (row[0], "pending") for row in rows
        ]
    assert look(desk.store, COUNTS) == [("default", "pending", "work", 10)]
    assert look(desk.store, "SELECT CAST(sum(n) AS BIGINT) FROM minutes") == [(10,)]


_ROWS = """
SELECT jobs.*, queue, task, command, args, options, created_at, name, tags, owner, cwd, env,
       host, condition, key, unique_key, orphaned, copy_of FROM (
    SELECT id, lane, state, priority, ties, waits_on, ready_at, run_at, rank, due_at,
           expires_at, run
    FROM jobs) AS jobs
JOIN specs ON specs.id = jobs.id ORDER BY jobs.id
"""


def test_no_jobs_are_no_work(desk: Desk) -> None:
    assert desk.store.enqueue([]) == []
    assert desk.store.last_change() == 0


def test_all_or_none_are_added(desk: Desk) -> None:
    desk.add(unique_key="taken")
    before = desk.told()
    for bad, error in (
        (desk.new(after=99), NotFound),
        (desk.new(unique_key="taken", on_duplicate="refuse"), UniqueTaken),
    ):
        with pytest.raises(error):
            desk.store.enqueue([desk.new(queue="new"), desk.new(name="x", tags=["t"]), bad])
        assert desk.told() == before
    assert desk.get(desk.add(name="x")).name == "x"
    with pytest.raises(NotFound):
        desk.store.queue("new")


def test_a_delay_and_a_time_schedule_a_job(desk: Desk) -> None:
    due = datetime.fromtimestamp(desk.clock.now / 1000 + 90, UTC)
    for job in (desk.add(delay="1m30s"), desk.add(run_at=due)):
        assert desk.state(job) is State.SCHEDULED
        assert desk.get(job).run_at == due


def test_a_time_that_has_passed_is_now(desk: Desk) -> None:
    first = desk.add()
    job = desk.add(run_at=datetime(2001, 1, 1, tzinfo=UTC))
    assert desk.state(job) is State.PENDING
    assert desk.claimed(2) == [first, job]


def test_a_job_expires_when_it_is_not_started_in_time(desk: Desk) -> None:
    job = desk.add(expires=60)
    desk.clock.advance(59)
    assert desk.store.expire() == 0
    desk.clock.advance(1)
    assert desk.store.expire() == 1
    shown = desk.get(job)
    assert (shown.state, shown.reason) == (State.DEAD, "expired")


def test_a_job_that_was_started_does_not_expire(desk: Desk) -> None:
    job = desk.add(expires=60, backoff="fixed", backoff_base=5, jitter=0)
    desk.run(failed("boom"))
    desk.clock.advance(100)
    assert desk.store.expire() == 0
    assert desk.claimed() == [job]


def test_a_held_job_waits_for_a_person(desk: Desk) -> None:
    job = desk.add(hold=True, delay=5)
    desk.clock.advance(10)
    assert desk.claim() == []
    assert desk.state(job) is State.HELD


def test_ids_are_never_used_again(desk: Desk) -> None:
    for _ in range(3):
        desk.add()
    desk.store.purge([State.PENDING])
    desk.store.cleanup()
    assert desk.add() == 4


def test_equal_environments_are_stored_once(desk: Desk) -> None:
    for env in ({"A": "1", "B": "2"}, {"B": "2", "A": "1"}, {"A": "2"}):
        desk.add(env=env)
    numbers = [claim.env for claim in desk.claim(3)]
    assert numbers[0] == numbers[1] != numbers[2]
    assert numbers[0] is not None
    assert desk.store.environment(numbers[0]) == '{"A":"1","B":"2"}'
    assert desk.store.environment(99) is None
