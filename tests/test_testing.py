"""What svcq.testing promises to the tests of others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import svcq
from svcq import testing
from svcq.client import default_client, set_default_client
from svcq.jobs import State
from svcq.testing import ImmediateClient

log: list[str] = []


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    log.clear()


@svcq.task
def note(text: str) -> str:
    log.append(text)
    return text.upper()


@svcq.task
async def note_slowly(text: str) -> None:
    await asyncio.sleep(0)
    log.append(text)


@svcq.task(max_attempts=3, backoff="fixed", backoff_base=60, jitter=0)
def fail_twice() -> str:
    attempt = svcq.current_job().attempt
    log.append(f"attempt {attempt}")
    if attempt < 3:
        raise ValueError(f"attempt {attempt}")
    return "done"


@svcq.task
def chain(n: int) -> None:
    log.append(f"start {n}")
    if n:
        chain.enqueue(n - 1)
    log.append(f"end {n}")


@svcq.task
def end(how: str) -> None:
    log.append(how)
    if how == "reject":
        raise svcq.Reject("no such address")
    if how == "retry" and svcq.current_job().run == 1:
        raise svcq.Retry(delay="5m")
    if how == "snooze" and svcq.current_job().run == 1:
        raise svcq.Snooze("5m")


@svcq.task
def tell() -> None:
    job = svcq.current_job()
    job.progress(0.5, "half")
    shown = default_client().get(job.id)
    log.append(f"{shown.progress} {shown.progress_note} {job.run} {job.cancelled}")
    default_client().cancel(job.id)
    log.append(f"{job.cancelled}")


def signup(address: str) -> None:
    note.enqueue(f"welcome {address}")
    note.options(delay="30m").enqueue("how do you like it?")


def test_the_example_of_its_docstring() -> None:
    with testing.immediate() as queue:
        signup("a@example.org")
        assert {job.task for job in queue.list()} == {note.name}
        assert log == ["welcome a@example.org"]
        queue.advance("1h")
        assert log == ["welcome a@example.org", "how do you like it?"]


def test_a_task_has_run_when_enqueue_returns() -> None:
    with testing.immediate() as queue:
        job = note.enqueue("hi")
        assert (job.state, job.result, job.attempts) == (State.COMPLETED, "HI", 1)
        assert queue.enqueue(note, "ho").result == "HO"
        ids = note.enqueue_many([{"text": "a"}, {"text": "b"}])
        assert [queue.get(i).result for i in ids] == ["A", "B"]
        assert log == ["hi", "ho", "a", "b"]


def test_async_tasks_run_too() -> None:
    with testing.immediate():
        assert note_slowly.enqueue("slow").state is State.COMPLETED
    assert log == ["slow"]


def test_commands_are_queued_but_not_run(tmp_path: Path) -> None:
    with testing.immediate() as queue:
        job = queue.command(["touch", str(tmp_path / "made")])
        note.enqueue("runs all")
        queue.advance("1d")
        assert queue.get(job).state is State.PENDING
    assert not (tmp_path / "made").exists()


def test_the_store_is_its_own_and_goes() -> None:
    before = set_default_client(None)
    try:
        with testing.immediate() as queue:
            assert default_client() is queue
            home = queue.config.home
            assert home.exists()
            with testing.immediate() as inner:
                assert default_client() is inner
                note.enqueue("inner")
            assert default_client() is queue
            assert queue.list() == []
        assert not home.exists()
        assert set_default_client(None) is None
    finally:
        set_default_client(before)


def test_the_default_client_is_back_after_an_exception() -> None:
    before = set_default_client(None)
    try:
        with pytest.raises(KeyError), testing.immediate():
            raise KeyError
        assert set_default_client(None) is None
    finally:
        set_default_client(before)


def test_variables_of_the_environment_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVCQ_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SVCQ_STORE", str(tmp_path / "store.db"))
    with testing.immediate():
        note.enqueue("hi")
    assert list(tmp_path.iterdir()) == []


def test_an_exception_reaches_the_test() -> None:
    with testing.immediate() as queue:
        with pytest.raises(ValueError, match="attempt 1"):
            fail_twice.enqueue()
        (job,) = queue.list()
        assert (job.state, job.error) == (State.RETRYING, "ValueError: attempt 1")


def test_or_the_job_fails_and_is_retried() -> None:
    with testing.immediate(raise_errors=False) as queue:
        job = fail_twice.enqueue()
        assert (job.state, job.failures) == (State.RETRYING, 1)
        queue.advance(59)
        assert queue.get(job).failures == 1
        queue.advance(1)
        assert queue.get(job).failures == 2
        queue.advance("1h")
        assert (queue.get(job).state, queue.get(job).result) == (State.COMPLETED, "done")
        assert [run.how for run in queue.runs(job)] == ["failed", "failed", "completed"]


def test_what_a_task_raises_on_purpose_does_not_reach_the_test() -> None:
    with testing.immediate() as queue:
        jobs = [end.enqueue(how) for how in ("reject", "retry", "snooze")]
        assert [job.state for job in jobs] == [State.DEAD, State.RETRYING, State.SCHEDULED]
        queue.advance("5m")
        assert [queue.get(job).state for job in jobs[1:]] == [State.COMPLETED] * 2


def test_time_passes_in_order() -> None:
    with testing.immediate() as queue:
        for minutes in (30, 10, 20, 90):
            note.options(delay=f"{minutes}m").enqueue(str(minutes))
        queue.advance("1h")
        assert log == ["10", "20", "30"]
        queue.advance("29m")
        assert len(log) == 3
        queue.advance("1m")
        assert log[3:] == ["90"]


def test_a_job_sees_the_time_at_which_it_is_due() -> None:
    with testing.immediate() as queue:
        job = note.options(delay="10m").enqueue("x")
        queue.advance("1d")
        ended = queue.get(job)
        assert ended.run_at is not None
        assert ended.started_at is not None
        assert (ended.started_at - ended.run_at).total_seconds() < 600


def test_rules_hold_as_they_do_in_a_worker() -> None:
    with testing.immediate() as queue:
        first = note.options(delay="1h", unique_key="k").enqueue("first")
        assert note.options(unique_key="k").enqueue("again") == first
        note.options(after=first.id).enqueue("second")
        queue.queue("slow", paused=True)
        note.options(queue="slow").enqueue("paused")
        note.options(hold=True).enqueue("held")
        note.options(delay="2h", expires="1h").enqueue("expired")
        assert log == []
        queue.advance("1h")
        assert log == ["first", "second"]
        queue.advance("1d")
        assert queue.counts()["dead"] == 1
        queue.resume("slow")
        queue.run_all()
        assert log == ["first", "second", "paused"]


def test_a_rate_is_kept() -> None:
    with testing.immediate() as queue:
        queue.queue("limited", rate="1/1h")
        limited = note.options(queue="limited")
        for text in "abc":
            limited.enqueue(text)
        assert log == ["a"]
        queue.advance("1h")
        assert log == ["a", "b"]
        queue.advance("1d")
        assert log == ["a", "b", "c"]


def test_a_task_queues_another() -> None:
    with testing.immediate() as queue:
        chain.enqueue(2)
        assert sorted(log) == sorted(f"{when} {n}" for when in ("start", "end") for n in range(3))
        assert queue.counts()["completed"] == 3


def test_a_task_tells_of_itself() -> None:
    with testing.immediate() as queue:
        assert isinstance(queue, ImmediateClient)
        tell.enqueue()
    assert log == ["0.5 half 1 False", "True"]
