"""kill -9 of workers, runners and jobs, at any moment, against a stream of short jobs.

What happened is read from a record that the jobs keep themselves: every job ended, none met
itself, and nothing was lost.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import Home, Started

KILLS = 15
JOBS_PER_KILL = 24
RECORDER = str(Path(__file__).with_name("recorder.py"))
PATIENT = {
    "max_attempts": 1000,
    "max_losses": 1000,
    "max_interruptions": 1000,
    "backoff_base": 0.01,
}


@pytest.mark.parametrize("seed", [1, 2])
def test_every_job_ends_and_none_meets_itself(home: Home, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "record"
    folder.mkdir()
    workers = [home.worker_with_tasks("--slots", 2) for _ in range(2)]
    added: list[int] = []
    for _ in range(KILLS):
        added += add_jobs(home, folder)
        moment = written(folder) + chance.randrange(2 * JOBS_PER_KILL)
        eventually(lambda moment=moment: written(folder) >= moment, 60, chance.uniform(0.001, 0.02))
        kill_one(home, workers, chance)
    eventually(lambda: home.client.counts()["completed"] == len(added), 120, 0.1)
    lines = [line.split() for line in (folder / "record").read_text().splitlines()]
    assert [line for line in lines if line[1] == "overlaps"] == []
    assert_no_late_end(lines)
    ended = Counter(int(job) for job, what in lines if what == "ends")
    assert ended.keys() == set(added)
    assert home.client.counts()["processing"] == 0
    lost = sum(home.client.get(job).losses for job in added)
    failures = sum(home.client.get(job).failures for job in added)
    assert lost + failures > 0  # the kills have hit something


def written(folder: Path) -> int:
    """How many lines the record has."""
    file = folder / "record"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def add_jobs(home: Home, folder: Path) -> list[int]:
    """Commands and tasks in turn, of a few hundredths of a second."""
    command = [sys.executable, "-S", RECORDER, str(folder), "0.02"]
    new = []
    for number in range(JOBS_PER_KILL):
        if number % 2:
            name, arguments = sample.recorded.name, [str(folder), 0.03]
            new.append(home.client.new_task(name, arguments, {}, **PATIENT))
        else:
            new.append(home.client.new_command(command, cwd=str(home.work), **PATIENT))
    return [one.id for one in home.client.add(new)]


def kill_one(home: Home, workers: list[Started], chance: random.Random) -> None:
    """A worker, which is replaced; or any process that a worker has started."""
    victim = chance.choice(workers)
    children = children_of(victim.pid)
    if children and chance.random() < 0.5:
        try:
            os.kill(chance.choice(children), signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        workers.remove(victim)
        victim.kill()
        workers.append(home.worker_with_tasks("--slots", 2))


def children_of(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


def assert_no_late_end(lines: list[list[str]]) -> None:
    """The end of a run never comes after the start of the next one."""
    open_runs: Counter[str] = Counter()
    for job, what in lines:
        if what == "starts":
            open_runs[job] = 1  # the one before, if it has not ended, is dead
        else:
            assert open_runs[job] == 1, f"job {job} ended twice for one start"
            open_runs[job] = 0
