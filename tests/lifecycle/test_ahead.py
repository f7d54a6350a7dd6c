"""Short commands are claimed before a slot is free for them, and nobody waits longer for it."""

from __future__ import annotations

import signal
from pathlib import Path

from svcq.jobs import State
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home


def queue_behind_a_long_one(home: Home, tmp_path: Path) -> tuple[int, list[int]]:
    """A worker that knows commands as short takes a long one, and what stands behind it."""
    for _ in range(30):
        home.client.command(["true"], cwd=str(tmp_path))
    eventually(lambda: home.client.counts()["completed"] == 30, PATIENCE)
    home.client.pause("default")
    long = home.add(f"echo x >> {tmp_path}/began; until [ -e {tmp_path}/go ]; do sleep 0.02; done")
    short = [home.add("exit 0") for _ in range(5)]
    home.client.resume("default")
    eventually((tmp_path / "began").exists, PATIENCE)
    return long, short


def test_those_behind_a_long_command_run_elsewhere(home: Home, tmp_path: Path) -> None:
    home.worker("--slots", 1)
    long, short = queue_behind_a_long_one(home, tmp_path)
    home.worker("--slots", 1)
    for job in short:
        ended = home.ended(job)
        assert (ended.state, ended.failures, ended.interruptions) == ("completed", 0, 0)
    assert home.is_running(long)
    (tmp_path / "go").touch()
    assert home.ended(long).state == "completed"


def test_those_behind_wait_again_when_nobody_is_there(home: Home, tmp_path: Path) -> None:
    home.worker("--slots", 1)
    _, short = queue_behind_a_long_one(home, tmp_path)
    states = [State.PENDING] * len(short)
    eventually(lambda: [home.client.get(job).state for job in short] == states, PATIENCE)
    assert home.client.cancel(short[2]).state is State.CANCELLED


def test_what_was_claimed_ahead_goes_back_when_the_worker_ends(home: Home, tmp_path: Path) -> None:
    worker = home.worker("--slots", 1)
    jobs = [home.client.command(["true"], cwd=str(tmp_path)).id for _ in range(300)]
    eventually(lambda: home.client.counts()["completed"] > 50, PATIENCE)
    worker.signal(signal.SIGTERM)
    worker.ended()
    assert home.client.counts()["processing"] == 0
    home.worker("--slots", 2)
    ended = [home.ended(job) for job in jobs]
    assert {(job.state, job.failures) for job in ended} == {("completed", 0)}
