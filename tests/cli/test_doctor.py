"""`svcq doctor`: what is wrong is said with its remedy, and nothing is changed."""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from svcq import doctor
from svcq.client import Client
from svcq.config import load
from svcq.host import processes
from svcq.jobs import completed
from svcq.service.starts import Starts
from svcq.store import Claimer, Report, WorkerInfo
from svcq.times import DAY, now_ms
from svcq.worker import spool
from svcq.worker.membership import Membership
from svcq.worker.places import Places
from tests.cli.conftest import Svcq

CHECKS = ["sqlite", "home", "place", "manager", "service", "starts", "config", "logs", "disk",
          "awake", "tray", "store", "integrity", "clock", "schedules", "timers", "workers", "crew",
          "running", "spool", "queues", "conditions"]  # fmt: skip


def problems(svcq: Svcq) -> dict[str, str]:
    """What is wrong, by check; the exit code agrees."""
    said = svcq("doctor", "--json")
    wrong = {one["check"]: f"{one['says']}: {one['remedy']}" for one in said.json if not one["ok"]}
    assert said.code == (1 if wrong else 0)
    return wrong


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_is_well(svcq: Svcq, client: Client) -> None:
    client.command("true", hold=True)
    said = svcq.ok("doctor")
    lines = said.out.splitlines()
    assert [line.split()[1].rstrip(":") for line in lines] == CHECKS
    assert all(line.startswith("ok ") and line.endswith(".") for line in lines)
    assert [one["check"] for one in svcq.ok("doctor", "--json").json] == CHECKS


def test_nothing_is_made(svcq: Svcq, home: Path) -> None:
    said = svcq.ok("doctor")
    assert "is not there yet: it is made at the first use" in said.out
    assert not home.exists()


def test_nothing_is_changed(svcq: Svcq, client: Client, home: Path) -> None:
    client.command("true")
    before = files(home)
    svcq("doctor")
    after = files(home)
    changed = {path.name for path in before if before[path] != after.get(path)}
    assert changed <= {"svcq.db-shm"}, "which is SQLite's own note of who reads"
    assert after.keys() == before.keys()


def test_a_home_that_others_may_write(svcq: Svcq, client: Client, home: Path) -> None:
    home.chmod(0o777)
    found = problems(svcq)
    assert f"chmod go-w {home}" in found["home"]
    home.chmod(0o700)
    (home / "svcq.db").chmod(0o666)
    assert "chmod go-w" in problems(svcq)["store"]


def test_a_configuration_that_cannot_be_read(svcq: Svcq, home: Path) -> None:
    home.mkdir(0o700)
    (home / "config.toml").write_text("nonsense = = 1")
    (home / "config.toml").chmod(0o600)
    assert "is not valid TOML" in problems(svcq)["config"]


def test_a_file_that_is_no_store(svcq: Svcq, home: Path) -> None:
    home.mkdir(0o700)
    (home / "svcq.db").write_bytes(b"not a database")
    (home / "svcq.db").chmod(0o600)
    assert "is not a svcq store" in problems(svcq)["store"]


def test_a_newer_store(svcq: Svcq, client: Client, home: Path) -> None:
    client.close()
    with closing(sqlite3.connect(home / "svcq.db")) as connection, connection:
        connection.execute("UPDATE meta SET value = 99 WHERE key IN ('version', 'oldest_program')")
    assert "upgrade svcq" in problems(svcq)["store"]


def test_a_damaged_store(svcq: Svcq, client: Client, home: Path) -> None:
    client.add([client.new_command(f"echo {'x' * 500}") for _ in range(300)])
    client.close()
    path = home / "svcq.db"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(os.urandom(4096 * 8))
    assert "restore it from a backup" in problems(svcq)["integrity"]


def test_a_store_that_is_too_large_to_look_at(client: Client, home: Path) -> None:
    client.add([client.new_command(f"echo {n}") for n in range(3000)])
    found = {one.check: one for one in doctor.examine(home, check_time=-1.0)}
    assert found["integrity"].ok
    assert "too large to look at all of it" in found["integrity"].says


