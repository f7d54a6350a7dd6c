"""What the tray remembers."""

from __future__ import annotations

from pathlib import Path

import pytest
from svcq_tray.state import State, last_commands, remember


def test_it_is_there_after_a_start(tmp_path: Path) -> None:
    state = State(tmp_path / "own" / "tray.json")
    assert state.cursor is None
    state.reach(42)
    state.failed(7)
    state.paused = ["video"]
    state.save()
    again = State(tmp_path / "own" / "tray.json")
    assert (again.cursor, again.unseen, again.paused) == (42, {7}, ["video"])
    assert again.at == state.at
    assert (tmp_path / "own" / "tray.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cursor": "x", "unseen": 5, "paused": [1]}', "\xff"]
)
def test_a_file_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tray.json"
    file.write_text(text, "latin-1")
    state = State(file)
    assert (state.cursor, state.unseen, state.paused) == (None, set(), [])


def test_failures_that_nobody_sees_do_not_grow_for_ever(tmp_path: Path) -> None:
    state = State(tmp_path / "tray.json")
    for number in range(5000):
        state.failed(number)
    assert len(state.unseen) == 1000


def test_the_last_commands_are_remembered_newest_first(tmp_path: Path) -> None:
    for n in range(30):
        remember(tmp_path, f"echo {n}")
    remember(tmp_path, "echo 20")
    kept = last_commands(tmp_path)
    assert kept[:3] == ["echo 20", "echo 29", "echo 28"]
    assert len(kept) == 20


def test_a_place_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    state = State(tmp_path / "file" / "tray.json")
    state.reach(1)
    state.save()
    remember(tmp_path / "file", "true")
    assert last_commands(tmp_path / "file") == []
