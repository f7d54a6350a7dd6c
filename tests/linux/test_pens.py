"""Runs in cgroups of their own, where a worker was given one to divide: nothing gets away."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, Home, Started, lives
from tests.linux.manager import Manager
from tests.linux.namespaces import cgroup2

# Loses whatever a process can lose: its session, parent, environment, files and limits.
SLEEPER = str(Path(sample.__file__).with_name("sleeper.py"))
ESCAPE = f"(setsid env -i {sys.executable} -S {SLEEPER} FILE fork close unbrand ignore &) &"


class Unit:
    """A cgroup that is delegated to a worker, as that of a systemd unit is."""

    def __init__(self, home: Home) -> None:
        self.folder = cgroup2() / f"svcq-test-{os.getpid()}-{home.path.parent.name}.service"
        self.folder.mkdir()
        self._home = home

    def worker(self, *arguments: object) -> Started:
        """Born in the cgroup, as we stand in it meanwhile."""
        usual = cgroup2() / Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
        (self.folder / "cgroup.procs").write_text("0")
        try:
            self._home.start("worker", "run", *arguments, env={"SVCQ_DELEGATED": self.folder.name})
        finally:
            (usual / "cgroup.procs").write_text("0")
        process = self._home.started[-1]
        known = eventually(lambda: self._home.worker_of(process.pid), PATIENCE)
        return Started(process, known.id)

    def pens(self) -> list[Path]:
        return [folder for folder in self.folder.iterdir() if folder.is_dir()]

    def close(self) -> None:
        with suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1")
        eventually(lambda: "populated 0" in (self.folder / "cgroup.events").read_text(), PATIENCE)
        for pen in self.pens():
            pen.rmdir()
        self.folder.rmdir()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.close()


@pytest.fixture
def unit(home: Home) -> Iterator[Unit]:
    unit = Unit(home)
    yield unit
    unit.close()


def pid_in(file: Path) -> int:
    eventually(lambda: file.exists() and file.read_text().endswith("\n"), PATIENCE)
    return int(file.read_text())


def cgroup_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text().rpartition("0::")[2].strip()


def test_each_run_has_a_pen_of_its_own_and_the_worker_is_in_none_of_them(
    home: Home, unit: Unit, tmp_path: Path
) -> None:
    worker = unit.worker("--slots", 3)
    jobs = [home.add(f"echo $$ > {tmp_path}/{n}; sleep 600") for n in range(3)]
    pids = [pid_in(tmp_path / str(n)) for n in range(3)]
    eventually(lambda: len({cgroup_of(pid) for pid in (*pids, worker.pid)}) == 4, PATIENCE)
    assert all(f"/{unit.folder.name}/svcq-" in cgroup_of(pid) for pid in (*pids, worker.pid))
    for job in jobs:
        home.client.cancel(job)
        assert home.ended(job).state == "cancelled"


@pytest.mark.parametrize("end", ["cancelled", "timed out", "failed", "completed", "rescued"])
def test_nothing_gets_away(home: Home, unit: Unit, tmp_path: Path, end: str) -> None:
    worker = unit.worker()
    file = tmp_path / "pid"
    then = {"failed": "exit 3", "completed": "exit 0"}.get(end, "sleep 600")
    wait = f"until [ -s {file} ]; do sleep 0.01; done"
    options: dict[str, Any] = {"timeout": 3} if end == "timed out" else {}
    job = home.add(
        f"{ESCAPE.replace('FILE', str(file))} {wait}; {then}", grace=0.2, max_losses=0, **options
    )
    escaped = pid_in(file)
    if end == "cancelled":
        home.client.cancel(job)
    elif end == "rescued":
        worker.kill()
        assert lives(escaped)
        home.worker("--queue", "none")
    ended = home.ended(job)
    states = {"completed": "completed", "cancelled": "cancelled"}
    assert ended.state == states.get(end, "dead")
    assert not lives(escaped)
    if end == "rescued":
        assert unit.pens() == []  # all of it is tidied up


def test_a_worker_that_only_stands_still_keeps_what_it_runs(
    home: Home, unit: Unit, tmp_path: Path
) -> None:
    worker = unit.worker("--slots", 1)
    job = home.add(f"echo $$ > {tmp_path}/pid; until [ -e {tmp_path}/go ]; do sleep 0.02; done")
    pid = pid_in(tmp_path / "pid")
    worker.signal(signal.SIGSTOP)
    home.worker("--queue", "other")
    assert home.run("sleep 2; exit 0", queue="other").state == "completed"
    assert lives(pid)
    worker.signal(signal.SIGCONT)
    (tmp_path / "go").touch()
    assert home.ended(job).state == "completed"


@pytest.mark.parametrize("end", ["cancelled", "runner killed", "worker killed"])
def test_nothing_gets_away_from_a_task(home: Home, unit: Unit, tmp_path: Path, end: str) -> None:
    worker = unit.worker("--import", "tests.lifecycle.sample")
    file = tmp_path / "pid"
    line = ESCAPE.replace("FILE", str(file))
    task = sample.run_and_wait.options(grace=0.1, max_losses=0)
    job = home.client.enqueue(task, line, str(tmp_path / "runner")).id
    escaped, runner = pid_in(file), pid_in(tmp_path / "runner")
    if end == "cancelled":
        home.client.cancel(job)
    elif end == "runner killed":
        os.kill(runner, signal.SIGKILL)
    else:
        worker.kill()
        home.worker("--queue", "none")
    assert home.ended(job).state in ("dead", "cancelled")
    assert not lives(escaped)
    assert not lives(runner)


def test_pens_are_used_again_and_go_with_the_worker(home: Home, unit: Unit) -> None:
    worker = unit.worker("--slots", 2)
    home.client.add([home.client.new_command(["true"], cwd="/")] * 300)
    eventually(lambda: home.client.counts()["completed"] == 300, PATIENCE)
    assert len(unit.pens()) <= 4
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    assert len(unit.pens()) <= 1  # the one in which it stood


def test_a_job_may_divide_its_pen(home: Home, unit: Unit, tmp_path: Path) -> None:
    """As a container engine does."""
    unit.worker()
    line = (
        f"own={cgroup2()}$(sed -n s/^0:://p /proc/self/cgroup); mkdir $own/part; "
        f"(echo 0 > $own/part/cgroup.procs; exec setsid env -i sleep 600) & "
        f"echo $! > {tmp_path}/pid; until ! grep -q $! $own/cgroup.procs; do sleep 0.01; done"
    )
    assert home.run(line, grace=0.2).state == "completed"
    assert not lives(pid_in(tmp_path / "pid"))
    assert home.run("exit 0").state == "completed"


@pytest.mark.parametrize("kind", ["command", "task", "coroutine"])
def test_memory_over_its_limit_ends_it(home: Home, unit: Unit, kind: str) -> None:
    """By the kernel where it limits the memory of a pen, by a look at it elsewhere."""
    unit.worker("--import", "tests.lifecycle.sample")
    assert home.call(sample.add, 1, 2).result == 3
    if kind == "command":
        hog = "import time; x = bytearray(b'x') * (300 << 20); time.sleep(600)"
        ended = home.ended(home.add_python(hog, memory="150M"))
    else:
        hogs = {"task": sample.use_memory, "coroutine": sample.use_memory_async}
        ended = home.call(hogs[kind].options(memory="150M"), 400)
    assert ended.state == "dead"
    limited = (cgroup2() / "cgroup.controllers").read_text().split().count("memory")
    said = "it needed more than its 150 MiB of memory" if limited else "memory, over its 150"
    assert str(ended.error).endswith(said)
    # The next run has all it needs.
    assert home.run(["true"]).state == "completed"
    assert home.call(sample.add, 1, 2).result == 3


def test_jobs_do_not_hear_of_it(home: Home, unit: Unit) -> None:
    unit.worker()
    job = home.add("env", env=None)
    assert home.ended(job).state == "completed"
    assert "SVCQ_DELEGATED" not in home.output(job)


@pytest.mark.parametrize("unit_name", ["other.service", ""])
def test_what_was_delegated_to_someone_else_is_left_alone(home: Home, unit_name: str) -> None:
    home.worker(env={"SVCQ_DELEGATED": unit_name})
    job = home.add("cat /proc/self/cgroup")
    assert home.ended(job).state == "completed"
    assert "/svcq-" not in home.output(job)


def test_a_service_gives_its_workers_a_cgroup_each(installed: Manager, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    job = installed.add("cat /proc/self/cgroup")
    assert installed.ended(job).state == "completed"
    assert "/svcq-worker-" in installed.svcq("log", job)
    assert ".service/svcq-" in installed.svcq("log", job)
    line = ESCAPE.replace("FILE", str(file))
    job = installed.add(f"{line} until [ -s {file} ]; do sleep 0.01; done; sleep 600")
    eventually(lambda: file.exists() and file.read_text(), PATIENCE)
    installed.svcq("cancel", job)
    assert installed.ended(job).state == "cancelled"
    escaped = file.read_text().strip()
    eventually(lambda: installed.run("kill", "-0", escaped, check=False).returncode, PATIENCE)
