"""Desktops of their own, with svcq in the panel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tray.desktop import Desktop
from tests.tray.person import Person


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
