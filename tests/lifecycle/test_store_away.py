"""The store cannot be written for a while: outcomes are kept, delivered later, and nothing runs
twice."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, QUICK, Home

RECORD = "echo $SVCQ_RUN >> {0}/runs; until [ -e {0}/go ]; do sleep 0.02; done; echo done"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home whose programs give up early on a store that is locked."""
    home = Home(tmp_path, f'busy_wait = "100ms"\n{QUICK}')
    yield home
    home.close()


@contextmanager
def locked(home: Home) -> Iterator[None]:
    """Another program holds the store, as a backup tool or a person with a shell may."""
    with closing(sqlite3.connect(home.client.config.store, timeout=PATIENCE)) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


def spooled(home: Home) -> list[str]:
    return [name for name in os.listdir(home.path / "spool") if name.endswith(".json")]


def runs(folder: Path) -> list[str]:
    return (folder / "runs").read_text().split() if (folder / "runs").exists() else []


def test_an_outcome_is_delivered_when_the_store_is_back(home: Home, tmp_path: Path) -> None:
    worker = home.worker_with_tasks("--slots", 2)
    command = home.add(RECORD.format(tmp_path))
    task = home.client.enqueue(sample.until_file, str(tmp_path / "go")).id
    home.wait_until_running(task)
    eventually(lambda: runs(tmp_path), PATIENCE)
    with locked(home):
        (tmp_path / "go").touch()
        eventually(lambda: spooled(home), PATIENCE)
        assert home.is_running(command)
    for job in (command, task):
        ended = home.ended(job)
        assert (ended.state, ended.run) == ("completed", 1)
    assert home.client.runs(command)[0].tail == "done"
    eventually(lambda: spooled(home) == [], PATIENCE)
    assert len(runs(tmp_path)) == 1
    assert worker.process.poll() is None
    assert "was locked by another program" in home.said()
    assert home.run("exit 0").state == "completed"


def test_the_next_worker_delivers_what_a_killed_one_kept(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    job = home.add(RECORD.format(tmp_path))
    eventually(lambda: runs(tmp_path), PATIENCE)
    with locked(home):
        (tmp_path / "go").touch()
        eventually(lambda: spooled(home), PATIENCE)
        worker.kill()
    home.worker()
    ended = home.ended(job)
    assert (ended.state, ended.run, ended.losses) == ("completed", 1, 0)
    assert len(runs(tmp_path)) == 1
    eventually(lambda: spooled(home) == [], PATIENCE)


def test_without_a_place_to_keep_it_an_outcome_stays_in_memory(home: Home, tmp_path: Path) -> None:
    home.worker()
    job = home.add(RECORD.format(tmp_path))
    eventually(lambda: runs(tmp_path), PATIENCE)
    shutil.rmtree(home.path / "spool")
    (home.path / "spool").touch()
    with locked(home):
        (tmp_path / "go").touch()
        eventually(lambda: "was locked by another program" in home.said(), PATIENCE)
        assert home.is_running(job)
    ended = home.ended(job)
    assert (ended.state, ended.run) == ("completed", 1)
    assert len(runs(tmp_path)) == 1


def test_a_worker_told_to_end_meanwhile_ends_when_it_has_told(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    job = home.add(RECORD.format(tmp_path))
    eventually(lambda: runs(tmp_path), PATIENCE)
    with locked(home):
        worker.signal(signal.SIGTERM)
        eventually(lambda: spooled(home) or worker.process.poll() is not None, PATIENCE)
    assert worker.ended() == 0
    home.worker()
    (tmp_path / "go").touch()
    ended = home.ended(job)
    assert (ended.state, ended.failures, ended.losses) == ("completed", 0, 0)
    assert ended.interruptions == 1


def test_a_home_moved_away_and_back(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    job = home.add(RECORD.format(tmp_path))
    eventually(lambda: runs(tmp_path), PATIENCE)
    away = home.path.with_name("away")
    home.path.rename(away)
    (tmp_path / "go").touch()
    away.rename(home.path)
    assert home.ended(job).state == "completed"
    assert len(runs(tmp_path)) == 1
    assert worker.process.poll() is None
    assert home.run("exit 0").state == "completed"


def test_up_lives_through_it(home: Home, tmp_path: Path) -> None:
    up = home.start("up", "--count", 1)
    eventually(home.client.workers, PATIENCE)
    with locked(home):
        (worker,) = home.client.workers()
        os.kill(worker.pid, signal.SIGKILL)
        eventually(lambda: "was locked by another program" in home.said(), PATIENCE)
    assert home.run("exit 0").state == "completed"
    assert up.poll() is None


def test_a_store_that_is_locked_when_a_worker_starts(home: Home) -> None:
    with locked(home):
        process = home.start("worker", "run")
        assert process.wait(PATIENCE) == 4
    said = home.said()
    assert said.startswith("svcq: The store ")
    assert said.count("\n") == 1
