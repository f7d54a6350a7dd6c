"""The older kind of tray, through pystray's GTK icon: a real trayer, clicked with both buttons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.jobs import State
from tests.helpers import eventually
from tests.tray.desktop import PATIENCE, Desktop
from tests.tray.person import RED, RING, TEAL, Person

LINES, LINES_OF_A_JOB = 11, 4
GI = Path("/usr/lib/python3/dist-packages/gi")


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """Debian's GTK for Python, alone of all that Debian has for it, beside svcq's own packages."""
    (tmp_path / "gtk").mkdir()
    (tmp_path / "gtk" / "gi").symlink_to(GI)
    desktop = Desktop("trayer")
    desktop.start_monitor()
    person = Person(desktop, tmp_path)
    try:
        person.home.start("up")
        person.start(PYTHONPATH=str(tmp_path / "gtk"))
        person.icon(TEAL)
        person.follows()
        yield person
    finally:
        person.close()
        desktop.close()


def test_it_shows_and_steers(person: Person) -> None:
    job = person.home.add("sleep 600", name="render")
    person.icon(RING)
    person.open_menu(TEAL, button=3)
    # Nobody but the menu itself tells its lines: the job's is the second, Stop the third below it.
    person.choose_line(1, of=LINES)
    person.choose_line(2, of=LINES_OF_A_JOB)
    assert person.home.ended(job).state is State.CANCELLED


def test_failures_are_told_and_shown(person: Person) -> None:
    person.home.run("exit 3", name="render")
    person.icon(RED)
    eventually(
        lambda: "Failed: render" in [note.title for note in person.desktop.notes()], PATIENCE
    )
