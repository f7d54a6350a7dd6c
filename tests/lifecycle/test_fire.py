"""`svcq schedule fire` where nothing of svcq runs: it sees its job through, and leaves nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from svcq.worker import neighbours
from svcq.worker.places import Places
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home


def add(home: Home, command: str, **words: object) -> None:
    home.client.schedule("s", command, every="1h", cwd=str(home.work), **words)


def come(home: Home) -> None:
    """Let one of its times have come."""
    schedule = home.client.get_schedule("s")
    with home.client.store.engine.write(durable=True) as tx:
        tx.run("advance_schedule", name="s", revision=schedule.revision, now=tx.now, rows=0,
               next_at=tx.now - 1000, due_at=None)  # fmt: skip


def test_it_exits_as_the_job_did_and_a_worker_is_there_for_it(home: Home) -> None:
    add(home, "echo hello; exit 7")
    ran = home.svcq("schedule", "fire", "s", "--wait")
    assert ran.returncode == 7
    assert "s: queued job 1.\nJob 1 is dead with exit code 7" in ran.stdout
    (worker,) = home.client.workers()
    assert Places(home.path).worker_lock(worker.pid, worker.born or "").read_text() == "kept"
    assert list(Places(home.path).attendants.iterdir()) == []
    # The next one is served by that worker.
    assert home.svcq("schedule", "fire", "s", "--wait").returncode == 7
    assert [one.id for one in home.client.workers()] == [worker.id]


def test_what_is_due_is_fired_for_its_time(home: Home) -> None:
    add(home, "true")
    assert home.svcq("schedule", "fire", "s", "--due").stdout == (
        "s: none of its times has come.\n"
    )
    assert home.client.workers() == []
    come(home)
    ran = home.svcq("schedule", "fire", "s", "--due", "--wait")
    assert (ran.returncode, ran.stdout) == (
        0, "s: queued job 1.\nJob 1 is completed with exit code 0.\n",
    )  # fmt: skip
    (fired,) = home.client.firings("s")
    assert (fired.how, fired.nominal is not None) == ("fired", True)


def test_without_waiting_the_job_is_seen_through_all_the_same(home: Home) -> None:
    add(home, "echo once >> ran; test -e again || { touch again; exit 1; }", max_attempts=2)
    ran = home.svcq("schedule", "fire", "s")
    assert (ran.returncode, ran.stdout) == (0, "s: queued job 1.\n")
    ended = home.ended(1)
    assert (ended.state, ended.attempts) == ("completed", 2)
    # Whoever saw to the worker is gone when there is nothing more to see to.
    attendants = Places(home.path).attendants
    eventually(lambda: not list(attendants.iterdir()), PATIENCE)


@pytest.mark.early
def test_a_worker_that_dies_meanwhile_is_replaced(home: Home) -> None:
    add(home, "echo x >> begun; until [ -e go ]; do sleep 0.05; done")
    fire = home.start("schedule", "fire", "s", "--wait")
    begun = home.work / "begun"
    eventually(lambda: begun.exists() and begun.read_text() == "x\n", PATIENCE)
    (worker,) = home.client.workers()
    os.kill(worker.pid, signal.SIGKILL)
    eventually(lambda: begun.read_text() == "x\nx\n", PATIENCE + neighbours.ORPHANED)
    (home.work / "go").touch()
    assert fire.wait(PATIENCE) == 0


def test_killed_it_leaves_the_job_to_its_worker(home: Home) -> None:
    add(home, "touch begun; until [ -e go ]; do sleep 0.05; done")
    fire = home.start("schedule", "fire", "s", "--wait")
    eventually((home.work / "begun").exists, PATIENCE)
    fire.kill()
    fire.wait()
    assert not neighbours.has_keeper(Places(home.path))
    (home.work / "go").touch()
    assert home.ended(1).state == "completed"
    # What it left behind, the next one clears away.
    assert len(list(Places(home.path).attendants.iterdir())) == 1
    assert home.svcq("schedule", "fire", "s", "--wait").returncode == 0
    assert list(Places(home.path).attendants.iterdir()) == []


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_while_its_job_runs(home: Home, overlap: str) -> None:
    add(home, "touch begun; until [ -e go ]; do sleep 0.05; done", overlap=overlap)
    fire = home.start("schedule", "fire", "s", "--wait")
    eventually((home.work / "begun").exists, PATIENCE)
    come(home)
    ran = home.svcq("schedule", "fire", "s", "--due")
    assert ran.returncode == 0
    said = "skipped, its job 1 is still processing" if overlap == "skip" else "queued job 2"
    assert said in ran.stdout
    (home.work / "go").touch()
    assert fire.wait(PATIENCE) == 0
    if overlap == "queue":
        assert home.ended(2).state == "completed"


def test_the_lock_of_an_attendant_is_its_owners_alone(home: Home, tmp_path: Path) -> None:
    add(home, "true")
    home.svcq("schedule", "fire", "s", "--wait")
    assert Places(home.path).attendants.stat().st_mode & 0o777 == 0o700
