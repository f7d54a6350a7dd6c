"""Tasks in runners: what they are given, how they end, and what a bad one takes along."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from svcq.jobs import Job
from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, SAMPLE, Home, lives


def failed(home: Home, task: Any, *args: Any) -> Job:
    ended = home.call(task, *args)
    assert ended.state == "dead", ended
    return ended


# What they are given


@pytest.mark.parametrize("task", [sample.add, sample.add_later])
def test_a_result(shared: Home, task: Any) -> None:
    ended = shared.call(task, 1, b=2)
    assert (ended.state, ended.result, ended.exit_code) == ("completed", 3, None)


def test_a_result_in_any_script(shared: Home) -> None:
    assert shared.call(sample.give, "text").result == "grüße €"


def test_a_runner_is_kept_warm(home: Home) -> None:
    worker = home.worker_with_tasks("--slots", 1)
    plain = {home.call(sample.which_process).result for _ in range(5)}
    coroutines = {home.call(sample.which_process_async).result for _ in range(5)}
    assert len(plain) == len(coroutines) == 1
    assert plain != coroutines
    assert worker.pid not in plain | coroutines


def test_the_environment_names_the_job(shared: Home) -> None:
    ended = shared.call(sample.surroundings)
    assert ended.result["SVCQ_JOB"] == str(ended.id)
    assert ended.result["SVCQ_RUN"].startswith(f"{ended.id}.1.")
    assert ended.result["SVCQ_HOME"] == str(shared.path)


def test_all_that_a_task_and_its_children_say_is_in_its_log(shared: Home) -> None:
    ended = shared.call(sample.speak)
    said = shared.output(ended.id).splitlines()
    assert said == ["from print", "from stderr", "from the descriptor", "from a subprocess"]
    assert shared.last_run(ended.id).tail == "\n".join(said)


def test_a_task_that_says_nothing_has_no_log(shared: Home) -> None:
    assert not shared.log(shared.call(sample.add, 1, 2).id).exists()
    assert not shared.log(shared.call(sample.add_later, 1, 2).id).exists()


def test_coroutines_that_speak_at_once_are_told_apart(shared: Home) -> None:
    words = ["red", "green", "blue"]
    jobs = [shared.client.enqueue(sample.speak_async, word).id for word in words]
    for job, word in zip(jobs, words, strict=True):
        assert shared.ended(job).state == "completed"
        assert shared.output(job) == "".join(f"{word} {n}\n" for n in range(3))


def test_what_a_task_prints_can_be_read_while_it_runs(shared: Home, tmp_path: Path) -> None:
    job = shared.client.enqueue(sample.speak_then_wait, str(tmp_path / "go")).id
    eventually(lambda: shared.log(job).exists() and shared.output(job), PATIENCE)
    assert shared.output(job) == "before the wait\n"
    (tmp_path / "go").touch()
    shared.ended(job)


def test_progress_and_the_current_job(shared: Home, tmp_path: Path) -> None:
    job = shared.client.enqueue(sample.tell, 0.25, "a quarter", str(tmp_path / "go")).id
    eventually(lambda: shared.client.get(job).progress == 0.25, PATIENCE)
    assert shared.client.get(job).progress_note == "a quarter"
    (tmp_path / "go").touch()
    assert shared.ended(job).result == {"id": job, "run": 1, "attempt": 1}


def test_progress_told_far_too_often(shared: Home) -> None:
    ended = shared.call(sample.chatter, 20_000)
    assert ended.state == "completed"
    told = [change for change in shared.client.changes(limit=100_000) if change.kind == "progress"]
    assert len([change for change in told if change.job == ended.id]) < 1000


@pytest.mark.parametrize("task", [sample.until_cancelled, sample.until_file_async])
def test_a_task_may_see_that_it_is_cancelled(shared: Home, tmp_path: Path, task: Any) -> None:
    args = [str(tmp_path / "never")] if task is sample.until_file_async else []
    before = shared.call(sample.which_process_async).result
    job = shared.client.enqueue(task.options(grace=30), *args).id
    shared.wait_until_running(job)
    shared.client.cancel(job)
    ended = shared.ended(job)
    assert (ended.state, ended.failures) == ("cancelled", 0)
    assert shared.call(sample.which_process_async).result == before


def test_a_task_that_does_not_look_is_killed_with_its_runner(shared: Home) -> None:
    job = shared.client.enqueue(sample.loop_forever.options(grace=0.1)).id
    shared.wait_until_running(job)
    shared.client.cancel(job)
    assert shared.ended(job).state == "cancelled"
    assert shared.call(sample.add, 1, 2).result == 3


# How they end


def test_retry(shared: Home) -> None:
    ended = shared.call(sample.retry_twice.options(max_attempts=5))
    assert (ended.state, ended.result, ended.failures) == ("completed", 3, 2)
    assert [run.error for run in shared.client.runs(ended)][:2] == ["not yet", "not yet"]


def test_reject(shared: Home) -> None:
    ended = shared.call(sample.reject.options(max_attempts=5), "no such address")
    assert (ended.state, ended.reason, ended.error) == ("dead", "rejected", "no such address")


def test_snooze(shared: Home, tmp_path: Path) -> None:
    ended = shared.call(sample.snooze_once, str(tmp_path / "seen"))
    assert (ended.state, ended.result) == ("completed", "awake")
    assert (ended.snoozes, ended.failures) == (1, 0)


@pytest.mark.parametrize("task", [sample.fail, sample.fail_async])
def test_an_exception_is_a_failure_with_its_traceback_in_the_tail(shared: Home, task: Any) -> None:
    ended = failed(shared, task, "wrong value")
    assert ended.error == "ValueError: wrong value"
    tail = str(shared.last_run(ended.id).tail)
    assert "Traceback" in tail
    assert "raise ValueError(message)" in tail


@pytest.mark.parametrize(
    "message", ["a\0b", "\ud800", "x" * 5_000_000], ids=["nul", "half", "long"]
)
def test_an_exception_may_say_anything(shared: Home, message: str) -> None:
    new = shared.client.new_task(f"{SAMPLE}.fail_with", [ascii(message[:2]), len(message)], {})
    ended = shared.ended(shared.client.add([new])[0].id)
    assert str(ended.error).startswith("ValueError: ")
    assert len(str(ended.error)) < 20_000


def test_an_exception_that_cannot_be_shown(shared: Home) -> None:
    ended = failed(shared, sample.fail_unshowably)
    assert ended.error == "Unshowable: an error that cannot be shown"


def test_arguments_that_do_not_fit_are_rejected(shared: Home) -> None:
    for task in ("add", "add_later"):
        ended = shared.call_by_name(f"{SAMPLE}.{task}", 1, 2, 3, max_attempts=5)
        assert (ended.state, ended.reason) == ("dead", "rejected")
        assert f"The arguments do not fit {SAMPLE}.{task}(a: " in str(ended.error)


@pytest.mark.parametrize("name", ["nobody.knows", f"{SAMPLE}.nothing", "nodots"])
def test_a_task_nobody_knows_is_rejected(shared: Home, name: str) -> None:
    ended = shared.call_by_name(name, max_attempts=5)
    assert (ended.state, ended.reason) == ("dead", "rejected")
    assert f"No task is named {name!r} in this project" in str(ended.error)


def test_a_plain_function_is_found_by_its_path(shared: Home) -> None:
    assert shared.call_by_name("posixpath.join", "a", "b").result == "a/b"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("object", "TypeError: "),
        ("nan", "ValueError: "),
        ("surrogate", "lone surrogate"),
        ("nul", "NUL"),
        ("large", "over the limit of 1,048,576"),
    ],
)
def test_a_result_that_cannot_be_kept(shared: Home, kind: str, said: str) -> None:
    assert said in str(failed(shared, sample.give, kind).error)


# What a bad one takes along: its runner at most


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("exit", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt"),
        ("os exit", "its process ended with exit code 7"),
        ("segfault", "its process ended with signal 11"),
        ("killed", "its process ended with signal 9"),  # and a guess at who it was
        ("fork and die", "its process ended with exit code 9"),
        ("close all", "its process ended with "),
    ],
)
def test_it_fails_and_the_worker_lives(shared: Home, how: str, error: str) -> None:
    ended = failed(shared, sample.misbehave, how)
    assert str(ended.error).startswith(error)
    assert str(shared.last_run(ended.id).tail).startswith(f"about to {how}")
    assert shared.call(sample.add, 1, 2).result == 3


@pytest.mark.parametrize(
    "how", ["close stdout", "replace stdout", "remove its log", "surrogate progress"]
)
def test_what_is_merely_odd_harms_no_later_task(home: Home, how: str) -> None:
    home.worker_with_tasks("--slots", 1)
    runner = home.call(sample.which_process).result
    assert home.call(sample.misbehave, how).state == "completed"
    after = home.call(sample.speak)
    assert after.state == "completed"
    assert len(home.output(after.id).splitlines()) == 4
    assert home.call(sample.which_process).result == runner


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("exit", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt"),
        ("cancel itself", "CancelledError"),
        ("os exit", "its process ended with exit code 7"),
    ],
)
def test_a_coroutine_fails_and_the_worker_lives(shared: Home, how: str, error: str) -> None:
    assert failed(shared, sample.misbehave_async, how).error == error
    assert shared.call(sample.add_later, 1, 2).result == 3


def test_an_endless_loop_times_out(shared: Home) -> None:
    ended = failed(shared, sample.loop_forever.options(timeout=0.2, grace=0.1))
    assert (ended.reason, ended.error) == ("timed out", "ran longer than its timeout of 200ms")
    assert shared.call(sample.add, 1, 2).result == 3


def test_a_memory_hog_is_killed(shared: Home) -> None:
    ended = failed(shared, sample.use_memory.options(memory="150M"), 400)
    assert str(ended.error).endswith("MiB of memory, over its 150")
    assert shared.call(sample.add, 1, 2).result == 3


def test_a_blocking_coroutine_takes_its_runner_and_no_attempt_of_the_others(
    home: Home, tmp_path: Path
) -> None:
    home.worker_with_tasks("--slots", 4)
    go = tmp_path / "go"
    others = [home.client.enqueue(sample.until_file_async, str(go)).id for _ in range(2)]
    for job in others:
        home.wait_until_running(job)
    options = {"timeout": 0.5, "grace": 0.2}
    blocking = home.client.enqueue(sample.block.options(**options), str(tmp_path / "blocks")).id
    ended = home.ended(blocking)
    assert (ended.state, ended.reason) == ("dead", "timed out")
    go.touch()
    for job in others:
        ended = home.ended(job)
        assert (ended.state, ended.failures, ended.interruptions) == ("completed", 0, 1)


def test_calls_sent_ahead_go_elsewhere_when_one_turns_slow(home: Home, tmp_path: Path) -> None:
    home.worker_with_tasks("--slots", 1)
    record, go = str(tmp_path / "record"), str(tmp_path / "go")
    # Many short ones, so that calls are sent ahead.
    home.client.enqueue_many(sample.short, [{"file": record}] * 200)
    eventually(lambda: home.client.counts()["completed"] == 200, PATIENCE)
    short = home.client.new_task(f"{SAMPLE}.short", [record], {})
    slow = home.client.new_task(f"{SAMPLE}.until_file", [go], {}, priority=1)
    added = home.client.add([slow, *[short] * 30])
    home.wait_until_running(added[0].id)
    home.worker_with_tasks("--slots", 1)
    eventually(lambda: home.client.counts()["completed"] == 230, PATIENCE)
    assert home.is_running(added[0].id)
    Path(go).touch()
    assert home.ended(added[0].id).state == "completed"
    ids = [int(line.split()[0]) for line in Path(record).read_text().splitlines()]
    assert len(ids) == len(set(ids)) == 230
    assert all(home.client.get(one.id).failures == 0 for one in added)


def test_more_coroutines_than_slots_never_run_at_once(home: Home, tmp_path: Path) -> None:
    home.worker_with_tasks("--slots", 2)
    record, go = str(tmp_path / "record"), str(tmp_path / "go")
    home.client.enqueue_many(sample.short, [{"file": record}] * 200)
    eventually(lambda: home.client.counts()["completed"] == 200, PATIENCE)
    home.client.enqueue_many(sample.until_file_async, [{"file": go}] * 20)
    home.client.enqueue_many(sample.short, [{"file": record}] * 20)
    eventually(lambda: home.client.counts()["processing"] == 2, PATIENCE)
    Path(go).touch()
    eventually(lambda: home.client.counts()["completed"] == 240, PATIENCE)


def test_a_runner_killed_while_idle_is_replaced(shared: Home) -> None:
    first = shared.call(sample.which_process).result
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not lives(first))
    assert eventually(lambda: shared.call(sample.which_process).result) != first


@pytest.mark.parametrize(
    ("how", "end"),
    [
        ("fork", "cancelled"),
        ("exec", "cancelled"),
        ("fork", "worker killed"),
        ("exec", "worker killed"),
        ("async", "worker killed"),
        ("fork", "runner killed"),
        ("exec", "runner killed"),
        ("async", "runner killed"),
    ],
)
def test_what_a_task_started_is_dead_before_it_runs_again(
    home: Home, tmp_path: Path, how: str, end: str
) -> None:
    worker = home.worker_with_tasks()
    pids = tmp_path / "pids"
    options = {"grace": 0.1, "max_losses": 0}
    if how == "async":
        task = sample.leave_children_async.options(**options)
        job = home.client.enqueue(task, str(pids)).id
    else:
        task = sample.leave_children.options(**options)
        job = home.client.enqueue(task, str(pids), how).id
    eventually(lambda: pids.exists() and pids.read_text().endswith("\n"), PATIENCE)
    child = int(pids.read_text())
    if end == "cancelled":
        home.client.cancel(job)
    elif end == "runner killed":
        os.kill(_parent(child), signal.SIGKILL)
    else:
        worker.kill()
        home.worker_with_tasks()
    assert home.ended(job).state in ("dead", "cancelled")
    assert not lives(child)


def test_what_a_failed_task_left_is_dead_before_it_runs_again(home: Home, tmp_path: Path) -> None:
    home.worker_with_tasks()
    pids = tmp_path / "pids"
    ended = home.call(sample.leave_a_child_and_fail.options(max_attempts=3), str(pids))
    assert (ended.state, ended.failures) == ("dead", 3)
    assert [pid for pid in pids.read_text().split() if lives(int(pid))] == []


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
