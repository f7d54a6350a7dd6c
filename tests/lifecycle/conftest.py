"""Homes of real workers, ended with everything they started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lifecycle.homes import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home without a worker yet."""
    home = Home(tmp_path)
    yield home
    home.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with one worker for all tests of a file, which leave no traces for each other."""
    home = Home(tmp_path_factory.mktemp("shared"))
    home.worker_with_tasks("--slots", 4)
    yield home
    home.close()
