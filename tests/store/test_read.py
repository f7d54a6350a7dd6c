"""Looking: one job, lists of them, their runs, and the changes."""

from __future__ import annotations

import pytest

from svcq.errors import NotFound
from svcq.jobs import State, completed, failed, rejected
from svcq.policy import NewJob, Options, make_plan
from svcq.store import Filter
from tests.store.conftest import Desk
from tests.store.test_transitions import MAKE


def ids(desk: Desk, **wanted: object) -> list[int]:
    return [job.id for job in desk.store.list(Filter(**wanted))]  # type: ignore[arg-type]


def pages(desk: Desk, size: int, **wanted: object) -> list[int]:
    """All ids, page by page."""
    found: list[int] = []
    while page := ids(desk, limit=size, before=found[-1] if found else None, **wanted):
        found += page
        assert len(found) < 1000, "the same page comes again and again"
    return found


@pytest.mark.parametrize("job", [0, 99, -1, 2**62])
def test_a_job_that_is_not_there_is_named(desk: Desk, job: int) -> None:
    for look in (desk.store.get, desk.store.state):
        with pytest.raises(NotFound, match=rf"no job {job}:"):
            look(job)


def test_a_name_that_is_not_there_is_named(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no job named 'backup'"):
        desk.store.find_named("backup")


def test_jobs_are_listed_newest_first(desk: Desk) -> None:
    jobs = [desk.add() for _ in range(5)]
    assert ids(desk) == jobs[::-1]


def test_each_filter_picks_its_jobs(desk: Desk) -> None:
    plain = desk.add()
    desk.clock.advance(10)
    since = desk.clock.now
    other = desk.add("send", queue="mail", tags=["x", "y"])
    plan = make_plan(Options(tags=["x"]), default_queue="default", owner="ann")
    owned = desk.store.enqueue([NewJob(plan, command='["ls"]')])[0].id
    assert ids(desk, queue="mail") == [other]
    assert ids(desk, task="send") == [other]
    assert ids(desk, tag="x") == [owned, other]
    assert ids(desk, tag="y", queue="default") == []
    assert ids(desk, owner="ann") == [owned]
    assert ids(desk, since_ms=since) == [owned, other]
    assert ids(desk, states=[]) == []
    assert ids(desk, limit=1) == [owned]
    assert ids(desk) == [owned, other, plain]


@pytest.mark.parametrize("state", State)
def test_each_state_is_listed_alone_and_with_others(desk: Desk, state: State) -> None:
    jobs = {one: make(desk) for one, make in MAKE.items() if one is not State.PENDING}
    jobs[State.PENDING] = desk.add()
    assert jobs[state] in ids(desk, states=[state])
    for job in desk.store.list(Filter(states=[state])):
        assert job.state is state
    assert set(ids(desk, states=[state, State.DEAD])) == {
        *ids(desk, states=[state]), *ids(desk, states=[State.DEAD]),
    }  # fmt: skip


@pytest.mark.parametrize("states", [None, [State.COMPLETED], [State.COMPLETED, State.DEAD]])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_pages_of_ended_jobs_have_each_job_once(
    desk: Desk, states: list[State] | None, size: int
) -> None:
    """Whatever the order in which they ended."""
    jobs = [desk.add(priority=i % 4) for i in range(12)]
    while claims := desk.claim(1):
        desk.end(claims[0])
        if claims[0].id % 3:
            desk.clock.advance(1)
    assert sorted(pages(desk, size, states=states)) == jobs


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRYING])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_pages_of_jobs_that_wait_for_their_time_have_each_job_once(
    desk: Desk, state: State, size: int
) -> None:
    jobs = []
    for i in range(9):
        wait = 100 + i * 7 % 5
        jobs.append(desk.add(delay=wait if state is State.SCHEDULED else None))
        if state is State.RETRYING:
            desk.run(failed("boom", delay_ms=wait * 1000))
    assert sorted(pages(desk, size, states=[state])) == jobs


@pytest.mark.parametrize("state", [State.PENDING, State.HELD])
def test_pages_of_jobs_that_wait_have_each_job_once(desk: Desk, state: State) -> None:
    jobs = [desk.add(hold=state is State.HELD) for _ in range(7)]
    assert pages(desk, 2, states=[state]) == jobs[::-1]


def test_jobs_that_ended_last_come_first(desk: Desk) -> None:
    low, high = desk.add(), desk.add(priority=1)
    desk.run()
    desk.clock.advance(1)
    desk.run()
    assert ids(desk, states=[State.COMPLETED]) == [low, high]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("FFMPEG", "command"),
        ("movie.mov", "command"),
        ("Send_Mail", "task"),
        ("ann@", "task"),
        ("nightly", "named"),
        ("été", "accents"),
        ("ÉTÉ", "capital accents"),
        ("100%", "percent"),
        ("nothing like it", None),
    ],
)
def test_a_text_is_found_in_name_command_task_and_arguments(
    desk: Desk, text: str, found: str | None
) -> None:
    jobs = {
        "command": desk.add(command='["ffmpeg","-i","Movie.mov"]'),
        "task": desk.add("app.send_mail", '[["ann@example.org"],{}]'),
        "named": desk.add(name="Nightly backup"),
        "accents": desk.add(name="un été"),
        "capital accents": desk.add(name="UN ÉTÉ"),
        "percent": desk.add(args='[["100%"],{}]'),
    }
    assert ids(desk, grep=text) == ([jobs[found]] if found else [])


def test_runs_are_listed_in_their_order(desk: Desk) -> None:
    job = desk.add(backoff="fixed", backoff_base=0)
    desk.run(failed("one"))
    desk.run(failed("two"))
    desk.run(completed("3"))
    assert [(run.run, run.error) for run in desk.store.runs(job)] == [
        (1, "one"), (2, "two"), (3, None),
    ]  # fmt: skip
    assert desk.store.runs(99) == []


def test_a_job_shows_its_last_error_and_its_result(desk: Desk) -> None:
    job = desk.add()
    desk.run(rejected("no such file", exit_code=64))
    shown = desk.get(job)
    assert (shown.error, shown.exit_code, shown.result) == ("no such file", 64, None)
    desk.store.retry(job)
    desk.run(completed('{"ok": true}'))
    assert (desk.get(job).error, desk.get(job).result) == (None, {"ok": True})


def test_json_has_the_names_scripts_rely_on(desk: Desk) -> None:
    shown = desk.get(desk.add(delay=5)).as_json()
    assert set(shown) >= {
        "id", "name", "queue", "state", "reason", "priority", "run", "attempts", "max_attempts",
        "failures", "created_at", "run_at", "started_at", "finished_at", "exit_code", "error",
        "progress", "result", "tags", "owner", "task", "args",
    }  # fmt: skip
    assert shown["run_at"] == "2027-01-15T08:00:05.000Z"
    assert "command" not in shown
    assert "task" not in desk.get(desk.add(command='["ls"]')).as_json()


def test_changes_follow_a_cursor(desk: Desk) -> None:
    job = desk.add()
    start = desk.store.last_change()
    desk.run(failed("boom"))
    desk.store.cancel(job)
    seen = desk.store.changes(start)
    assert [(change.job, change.kind) for change in seen] == [
        (job, "processing"), (job, "retrying"), (job, "cancelled"),
    ]  # fmt: skip
    assert [change.seq for change in seen] == [start + 1, start + 2, start + 3]
    assert seen[0].at.timestamp() * 1000 == desk.clock.now
    assert desk.store.changes(start, limit=1) == seen[:1]
    assert desk.store.changes(seen[-1].seq) == []
