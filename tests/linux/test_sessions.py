"""svcq as a service of someone who logs in and out of a real machine, and of one who lingers."""

from __future__ import annotations

import pytest

from tests.helpers import eventually
from tests.linux.namespaces import PATIENCE
from tests.linux.system import Person


def test_without_lingering_a_log_out_interrupts_and_the_next_log_in_goes_on(alice: Person) -> None:
    alice.install("--no-linger")
    waiting = alice.begin()
    alice.log_out()
    eventually(alice.is_gone, PATIENCE)
    stood = alice.job(waiting.job)
    assert (stood["state"], stood["failures"]) == ("pending", 0)
    alice.log_in()
    (run,) = [one for one in waiting.went_on()["runs"] if one["run"] == 1]
    assert run["how"] == "interrupted"


def test_who_lingers_may_log_out_and_jobs_go_on(alice: Person) -> None:
    alice.install()
    waiting = alice.begin()
    alice.log_out()
    eventually(lambda: "alice" not in alice.machine.run("loginctl", "list-sessions").stdout)
    waiting.finish()
    assert alice.is_active()


@pytest.mark.parametrize("how", ["reboot", "power cut"])
def test_who_lingers_needs_not_log_in_after_a_start_of_the_machine(alice: Person, how: str) -> None:
    alice.install()
    waiting = alice.begin()
    if how == "reboot":
        alice.machine.reboot()
    else:
        alice.machine.cut_power()
        alice.machine.boot()
    (run,) = [one for one in waiting.went_on()["runs"] if one["run"] == 1]
    assert run["how"] == "interrupted"


def test_doctor_knows_whether_lingering_was_meant(alice: Person) -> None:
    alice.install()
    assert alice.problems() == {}
    alice.linger(on=False)
    assert "lingering is off for alice" in alice.problems()["unit"]
    assert "enable-linger" in alice.problems()["unit"]
    alice.say("install", "--no-linger")
    assert alice.problems() == {}


def test_a_person_of_whom_systemd_runs_nothing_is_told_so(alice: Person) -> None:
    alice.log_out()
    eventually(alice.is_gone, PATIENCE)
    assert "Your systemd cannot be reached" in alice.refused(4, "install")
    assert not alice.is_installed()
    doctor = alice.say("doctor")
    assert "ok       manager: Your systemd cannot be reached" in doctor


def test_without_a_unit_of_its_own_a_worker_is_a_child_that_survives_too(alice: Person) -> None:
    """Here the service cannot reach the systemd that started it."""
    folder = alice.units / "svcq.service.d"
    lost = "Environment=XDG_RUNTIME_DIR=/nowhere DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere"
    alice.machine.shell(
        f"mkdir -p {folder}; echo '[Service]\n{lost}' > {folder}/lost.conf", "alice"
    )
    alice.install()
    waiting = alice.begin()
    (worker,) = alice.workers()
    group = alice.machine.path(f"/proc/{worker['pid']}/cgroup").read_text()
    assert group.endswith("/svcq.service\n")
    assert "they run inside the unit of the service" in alice.say("log", "--service")
    assert "is inside the unit of the service" in alice.problems()["crew"]
    pid = alice.pid()
    alice.machine.run("kill", "-9", pid)
    alice.comes_back(pid)
    assert [one["id"] for one in alice.workers()] == [worker["id"]]
    alice.say("restart")
    waiting.finish()
    waiting = alice.begin()
    alice.say("uninstall")
    assert alice.job(waiting.job)["state"] == "pending"
    assert alice.workers() == []


@pytest.mark.early
def test_workers_whose_service_is_gone_for_good_end(alice: Person) -> None:
    folder = alice.units / "svcq.service.d"
    line = "mkdir -p {0}; echo '[Service]\nRestart=no' > {0}/once.conf"
    alice.machine.shell(line.format(folder), "alice")
    alice.install()
    waiting = alice.begin()
    alice.machine.run("kill", "-9", alice.pid())
    eventually(lambda: not alice.is_active(), PATIENCE)
    assert alice.run("--", "echo", "still here") == "still here\n"
    said = "The service has been gone for 30 s: no new jobs."
    eventually(lambda: said in alice.say("log", "--workers"), PATIENCE)
    left = alice.add("true")
    waiting.finish()
    eventually(lambda: alice.workers() == [], PATIENCE)
    assert alice.job(left)["state"] == "pending"
