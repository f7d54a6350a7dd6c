"""svcq as a service of a user, under a real systemd: jobs do not feel what happens to it."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from svcq.worker.places import Note
from tests.helpers import eventually
from tests.linux.manager import Manager
from tests.linux.namespaces import PATIENCE


def wait_for(folder: Path) -> str:
    """A command that says when it begins, and goes on until it is let go."""
    wait = f"until [ -e {folder}/go ]; do sleep 0.05; done"
    return f"echo begun; echo x >> {folder}/begun; {wait}; echo over"


def begin(manager: Manager, folder: Path, times: int = 1) -> int:
    job = manager.add(wait_for(folder))
    has_begun(folder, times)
    return job


def has_begun(folder: Path, times: int) -> None:
    file = folder / "begun"
    eventually(lambda: file.exists() and len(file.read_text().split()) == times, PATIENCE)


def finish(manager: Manager, folder: Path, job: int) -> None:
    (folder / "go").touch()
    ended = manager.ended(job)
    assert (ended.state, ended.run, ended.failures, ended.losses) == ("completed", 1, 0, 0)
    assert manager.svcq("log", job) == "begun\nover\n"


def test_it_runs_jobs_in_units_of_their_own(installed: Manager) -> None:
    job = installed.add("cat /proc/self/cgroup; echo $PATH")
    assert installed.ended(job).state == "completed"
    *cgroups, path = installed.svcq("log", job).split()
    assert any("/svcq-worker-" in cgroup for cgroup in cgroups)
    assert path == os.environ["PATH"]
    said = "Workers: 1; jobs running: 0"
    eventually(lambda: said in installed.systemctl("status", "svcq.service"), PATIENCE)
    status = json.loads(installed.svcq("status", "--json"))["service"]
    assert status == {
        "installed": True, "running": True, "pid": installed.service_pid(), "text": said,
    }  # fmt: skip
    assert "The service runs" in installed.svcq("status")


def test_a_restart_leaves_jobs_and_workers_alone(installed: Manager, tmp_path: Path) -> None:
    job = begin(installed, tmp_path)
    before, workers = installed.service_pid(), installed.workers()
    assert installed.svcq("restart") == "The service runs anew; what was running goes on.\n"
    assert installed.service_pid() != before
    assert [(one.id, one.state) for one in installed.workers()] == [(workers[0].id, "running")]
    finish(installed, tmp_path, job)


def test_a_killed_service_comes_back_and_adopts_its_workers(
    installed: Manager, tmp_path: Path
) -> None:
    job = begin(installed, tmp_path)
    before, workers = installed.service_pid(), installed.workers()
    installed.run("kill", "-9", before)
    eventually(lambda: installed.service_pid() not in (0, before), PATIENCE)
    eventually(lambda: installed.systemctl("is-active", "svcq.service", check=False) == "active")
    assert [one.id for one in installed.workers()] == [workers[0].id]
    finish(installed, tmp_path, job)


def test_after_a_stop_jobs_finish_and_nothing_new_begins(
    installed: Manager, tmp_path: Path
) -> None:
    job = begin(installed, tmp_path)
    said = installed.svcq("stop")
    assert "1 job that runs goes on to its end" in said
    waiting = installed.add("exit 0")
    finish(installed, tmp_path, job)
    eventually(lambda: installed.workers() == [], PATIENCE)
    assert installed.job(waiting).state == "pending"
    installed.svcq("start")
    assert installed.ended(waiting).state == "completed"


def test_stopped_now_jobs_go_back(installed: Manager, tmp_path: Path) -> None:
    job = begin(installed, tmp_path)
    assert "goes back" in installed.svcq("stop", "--now")
    eventually(lambda: installed.job(job).state == "pending", PATIENCE)
    stood = installed.job(job)
    assert (stood.failures, stood.interruptions) == (0, 1)


def test_the_end_of_a_session_interrupts_and_the_next_one_goes_on(
    installed: Manager, tmp_path: Path
) -> None:
    job = begin(installed, tmp_path)
    installed.end_session()
    stood = installed.job(job)
    assert (stood.state, stood.failures, stood.interruptions) == ("pending", 0, 1)
    installed.boot()
    has_begun(tmp_path, 2)
    (tmp_path / "go").touch()
    ended = installed.ended(job)
    assert (ended.state, ended.run, ended.failures) == ("completed", 2, 0)


def test_a_worker_that_dies_is_replaced_and_its_job_runs_again(
    installed: Manager, tmp_path: Path
) -> None:
    job = begin(installed, tmp_path)
    (worker,) = installed.workers()
    installed.run("kill", "-9", worker.pid)
    has_begun(tmp_path, 2)
    (tmp_path / "go").touch()
    ended = installed.ended(job)
    assert (ended.state, ended.failures, ended.losses) == ("completed", 0, 1)


def test_an_end_of_all_power_loses_nothing(installed: Manager, tmp_path: Path) -> None:
    job = begin(installed, tmp_path)
    installed.cut_power()
    installed.boot()
    has_begun(tmp_path, 2)
    (tmp_path / "go").touch()
    assert installed.ended(job).state == "completed"


def test_workers_follow_the_settings_without_a_restart(installed: Manager) -> None:
    installed.configure("[workers]\nslots = 2\ncount = 3\n")
    eventually(lambda: len(installed.workers(state="running", slots=2)) == 3, PATIENCE)
    installed.configure("[workers]\nslots = 1\n")
    eventually(lambda: [one.slots for one in installed.workers()] == [1], PATIENCE)
    installed.configure("[workers]\nslots = -1\n")
    eventually(lambda: "slots" in installed.systemctl("status", "svcq.service"), PATIENCE)
    installed.configure("[workers]\nslots = 1\n")
    assert installed.ended(installed.add("exit 0")).state == "completed"


def test_a_project_added_while_it_runs_is_served(installed: Manager, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import svcq\n@svcq.task\ndef sell(n): return n + 1\n")
    installed.svcq("project", "add", tmp_path, "--import", "shop", "--python", sys.executable)
    with installed.client as client:
        job = client.add([client.new_task("shop.sell", [41], {})])[0].id
    ended = installed.ended(job)
    assert (ended.state, ended.result) == ("completed", 42)


def test_workers_of_another_version_finish_and_make_room(
    installed: Manager, tmp_path: Path
) -> None:
    job = begin(installed, tmp_path)
    (old,) = installed.workers()
    with closing(sqlite3.connect(installed.svcq_home / "svcq.db")) as store:
        store.execute("UPDATE workers SET version = '0.0.1'")
        store.commit()
    eventually(lambda: [one.id for one in installed.workers(state="draining")] == [old.id])
    eventually(lambda: len(installed.workers(state="running")) == 1, PATIENCE)
    finish(installed, tmp_path, job)
    eventually(lambda: len(installed.workers()) == 1, PATIENCE)


def test_workers_that_people_started_are_left_alone(installed: Manager) -> None:
    installed.svcq("worker", "start", "--slots", 5)
    eventually(lambda: installed.workers(slots=5), PATIENCE)
    installed.svcq("restart")
    eventually(lambda: len(installed.workers(state="running")) == 2, PATIENCE)


def test_a_pid_that_is_someone_elses_now_is_left_alone(installed: Manager, tmp_path: Path) -> None:
    job = begin(installed, tmp_path)
    (worker,) = installed.workers()

    # Whoever rescues the job later goes by what stands in its seat.
    def leader_of(seat: Path) -> int | None:
        note = Note.read(str(seat))
        return note and note.pid

    leader = eventually(
        lambda: next(filter(None, map(leader_of, installed.svcq_home.glob("runs/*.1"))), None),
        PATIENCE,
    )
    installed.run("kill", "-STOP", installed.service_pid())
    installed.systemctl("kill", "--signal", "KILL", "--kill-whom", "all", "svcq-worker-*")
    eventually(lambda: not installed.lives(worker.pid) and not installed.lives(leader), PATIENCE)
    for pid in (worker.pid, leader):
        installed.run(sys.executable, Path(__file__).with_name("take_pid.py"), pid)
        assert installed.lives(pid)
    installed.run("kill", "-CONT", installed.service_pid())
    has_begun(tmp_path, 2)
    (tmp_path / "go").touch()
    assert installed.ended(job).losses == 1
    installed.svcq("stop", "--now")
    installed.svcq("uninstall")
    assert installed.lives(worker.pid)
    assert installed.lives(leader)


def test_after_a_stop_not_one_more_job_begins(installed: Manager, tmp_path: Path) -> None:
    """Whatever was claimed by then is told, and runs to its end; all else waits."""
    file = tmp_path / "began"
    with installed.client as client:
        line = f"echo x >> {file}; sleep 0.02"
        jobs = [client.new_command(line, cwd="/") for _ in range(400)]
        client.add(jobs)
    eventually(lambda: file.exists() and len(file.read_text()) > 20, PATIENCE)
    installed.svcq("stop")
    with installed.client as client:
        waiting = client.counts()["pending"]
        eventually(lambda: client.counts()["processing"] == 0, PATIENCE)
        counts = client.counts()
    # Some that were claimed ahead of a free slot may have gone back.
    assert counts["pending"] >= waiting > 0
    assert counts["completed"] == 400 - counts["pending"] == len(file.read_text().split())


def test_there_is_one_service(installed: Manager) -> None:
    said = installed.refused(1, "service")
    assert f"The service runs already, with pid {installed.service_pid()}, on" in said


def test_a_service_that_hangs_is_started_anew(installed: Manager, tmp_path: Path) -> None:
    folder = installed.home / ".config/systemd/user/svcq.service.d"
    folder.mkdir()
    (folder / "soon.conf").write_text("[Service]\nWatchdogSec=6\nTimeoutAbortSec=1\n")
    installed.systemctl("daemon-reload")
    installed.svcq("restart")
    job = begin(installed, tmp_path)
    before = installed.service_pid()
    installed.run("kill", "-STOP", before)
    eventually(lambda: installed.service_pid() not in (0, before), PATIENCE)
    finish(installed, tmp_path, job)


def test_uninstalled_nothing_is_left_but_the_data(installed: Manager, tmp_path: Path) -> None:
    job = begin(installed, tmp_path)
    installed.svcq("uninstall")
    stood = installed.job(job)
    assert (stood.state, stood.failures) == ("pending", 0)
    assert installed.workers() == []
    assert list(installed.home.rglob("svcq*.service")) == []
    assert "not installed" in installed.refused(1, "start")
    assert "nothing to remove" in installed.refused(1, "uninstall")
    installed.svcq("install", "--no-linger", "--no-start")
    installed.svcq("uninstall", "--purge", "--yes")
    assert not installed.svcq_home.exists()


def test_the_unit_is_one_that_systemd_understands(installed: Manager) -> None:
    unit = installed.home / ".config/systemd/user/svcq.service"
    ran = installed.run("systemd-analyze", "--user", "verify", unit, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_unit_of_someone_else_is_not_replaced(manager: Manager) -> None:
    unit = manager.home / ".config/systemd/user/svcq.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    assert "was not made by svcq" in manager.refused(1, "install")
    assert "ExecStart=/bin/true" in unit.read_text()


@pytest.mark.parametrize("command", ["install", "start", "stop", "restart", "uninstall"])
def test_without_a_manager_there_is_a_sentence(manager: Manager, command: str) -> None:
    if command != "install":
        manager.svcq("install", "--no-linger", "--no-start")
    (manager.folder / "run" / "bus").rename(manager.folder / "run" / "no-bus")
    (manager.folder / "run" / "systemd").rename(manager.folder / "run" / "no-systemd")
    assert "cannot be reached" in manager.refused(4, command)
