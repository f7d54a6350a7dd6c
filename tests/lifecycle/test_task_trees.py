"""A task ends with every process it started, and with none of another's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, Home, lives

WAYS = ["popen", "setsid", "double fork", "bare environment", "deaf", "thread"]


def pids_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize("end", ["completed", "dead"])
@pytest.mark.parametrize("how", WAYS)
def test_what_it_left_is_gone_when_it_has_ended(
    shared: Home, tmp_path: Path, how: str, end: str
) -> None:
    pids = tmp_path / "pids"
    assert shared.call(sample.leave_a_process, str(pids), how, end).state == end
    assert len(pids_in(pids)) == 1
    assert not lives(pids_in(pids)[0])


@pytest.mark.parametrize("why", ["cancelled", "timed out"])
@pytest.mark.parametrize("how", WAYS)
def test_what_it_left_is_gone_when_it_was_asked_to_end(
    shared: Home, tmp_path: Path, how: str, why: str
) -> None:
    pids = tmp_path / "pids"
    limit = {"timeout": 1} if why == "timed out" else {}
    task = sample.leave_a_process.options(grace=2, **limit)
    job = shared.client.enqueue(task, str(pids), how, "when asked").id
    eventually(lambda: pids_in(pids), PATIENCE)
    if why == "cancelled":
        shared.client.cancel(job)
    assert shared.ended(job).state == ("cancelled" if why == "cancelled" else "dead")
    assert not lives(pids_in(pids)[0])


def test_its_runner_and_what_an_import_started_stay(home: Home, tmp_path: Path) -> None:
    home.worker("--import", "tests.lifecycle.keeper", "--slots", 1)
    pids = tmp_path / "pids"
    task = "tests.lifecycle.keeper.leave_one_beside_those_kept"
    first, second = (home.call_by_name(task, str(pids)).result for _ in range(2))
    for name in ("runner", "kept", "tracker"):
        assert first[name] == second[name]
    assert all(lives(pid) for pid in (*first.values(), *second.values()))
    assert [pid for pid in pids_in(pids) if lives(pid)] == []


def test_a_process_of_a_worker_pool_is_gone_though_a_server_forked_it(
    shared: Home, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    for _ in range(2):
        assert shared.call(sample.leave_a_process, str(pids), "forkserver", "completed").state
    assert len(pids_in(pids)) == 2
    assert [pid for pid in pids_in(pids) if lives(pid)] == []


@pytest.mark.parametrize("end", ["cancelled", "completed"])
def test_what_a_lone_coroutine_left_is_gone(home: Home, tmp_path: Path, end: str) -> None:
    home.worker_with_tasks()
    pids, go = tmp_path / "pids", tmp_path / "go"
    job = start_async(home, pids, go)
    if end == "cancelled":
        home.client.cancel(job)
    else:
        go.touch()
    assert home.ended(job).state == end
    assert not lives(pids_in(pids)[0])


@pytest.mark.parametrize("how", sorted(sample.STARTS_ASYNC))
@pytest.mark.parametrize("end", ["cancelled", "completed"])
def test_a_coroutine_ends_with_its_own_processes_and_with_none_of_another(
    home: Home, tmp_path: Path, how: str, end: str
) -> None:
    home.worker_with_tasks("--slots", 3)
    other_pids, other_go = tmp_path / "other-pids", tmp_path / "other-go"
    other = start_async(home, other_pids, other_go, how)
    pids, go = tmp_path / "pids", tmp_path / "go"
    job = start_async(home, pids, go, how)
    runner = home.call(sample.which_process_async).result
    if end == "cancelled":
        home.client.cancel(job)
    else:
        go.touch()
    assert home.ended(job).state == end
    assert [pid for pid in pids_in(pids) if lives(pid)] == []
    assert all(lives(pid) for pid in pids_in(other_pids))
    other_go.touch()
    ended = home.ended(other)
    assert (ended.state, ended.interruptions) == ("completed", 0)
    assert [pid for pid in pids_in(other_pids) if lives(pid)] == []
    assert home.call(sample.which_process_async).result == runner


def test_what_nobody_can_tell_apart_ends_with_the_last_coroutine(
    home: Home, tmp_path: Path
) -> None:
    """Started by code that is not of the standard library."""
    home.worker_with_tasks("--slots", 2)
    other_go = tmp_path / "other-go"
    other = start_async(home, tmp_path / "other-pids", other_go)
    pids, go = tmp_path / "pids", tmp_path / "go"
    job = start_async(home, pids, go, "foreign")
    go.touch()
    assert home.ended(job).state == "completed"
    assert lives(pids_in(pids)[0])
    other_go.touch()
    assert home.ended(other).state == "completed"
    assert not lives(pids_in(pids)[0])


def test_a_deaf_process_of_a_coroutine_is_killed_within_its_grace_and_takes_nobody_along(
    home: Home, tmp_path: Path
) -> None:
    home.worker_with_tasks("--slots", 2)
    other_go = tmp_path / "other-go"
    other = start_async(home, tmp_path / "other-pids", other_go)
    pids = tmp_path / "pids"
    job = start_async(home, pids, tmp_path / "never", "deaf", grace=1)
    home.client.cancel(job)
    assert home.ended(job).state == "cancelled"
    assert not lives(pids_in(pids)[0])
    other_go.touch()
    ended = home.ended(other)
    assert (ended.state, ended.interruptions) == ("completed", 0)


@pytest.mark.parametrize("task", [sample.leave_a_process, sample.leave_a_process_async])
def test_what_it_left_has_its_grace_to_end_cleanly(home: Home, tmp_path: Path, task: Any) -> None:
    home.worker_with_tasks()
    pids, tidied = tmp_path / "pids", tmp_path / "pids-tidied"
    if task is sample.leave_a_process:
        args = [str(pids), "tidy", "completed"]
    else:
        (tmp_path / "go").touch()
        args = [str(pids), str(tmp_path / "go"), "tidy"]
    assert home.call(task.options(grace=20), *args).state == "completed"
    assert tidied.read_text() == "tidied\n"  # it takes a second
    assert not lives(pids_in(pids)[0])


def start_async(home: Home, pids: Path, go: Path, how: str = "exec", grace: float = 20) -> int:
    task: Any = sample.leave_a_process_async.options(grace=grace)
    job = home.client.enqueue(task, str(pids), str(go), how).id
    eventually(lambda: pids_in(pids), PATIENCE)
    return job


# Pools that a project keeps


@pytest.fixture
def pools(home: Home) -> Home:
    home.worker("--import", "tests.lifecycle.pools", "--slots", 1)
    return home


@pytest.mark.parametrize("task", ["use_executor", "use_executor_async", "use_pool"])
def test_a_pool_that_is_held_stays_for_the_next_call(pools: Home, task: str) -> None:
    first, second = (pools.call_by_name(f"tests.lifecycle.pools.{task}") for _ in range(2))
    assert (first.error, second.error) == (None, None)
    assert first.result
    assert first.result == second.result
    assert all(lives(pid) for pid in first.result)


def test_a_pool_that_nobody_holds_ends_with_the_call(pools: Home, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    ended = pools.call_by_name("tests.lifecycle.pools.forget_a_pool", str(pids), grace=0.2)
    assert (ended.state, ended.error) == ("completed", None)
    assert not lives(pids_in(pids)[0])


def test_what_is_left_beside_a_pool_ends(pools: Home, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    task = "tests.lifecycle.pools.leave_one_beside_the_pool"
    ended = pools.call_by_name(task, str(pids), grace=0.2)
    assert all(lives(pid) for pid in ended.result)
    assert not lives(pids_in(pids)[0])
    after = pools.call_by_name("tests.lifecycle.pools.use_executor")
    assert set(ended.result) <= set(after.result)


def test_a_pool_ends_with_its_worker(pools: Home) -> None:
    kept = pools.call_by_name("tests.lifecycle.pools.use_executor").result
    assert pools.svcq("worker", "stop").returncode == 0
    assert pools.started[-1].wait(PATIENCE) == 0
    assert [pid for pid in kept if lives(pid)] == []


def test_what_an_import_started_ends_with_its_worker(home: Home, tmp_path: Path) -> None:
    worker = home.worker("--import", "tests.lifecycle.keeper")
    task = "tests.lifecycle.keeper.leave_one_beside_those_kept"
    kept = home.call_by_name(task, str(tmp_path / "pids")).result
    assert lives(kept["of kept"])
    worker.process.terminate()
    assert worker.ended() == 0
    assert [name for name, pid in kept.items() if lives(pid)] == []
