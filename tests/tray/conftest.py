"""Desktops of their own, with svcq in the panel."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tray.desktop import Desktop
from tests.tray.person import Person


def debian_python() -> tuple[int, ...]:
    """Which version the system's own Python is."""
    name = Path("/usr/bin/python3").resolve().name.removeprefix("python")
    return tuple(int(part) for part in name.split(".") if part.isdigit())


# Only root can become the other users that these need.
collect_ignore = [] if os.geteuid() == 0 else ["test_others.py"]
if sys.version_info[:2] != debian_python():
    # GTK for Python comes from Debian, for Debian's Python.
    collect_ignore.append("test_gtk.py")


@pytest.fixture
def desktop() -> Iterator[Desktop]:
    """With xfce's panel, and dunst."""
    desktop = Desktop("xfce")
    desktop.start_monitor()
    yield desktop
    desktop.close()


@pytest.fixture
def bare() -> Iterator[Desktop]:
    """Nobody shows icons, nobody shows notifications."""
    desktop = Desktop("none", dunst=False)
    yield desktop
    desktop.close()


@pytest.fixture
def person(desktop: Desktop, tmp_path: Path) -> Iterator[Person]:
    """The tray and the service run."""
    person = Person(desktop, tmp_path)
    person.home.start("up")
    person.start()
    person.sees("svcq: nothing to do")
    person.follows()
    yield person
    person.close()


@pytest.fixture
def alone(bare: Desktop, tmp_path: Path) -> Iterator[Person]:
    """Where nothing runs yet."""
    person = Person(bare, tmp_path)
    yield person
    person.close()
