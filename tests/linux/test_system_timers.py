"""Schedules of the machine's service that the machine's systemd fires, as the account they have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.host.linux_units import timer_name
from tests.helpers import eventually
from tests.linux.namespaces import PATIENCE
from tests.linux.system import HOME, System

NEVER = ("--cron", "0 0 1 1 *")


@pytest.fixture
def ours(system: System) -> Iterator[System]:
    """The machine's service; afterwards nothing is scheduled."""
    yield system
    system.install()
    system.say("schedule", "takeback", "--all")
    for schedule in system.json("schedule", "list"):
        system.say("schedule", "remove", schedule["name"])


def timers(system: System) -> list[Path]:
    return list(system.machine.path(system.units).glob("svcq-schedule-*"))


def firings(system: System, name: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = system.json("schedule", "history", name)
    return found


def test_its_jobs_are_the_accounts_though_no_service_runs(ours: System) -> None:
    ours.say("stop")
    eventually(lambda: ours.workers() == [], PATIENCE)
    command = ("--max-attempts", 1, "--", "sh", "-c", "id -un; exit 7")
    ours.say("schedule", "add", "often", "--at", "in 5s", *command)
    said = ours.say("schedule", "handoff", "often")
    assert "systemd fires often from now on: /etc/systemd/system/" in said
    eventually(lambda: firings(ours, "often"), PATIENCE)
    job = firings(ours, "often")[-1]["job"]
    assert isinstance(job, int)
    ended = ours.ended(job)
    assert (ended["state"], ended["exit_code"]) == ("dead", 7)
    assert ours.output(job) == "svcq\n"
    unit = timer_name(str(HOME), "often")
    code = ("show", f"{unit}.service", "--property", "ExecMainStatus", "--value")
    eventually(lambda: ours.systemctl(*code) == "7", PATIENCE)
    assert ours.json("schedule", "show", "often")["trouble"] is None
    assert "timers" not in ours.problems()
    ours.say("schedule", "takeback", "often")
    assert timers(ours) == []


def test_nobody_else_hands_anything_over(ours: System) -> None:
    ours.say("schedule", "add", "nightly", *NEVER, "--", "true")
    for verb in ("handoff", "takeback", "remove"):
        said = ours.refused(5, "--system", "schedule", verb, "nightly", user="alice")
        assert "svcq user add alice" in said or "use sudo" in said
    said = ours.refused(5, "--system", "schedule", "handoff", "nightly", user="svcq")
    assert "Only an administrator may hand over a schedule of the whole machine" in said
    assert timers(ours) == []


def test_what_was_handed_over_is_mended_removed_and_taken_back(ours: System) -> None:
    ours.say("schedule", "add", "nightly", *NEVER, "--", "true")
    ours.say("schedule", "handoff", "nightly")
    for file in timers(ours):
        assert file.stat().st_mode & 0o777 == 0o644
        ran = ours.machine.run("systemd-analyze", "verify", ours.units / file.name, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    unit = timer_name(str(HOME), "nightly")
    ours.systemctl("stop", f"{unit}.timer")
    remedy = "svcq --system schedule handoff nightly"
    assert remedy in ours.json("schedule", "show", "nightly")["trouble"]
    assert remedy in ours.problems()["timers"]
    ours.say("schedule", "handoff", "nightly")
    assert ours.json("schedule", "show", "nightly")["trouble"] is None
    ours.say("schedule", "edit", "nightly", "--cron", "0 0 2 1 *")
    assert "*-01-02 00:00:00" in next(
        file.read_text() for file in timers(ours) if file.suffix == ".timer"
    )
    assert "systemd fires nightly no more." in ours.say("uninstall")
    assert timers(ours) == []
    ours.install()
    assert ours.json("schedule", "show", "nightly")["fired_by"] == "svcq"