def test_little_space(svcq: Svcq, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST_SPACE", 1 << 60)
    assert "free some space" in problems(svcq)["disk"]


def test_little_space_on_the_disk_of_the_logs(
    svcq: Svcq, client: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = home / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)

    def usage(place: Path) -> SimpleNamespace:
        return SimpleNamespace(free=0 if place == logs else 1 << 60)

    monkeypatch.setattr(doctor.shutil, "disk_usage", usage)
    assert str(logs) in problems(svcq)["disk"]


def test_an_old_sqlite(svcq: Svcq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "OLDEST_SQLITE", (99, 0, 0))
    assert "is older than 99.0.0" in problems(svcq)["sqlite"]


def test_nobody_to_do_the_work(svcq: Svcq, client: Client) -> None:
    client.command("true")
    says = "none is alive, and 1 job waits for one: svcq worker start"
    assert problems(svcq) == {"workers": says}


def test_a_living_worker(svcq: Svcq, client: Client, home: Path) -> None:
    client.command("true")
    member = Membership(client.store, Places(home), 2)
    assert problems(svcq) == {}
    client.store.claim(Claimer(member.id), 1)
    assert problems(svcq) == {}
    member.leave()


def test_a_dead_worker_and_what_it_held(svcq: Svcq, client: Client) -> None:
    client.command("true")
    here = socket.gethostname()
    worker = client.store.register(WorkerInfo(here, 1, processes.boot_id(), "no-such-birth"))
    client.store.claim(Claimer(worker), 1)
    found = problems(svcq)
    assert found["workers"].startswith(
        f"1 worker died without a word: {worker} (pid 1 on {here}); 0 alive"
    )
    assert found["running"].startswith("1 job (1) is held by dead workers: ")
    assert "svcq worker start" in found["running"]


def test_what_was_not_delivered(svcq: Svcq, client: Client, home: Path) -> None:
    places = Places(home)
    places.prepare()
    spool.save(places.spool, [Report(1, 1, 1, completed())])
    assert problems(svcq)["spool"].startswith(
        f"ends of jobs were not written to the store: 1 file in {places.spool}, the oldest "
    )


def test_a_queue_paused_for_long(svcq: Svcq, home: Path) -> None:
    days_ago = now_ms() - 3 * DAY
    with Client(config=load(home, {}), clock=lambda: days_ago) as client:
        client.command("true", queue="video")
        client.pause("video")
    assert problems(svcq)["queues"] == (
        "video is paused, and a job in it has waited for 3d: svcq resume video"
    )


def test_a_clock_that_went_back(svcq: Svcq, home: Path) -> None:
    with Client(config=load(home, {}), clock=lambda: now_ms() + 3 * DAY) as client:
        client.command("true", hold=True)
    assert "ahead of the clock: set the clock right" in problems(svcq)["clock"]


@pytest.mark.parametrize(("by", "way"), [(DAY, "forward by "), (-DAY, "back by ")])
def test_a_clock_that_was_set_while_a_worker_ran(svcq: Svcq, home: Path, by: int, way: str) -> None:
    born = processes.process_born(os.getpid())
    age = round((processes.process_age(os.getpid()) or 0) * 1000)
    info = WorkerInfo(socket.gethostname(), os.getpid(), processes.boot_id(), born)
    with Client(config=load(home, {}), clock=lambda: now_ms() - age - by) as client:
        worker = client.store.register(info)
    assert f"it was set {way}" in problems(svcq)["clock"]
    assert f"since worker {worker} was started" in problems(svcq)["clock"]


def test_a_clock_from_before_svcq_was_there(
    svcq: Svcq, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "now_ms", lambda: 0)
    assert "behind the day on which svcq was put here" in problems(svcq)["clock"]


def test_a_worker_of_another_version(svcq: Svcq, client: Client, home: Path) -> None:
    member = Membership(client.store, Places(home), 2, kept=True)
    assert problems(svcq) == {}
    with closing(sqlite3.connect(home / "svcq.db")) as connection, connection:
        connection.execute("UPDATE workers SET version = '0.0.9'")
    assert problems(svcq)["crew"].startswith(
        f"worker {member.id} is of another version (0.0.9, this is "
    )
    client.store.drain(member.id)
    assert problems(svcq) == {}
    member.leave()


def test_a_service_that_crashed(svcq: Svcq, home: Path) -> None:
    home.mkdir(0o700)
    with pytest.raises(RuntimeError), Starts(home, threading.Event(), print):
        raise RuntimeError("boom")
    assert problems(svcq)["starts"].startswith(
        "the service crashed once in the last 10m (RuntimeError: boom): svcq log --service"
    )


def test_logs_that_cannot_be_kept(svcq: Svcq, client: Client, home: Path) -> None:
    (home / "logs").mkdir(0o700)
    (home / "logs").chmod(0o777)
    assert "chmod go-w" in problems(svcq)["logs"]


@pytest.mark.parametrize(
    ("python", "path", "says"),
    [
        ("/no/such/python", "/", "/no/such/python cannot be run (No such file or directory)"),
        ("/bin/true", "/", "/bin/true does not work as a Python"),
        ("/", "/", "/ cannot be run (Permission denied)"),
        (sys.executable, "/no/such/place", "its directory /no/such/place is not there"),
        (sys.executable, "/", None),
    ],
)
def test_the_python_of_a_project(
    svcq: Svcq, home: Path, python: str, path: str, says: str | None
) -> None:
    home.mkdir(0o700)
    config = home / "config.toml"
    config.write_text(f'[project.shop]\npython = "{python}"\npath = ["{path}"]\n')
    config.chmod(0o600)
    found = problems(svcq)
    if says is None:
        assert found == {}
    else:
        assert found["project shop"].startswith(says)


def test_a_python_that_is_too_old(svcq: Svcq, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(0o700)
    config = home / "config.toml"
    config.write_text(f'[project.shop]\npython = "{sys.executable}"\n')
    config.chmod(0o600)
    monkeypatch.setattr(doctor, "OLDEST_PYTHON", (99, 0))
    assert "older than 99.0" in problems(svcq)["project shop"]


def test_a_fact_that_a_waiting_job_needs_and_nobody_knows(
    svcq: Svcq, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.store.register(WorkerInfo("elsewhere", 1))
    job = client.command("true", when="load<0")
    assert problems(svcq) == {}
    assert "jobs wait for load<0" in svcq.ok("doctor").out
    client.edit(job, when="idle>10m")
    monkeypatch.setenv("PATH", str(tmp_path))  # without busctl, nobody can ask logind
    assert problems(svcq)["conditions"].startswith(
        "jobs wait for idle>10m, and whether that holds here is unknown (logind does not say"
    )
