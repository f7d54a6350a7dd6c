"""Services that crash again and again: it is told, and slowed down; what ended well is no crash."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from svcq.errors import Refused
from svcq.host import processes
from svcq.service import starts
from svcq.service.starts import Start, Starts, recent_crashes
from svcq.times import now_ms


class Leaving(threading.Event):
    """Notes for how long someone would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0)
        return False


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


def crash(home: Path, error: Exception | None = None) -> list[float]:
    """A service that fails; how long it waited before it began."""
    leaving, said = Leaving(), list[str]()
    error = error or RuntimeError("boom")
    with pytest.raises(type(error)), Starts(home, leaving, said.append):
        raise error
    assert bool(said) == bool(leaving.waits)
    return leaving.waits


def test_the_first_ones_come_back_at_once_and_the_next_ever_more_slowly(home: Path) -> None:
    assert [crash(home) for _ in range(7)] == [[], [], [], [1], [2], [4], [8]]
    assert recent_crashes(home) == (7, "RuntimeError: boom")
    for _ in range(15):
        last = crash(home)
    assert last == [60]
    assert len(starts.read(home)) == 20


def test_what_it_said_is_remembered(home: Path) -> None:
    crash(home, Refused("The store is on the moon: fetch it."))
    assert recent_crashes(home) == (1, "The store is on the moon: fetch it.")


def test_a_good_end_makes_all_well(home: Path) -> None:
    for _ in range(4):
        crash(home)
    with Starts(home, Leaving(), print):
        assert recent_crashes(home, running=os.getpid()).times == 0  # all of them were ours
    assert recent_crashes(home) == (0, "")


def test_whoever_runs_now_has_not_crashed(home: Path) -> None:
    starts._write(home, [Start(now_ms(), processes.boot_id(), pid, "1") for pid in (7, 8)])
    assert recent_crashes(home) == (2, "without a word")
    assert recent_crashes(home, running=8) == (1, "without a word")


def test_the_end_of_the_machine_is_no_crash_and_time_heals(home: Path) -> None:
    starts._write(home, [Start(now_ms(), "another boot", 7, "1")])
    assert recent_crashes(home).times == 0
    long_ago = now_ms() - 2 * starts.WITHIN
    starts._write(home, [Start(long_ago, processes.boot_id(), 7, "1")])
    assert recent_crashes(home).times == 0


def test_it_can_be_forgotten(home: Path) -> None:
    for _ in range(5):
        crash(home)
    starts.forget(home)
    assert crash(home) == []
    starts.forget(home / "that is not there")


@pytest.mark.parametrize("text", ["", "[", "{}", '[{"at": 1}]', "[1]", "null"])
def test_a_file_that_says_nothing_is_no_hindrance(home: Path, text: str) -> None:
    (home / "service.starts").write_text(text)
    assert recent_crashes(home).times == 0
    assert crash(home) == []
