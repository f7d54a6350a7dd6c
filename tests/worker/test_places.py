"""Where a worker keeps things."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svcq.errors import NotPermitted
from svcq.worker.places import Places, marker_of, runners_marker


def test_all_places_are_the_owners_alone(tmp_path: Path) -> None:
    places = Places(tmp_path / "home")
    places.prepare()
    places.prepare()
    folders = [places.home, *places.home.iterdir()]
    assert {folder.name for folder in folders[1:]} == {"workers", "spool", "runs", "logs"}
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_a_place_that_others_may_write_is_refused(tmp_path: Path) -> None:
    places = Places(tmp_path / "home")
    places.prepare()
    places.spool.chmod(0o777)
    with pytest.raises(NotPermitted, match="may be written by others"):
        places.prepare()


def test_a_seat_is_cleared_of_all_that_a_run_said(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    seats = Places(tmp_path).seats(12, "3-1")
    seat = seats.take()
    Path(seat.lock).touch()
    Path(seat.progress).write_text("40")
    Path(f"{seat.progress}.new").write_text("50")
    Path(seat.result).mkdir()
    seats.give_back(seat, silent=False)
    assert os.listdir(tmp_path / "runs") == ["12-3-1.1"]
    assert seats.take() == seat
    assert seats.take() != seat
    assert seats.used() == [seat]
    Places(tmp_path).seats(1, "2-3-1").remove()
    assert seats.used() == [seat]
    seats.remove()
    assert os.listdir(tmp_path / "runs") == []


def test_no_marker_begins_with_another() -> None:
    store = "0f" * 8
    numbers = (1, 2, 11, 12, 112)
    markers = [marker_of(store, job, run) for job in numbers for run in numbers]
    markers += [runners_marker(store, worker) for worker in numbers]
    assert not [(a, b) for a in markers for b in markers if a != b and a.startswith(b)]
