"""What a job may use holds for tasks as it does for commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, Home

BOTH = pytest.mark.parametrize("task", [sample.usage, sample.usage_async])


@BOTH
def test_nice_and_cpus_hold_for_it_and_its_children(shared: Home, task: Any) -> None:
    used = shared.call(task.options(nice=7, cpus=1)).result
    assert (used["nice"], used["cpus"]) == (7, 1)
    assert used["child"] == [7, 1]


@BOTH
def test_they_hold_for_no_other_call(home: Home, task: Any) -> None:
    home.worker_with_tasks("--slots", 1)
    before = home.call(task).result
    for nice in (9, 0, 12):
        limited = home.call(task.options(nice=nice)).result
        assert limited["nice"] == nice
        assert limited["process"] != before["process"]
    assert home.call(task).result == before


def test_a_runner_with_limits_is_kept_warm_for_the_same_limits(home: Home) -> None:
    home.worker_with_tasks("--slots", 1)
    same = {home.call(sample.usage.options(nice=7)).result["process"] for _ in range(5)}
    assert len(same) == 1


def test_calls_with_limits_take_no_more_than_the_slots(home: Home, tmp_path: Path) -> None:
    home.worker_with_tasks("--slots", 2)
    go = tmp_path / "go"
    tasks = [sample.until_file, sample.until_file_async]
    jobs = [
        home.client.enqueue(task.options(nice=nice), str(go)).id
        for nice in (6, 7, 8)
        for task in tasks
    ]
    eventually(lambda: home.client.counts()["processing"] == 2, PATIENCE)
    go.touch()
    assert {home.ended(job).state for job in jobs} == {"completed"}


def test_a_coroutine_with_limits_can_be_cancelled(shared: Home, tmp_path: Path) -> None:
    task = sample.until_file_async.options(nice=7, grace=20)
    job = shared.client.enqueue(task, str(tmp_path / "never")).id
    shared.wait_until_running(job)
    shared.client.cancel(job)
    assert shared.ended(job).state == "cancelled"


def test_a_coroutine_over_its_memory_takes_no_other_along(home: Home, tmp_path: Path) -> None:
    home.worker_with_tasks("--slots", 2)
    go = tmp_path / "go"
    other = home.client.enqueue(sample.until_file_async, str(go)).id
    home.wait_until_running(other)
    ended = home.call(sample.use_memory_async.options(memory="150M"), 400)
    assert str(ended.error).endswith("MiB of memory, over its 150")
    go.touch()
    ended = home.ended(other)
    assert (ended.state, ended.interruptions) == ("completed", 0)
