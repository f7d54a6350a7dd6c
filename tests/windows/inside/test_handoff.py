"""Schedules that the Task Scheduler of Windows fires, through schtasks itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.host import windows_start, windows_tasks
from svcq.host.timers import timers
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.windows.inside.homes import call


class Here:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.env = {
            "SVCQ_HOME": str(self.home), "LOCALAPPDATA": str(folder / "local"),
        }  # fmt: skip

    def svcq(self, *words: str) -> subprocess.CompletedProcess[str]:
        return call(words, **self.env)

    def well(self, *words: str) -> str:
        ran = self.svcq(*words)
        assert ran.returncode == 0, ran.stdout
        return ran.stdout


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    one = Here(tmp_path)
    yield one
    one.svcq("schedule", "takeback", "--all")


def the_task(here: Here) -> str:
    text = windows_tasks.read(timers(here.home)._name("nightly"))
    assert text is not None
    return text


def test_a_schedule_is_handed_over_and_taken_back(here: Here) -> None:
    here.well("schedule", "add", "nightly", "--cron", "30 3 * * *", "--tz", zone(), "--", "cmd")
    said = here.well("schedule", "handoff", "nightly", "--wake")
    assert "task-scheduler fires nightly from now on" in said
    text = the_task(here)
    assert windows_tasks.text_of(text, "Settings/WakeToRun") == "true"
    assert windows_tasks.text_of(text, "Settings/MultipleInstancesPolicy") == "IgnoreNew"
    assert "task-scheduler" in here.well("schedule", "list")
    here.well("schedule", "takeback", "nightly")
    assert windows_tasks.read(timers(here.home)._name("nightly")) is None
    assert timers(here.home).there() == []


def test_what_it_starts_fires_the_schedule(here: Here, tmp_path: Path) -> None:
    done = tmp_path / "done"
    here.well("schedule", "add", "nightly", "--every", "1m", "--", "cmd", "/c", f"echo x> {done}")
    here.well("schedule", "handoff", "nightly")
    words = windows_start.command(sys.executable, timers(here.home)._file("nightly"))

    def fired() -> bool:
        subprocess.run(
            words, env=os.environ, check=False, timeout=150,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return done.exists()

    eventually(fired, 140, interval=2)
    assert "completed" in here.well("list", "--all")
    here.well("worker", "stop", "--now")


def test_a_task_that_was_changed_or_removed_is_noticed(here: Here) -> None:
    here.well("schedule", "add", "nightly", "--every", "1h", "--", "cmd")
    here.well("schedule", "handoff", "nightly", "--wake")
    name = timers(here.home)._name("nightly")
    text = the_task(here)
    assert "WakeToRun" not in here.svcq("doctor").stdout
    windows_tasks.create(name, text.replace("<WakeToRun>true", "<WakeToRun>false"))
    assert "its task was changed (" in (said := here.svcq("doctor").stdout)
    assert "WakeToRun" in said
    windows_tasks.delete(name)
    assert "its task was removed" in here.svcq("doctor").stdout
    here.well("schedule", "handoff", "nightly", "--wake")
    assert "WakeToRun" not in here.svcq("doctor").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--cron", "0 3 * * *", "--tz", "Asia/Kathmandu"), "goes by the clock of this machine"),
        (("--every", "30s"), "from a minute to 31 days"),
        (("--cron", "1,5,7 * * * *", "--tz", "ZONE"), "72 triggers"),
    ],
)
def test_what_windows_cannot_say_is_refused(here: Here, words: tuple[str, ...], why: str) -> None:
    given = [zone() if word == "ZONE" else word for word in words]
    here.well("schedule", "add", "nightly", *given, "--", "cmd")
    ran = here.svcq("schedule", "handoff", "nightly")
    assert ran.returncode == 1
    assert why in ran.stdout
    assert windows_tasks.read(timers(here.home)._name("nightly")) is None


def zone() -> str:
    from tzlocal import get_localzone

    return str(get_localzone())


def test_a_name_may_hold_what_the_name_of_a_task_may_not(here: Here) -> None:
    here.well("schedule", "add", "night:day", "--every", "1h", "--", "cmd")
    here.well("schedule", "handoff", "night:day")
    assert timers(here.home).there() == ["night:day"]
    eventually(lambda: "task-scheduler" in here.well("schedule", "list"), PATIENCE)
