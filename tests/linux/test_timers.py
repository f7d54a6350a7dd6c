"""Schedules that a real systemd fires: handed over, woken, taken back, and what people do to it."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from svcq.host.linux_units import timer_name
from tests.clients import ROOT
from tests.helpers import eventually
from tests.linux.manager import PATIENCE, Manager

NEVER = ("--cron", "0 0 1 1 *")


def add(manager: Manager, name: str, *words: object, command: str = "true") -> str:
    """A schedule; the name of its units."""
    manager.svcq("schedule", "add", name, *words, "--max-attempts", 1, "--", "sh", "-c", command)
    return timer_name(str(manager.svcq_home), name)


def handed(manager: Manager, name: str, *words: object, command: str = "true") -> str:
    unit = add(manager, name, *words, command=command)
    manager.svcq("schedule", "handoff", name)
    return unit


def listed(manager: Manager, name: str) -> dict[str, object]:
    found = json.loads(manager.svcq("schedule", "list", "--json"))
    return next(one for one in found if one["name"] == name)


def unit_files(manager: Manager) -> list[Path]:
    folders = [manager.home / ".config/systemd/user", manager.home / ".local/share/systemd"]
    return [file for folder in folders for file in folder.rglob("*svcq-schedule-*")]


def doctor(manager: Manager) -> dict[str, object]:
    ran = manager.run(sys.executable, "-m", "svcq", "doctor", "--json", check=False)
    assert "Traceback" not in ran.stderr
    found: dict[str, object] = next(
        one for one in json.loads(ran.stdout) if one["check"] == "timers"
    )
    return found


def property_of(manager: Manager, unit: str, name: str) -> str:
    return manager.systemctl("show", unit, "--property", name, "--value")


def test_systemd_fires_it_though_nothing_of_svcq_runs(manager: Manager, tmp_path: Path) -> None:
    command = f"echo ran >> {tmp_path}/ran; cat /proc/self/cgroup; pwd; echo $PATH"
    handed(manager, "often", "--every", "2s", command=command)
    eventually((tmp_path / "ran").exists, PATIENCE)
    eventually(lambda: (tmp_path / "ran").read_text().count("ran") > 2, PATIENCE)
    manager.svcq("schedule", "takeback", "often")
    with manager.client as client:
        fired = [one for one in client.firings("often") if one.job is not None]
        job = client.wait(fired[-1].job or 0, PATIENCE)
    assert {one.how for one in fired} <= {"fired", "caught_up"}
    assert (job.state, job.attempts) == ("completed", 1)
    *cgroups, where, path = manager.svcq("log", job.id).split()
    assert any("/svcq-worker-" in cgroup for cgroup in cgroups)
    assert (where, path) == (str(ROOT), os.environ["PATH"])


def test_one_time_fires_once_and_its_unit_ends_as_the_job_did(
    manager: Manager, tmp_path: Path
) -> None:
    unit = handed(manager, "once", "--at", "in 4s", command=f"echo ran >> {tmp_path}/ran; exit 7")
    eventually((tmp_path / "ran").exists, PATIENCE)
    status = (f"{unit}.service", "ExecMainStatus")
    eventually(lambda: property_of(manager, *status) == "7", PATIENCE)
    assert property_of(manager, f"{unit}.service", "Result") == "exit-code"
    assert (tmp_path / "ran").read_text() == "ran\n"
    with manager.client as client:
        assert [one.how for one in client.firings("once")] == ["fired"]
        assert client.get_schedule("once").over
    manager.svcq("schedule", "takeback", "once")
    assert unit_files(manager) == []


def test_a_time_that_passes_while_it_is_handed_over_is_fired(
    manager: Manager, tmp_path: Path
) -> None:
    add(manager, "once", "--at", "in 2s", command=f"echo ran >> {tmp_path}/ran")
    with manager.client as client:
        at = (client.get_schedule("once").at_ms or 0) / 1000
    eventually(lambda: time.time() > at)
    manager.svcq("schedule", "handoff", "once")
    eventually((tmp_path / "ran").exists, PATIENCE)


def test_jobs_that_may_overlap_wait_for_each_other(manager: Manager, tmp_path: Path) -> None:
    command = f"echo begun >> {tmp_path}/log; sleep 3; echo over >> {tmp_path}/log"
    handed(manager, "slow", "--every", "2s", "--overlap", "queue", command=command)
    eventually(lambda: len(listed_firings(manager, "slow")) >= 3, PATIENCE)
    manager.svcq("schedule", "takeback", "slow")
    manager.svcq("schedule", "pause", "slow")
    with manager.client as client:
        jobs = [one.job for one in client.firings("slow") if one.job is not None]
        assert [client.wait(job, PATIENCE).state for job in jobs] == ["completed"] * len(jobs)
    assert (tmp_path / "log").read_text() == "begun\nover\n" * len(jobs)


def listed_firings(manager: Manager, name: str) -> list[object]:
    with manager.client as client:
        return list(client.firings(name))


def test_what_passed_while_the_machine_was_off_is_made_up_for(
    manager: Manager, tmp_path: Path
) -> None:
    unit = handed(manager, "nightly", *NEVER, command=f"echo ran >> {tmp_path}/ran")
    manager.cut_power()
    then = time.time() - 3 * 366 * 86_400
    stamp = manager.home / f".local/share/systemd/timers/stamp-{unit}.timer"
    os.utime(stamp, (then, then))
    with closing(sqlite3.connect(manager.svcq_home / "svcq.db")) as store:
        # The first of January of this year and of the two before it.
        first = time.mktime((time.localtime().tm_year - 2, 1, 1, 0, 0, 0, 0, 0, -1)) * 1000
        store.execute("UPDATE schedules SET next_at = ?", (round(first),))
        store.commit()
    manager.boot()
    eventually((tmp_path / "ran").exists, PATIENCE)
    with manager.client as client:
        (fired,) = client.firings("nightly")
        client.wait(fired.job or 0, PATIENCE)
    assert (fired.how, fired.missed, fired.ran) == ("caught_up", 3, 1)
    assert "while systemd did not come by" in fired.says


def test_taken_back_nothing_is_left(manager: Manager) -> None:
    add(manager, "other", "--every", "1h")
    handed(manager, "nightly", *NEVER)
    assert listed(manager, "nightly")["fired_by"] == "systemd"
    assert listed(manager, "other")["fired_by"] == "svcq"
    assert "svcq-schedule-nightly" in manager.systemctl("list-timers", "--all")
    assert "No schedule was handed over" not in manager.svcq("schedule", "takeback", "--all")
    assert listed(manager, "nightly")["fired_by"] == "svcq"
    assert unit_files(manager) == []
    assert "svcq-schedule" not in manager.systemctl("list-timers", "--all")
    assert manager.svcq("schedule", "takeback", "--all") == "No schedule was handed over.\n"


def edited(manager: Manager, unit: str) -> None:
    file = manager.home / f".config/systemd/user/{unit}.timer"
    file.write_text(file.read_text().replace("00:00:00", "01:00:00"))


def removed(manager: Manager, unit: str) -> None:
    (manager.home / f".config/systemd/user/{unit}.service").unlink()


def disabled(manager: Manager, unit: str) -> None:
    manager.systemctl("disable", f"{unit}.timer")


def stopped(manager: Manager, unit: str) -> None:
    manager.systemctl("stop", f"{unit}.timer")


@pytest.mark.parametrize(
    ("done", "says"),
    [
        (edited, "was changed by hand"),
        (removed, "was removed"),
        (disabled, "its timer is disabled"),
        (stopped, "its timer is inactive"),
    ],
)
def test_what_someone_did_to_a_timer_is_told_and_mended(
    manager: Manager, done: object, says: str
) -> None:
    unit = handed(manager, "nightly", *NEVER)
    assert listed(manager, "nightly")["trouble"] is None
    assert doctor(manager)["ok"]
    assert callable(done)
    done(manager, unit)
    trouble = f"{says}: svcq schedule handoff nightly"
    assert trouble in str(listed(manager, "nightly")["trouble"])
    assert "systemd (!)" in manager.svcq("schedule", "list")
    found = doctor(manager)
    assert (found["ok"], found["remedy"]) == (False, "svcq schedule handoff nightly")
    assert says in str(found["says"])
    manager.svcq("schedule", "handoff", "nightly")
    assert listed(manager, "nightly")["trouble"] is None
    assert doctor(manager)["ok"]


def test_a_timer_of_a_schedule_that_is_gone_is_told_and_removed(manager: Manager) -> None:
    unit = handed(manager, "nightly", *NEVER)
    with manager.client as client:
        client.remove_schedule("nightly")  # as a program might, which knows nothing of timers
    assert manager.systemctl("start", f"{unit}.service", check=False) == ""
    assert property_of(manager, f"{unit}.service", "ExecMainStatus") == "3"
    found = doctor(manager)
    assert "still wakes nightly" in str(found["says"])
    assert found["remedy"] == "svcq schedule takeback --all"
    manager.svcq("schedule", "takeback", "--all")
    assert unit_files(manager) == []
    assert doctor(manager)["ok"]


def test_a_timer_that_comes_by_too_often_fires_nothing(manager: Manager) -> None:
    unit = handed(manager, "nightly", *NEVER)
    manager.systemctl("start", f"{unit}.service")
    assert property_of(manager, f"{unit}.service", "Result") == "success"
    assert listed_firings(manager, "nightly") == []


def test_its_timer_follows_the_schedule(manager: Manager) -> None:
    unit = handed(manager, "nightly", "--cron", "0 3 13 * 5", "--tz", "Europe/Paris")
    file = manager.home / f".config/systemd/user/{unit}.timer"
    assert (
        "OnCalendar=*-*-13 03:00:00 Europe/Paris\nOnCalendar=Fri *-*-* 03:00:00" in file.read_text()
    )
    said = manager.svcq("schedule", "edit", "nightly", "--cron", "30 2 * * *", "--jitter", "5m")
    assert "systemd fires it at its new times" in said
    text = file.read_text()
    assert "OnCalendar=*-*-* 02:30:00 Europe/Paris\nOnCalendar=Sun *-03-25..31 01:00:00 UTC" in text
    assert "RandomizedDelaySec=300000ms" in text
    assert listed(manager, "nightly")["trouble"] is None
    said = manager.svcq("schedule", "edit", "nightly", "--every", "7m")
    assert "svcq fires it again, since it cannot be handed over any more" in said
    assert listed(manager, "nightly")["fired_by"] == "svcq"
    assert unit_files(manager) == []


def test_removed_with_its_timer(manager: Manager) -> None:
    handed(manager, "nightly", *NEVER)
    manager.svcq("schedule", "remove", "nightly")
    assert unit_files(manager) == []


def test_uninstalled_all_are_taken_back(installed: Manager) -> None:
    handed(installed, "nightly", *NEVER)
    handed(installed, "weekly", "--cron", "@weekly")
    said = installed.svcq("uninstall")
    assert "systemd fires nightly no more." in said
    assert unit_files(installed) == []
    with installed.client as client:
        assert {one.fired_by for one in client.schedules()} == {"svcq"}


def test_uninstalled_no_timer_stays_though_the_store_is_broken(installed: Manager) -> None:
    handed(installed, "nightly", *NEVER)
    installed.svcq("stop")
    eventually(lambda: installed.workers() == [], PATIENCE)
    for log in ("svcq.db-wal", "svcq.db-shm"):
        (installed.svcq_home / log).unlink(missing_ok=True)
    (installed.svcq_home / "svcq.db").write_text("poetry")
    installed.svcq("uninstall")
    assert unit_files(installed) == []


def test_what_systemd_cannot_say_is_refused_and_changes_nothing(manager: Manager) -> None:
    add(manager, "odd", "--every", "7m")
    said = manager.refused(1, "schedule", "handoff", "odd")
    assert "cannot say this interval" in said
    assert listed(manager, "odd")["fired_by"] == "svcq"
    assert unit_files(manager) == []


def test_the_machine_is_woken_where_it_can_be(manager: Manager) -> None:
    unit = add(manager, "nightly", *NEVER)
    if any(Path("/sys/class/rtc").glob("rtc*")):
        manager.svcq("schedule", "handoff", "nightly", "--wake")
        assert property_of(manager, f"{unit}.timer", "WakeSystem") == "yes"
        manager.svcq("schedule", "edit", "nightly", "--cron", "0 0 2 1 *")
        assert property_of(manager, f"{unit}.timer", "WakeSystem") == "yes"
        return
    said = manager.refused(1, "schedule", "handoff", "nightly", "--wake")
    assert "hand it over without --wake" in said
    assert listed(manager, "nightly")["fired_by"] == "svcq"
    assert unit_files(manager) == []


def test_without_a_manager_there_is_a_sentence(manager: Manager) -> None:
    handed(manager, "nightly", *NEVER)
    (manager.folder / "run" / "bus").rename(manager.folder / "run" / "no-bus")
    (manager.folder / "run" / "systemd").rename(manager.folder / "run" / "no-systemd")
    assert "cannot be reached" in manager.refused(4, "schedule", "handoff", "nightly")
    assert "cannot be reached" in manager.refused(4, "schedule", "takeback", "nightly")
    assert "whether it fires is unknown" in str(listed(manager, "nightly")["trouble"])


def test_a_unit_of_someone_else_is_neither_replaced_nor_removed(manager: Manager) -> None:
    unit = add(manager, "nightly", *NEVER)
    file = manager.home / f".config/systemd/user/{unit}.timer"
    file.parent.mkdir(parents=True)
    file.write_text("[Timer]\nOnCalendar=yearly\n")
    assert "was not made by svcq" in manager.refused(1, "schedule", "handoff", "nightly")
    manager.svcq("schedule", "takeback", "nightly")
    assert file.read_text() == "[Timer]\nOnCalendar=yearly\n"


def test_names_and_homes_are_nobodys_way_into_a_unit(manager: Manager, tmp_path: Path) -> None:
    home = manager.home / "a $PATH %h \\x \"quoted\" 'home'"
    name = "ünïcödé:@x." + "y" * 85

    def svcq(*words: object) -> str:
        ran = manager.run("env", f"SVCQ_HOME={home}", sys.executable, "-m", "svcq", *words)
        return ran.stdout

    svcq("schedule", "add", name, "--every", "2s", "--", "touch", tmp_path / "ran")
    svcq("schedule", "handoff", name)
    eventually((tmp_path / "ran").exists, PATIENCE)
    (found,) = json.loads(svcq("schedule", "list", "--json"))
    assert (found["fired_by"], found["trouble"]) == ("systemd", None)
    units = list((manager.home / ".config/systemd/user").glob("svcq-schedule-*"))
    assert len(units) == 2
    for file in units:
        ran = manager.run("systemd-analyze", "--user", "verify", file, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    # A schedule of that name in another home is another one.
    add(manager, name, *NEVER)
    manager.svcq("schedule", "takeback", name)
    assert all(file.exists() for file in units)
    svcq("schedule", "takeback", "--all")
    assert unit_files(manager) == []
