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
    task = sample.leave_a_process.options(grace=20, **limit)
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


def test_a_coroutine_ends_no_process_of_another(home: Home, tmp_path: Path) -> None:
    home.worker_with_tasks("--slots", 2)
    other_pids, other_go = tmp_path / "other-pids", tmp_path / "other-go"
    other = start_async(home, other_pids, other_go)
    pids = tmp_path / "pids"
    job = start_async(home, pids, tmp_path / "never")
    home.client.cancel(job)
    assert home.ended(job).state == "cancelled"
    assert lives(pids_in(other_pids)[0])
    other_go.touch()
    assert home.ended(other).state == "completed"
    assert [pid for pid in pids_in(pids) + pids_in(other_pids) if lives(pid)] == []


def start_async(home: Home, pids: Path, go: Path) -> int:
    task: Any = sample.leave_a_process_async.options(grace=20)
    job = home.client.enqueue(task, str(pids), str(go)).id
    eventually(lambda: pids_in(pids), PATIENCE)
    return job
