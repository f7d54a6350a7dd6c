from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from tests.web.served import Served

# Only root can become the other users that these need.
collect_ignore = [] if os.geteuid() == 0 else ["test_users.py"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all tests of a file, which leave no traces for each other."""
    served = Served(tmp_path_factory.mktemp("served"))
    yield served
    served.close()


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same without a worker: nothing that is queued is run."""
    served = Served(tmp_path_factory.mktemp("idle"), workers=0)
    yield served
    served.close()


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A place that other users may look into, unlike pytest's own."""
    made = Path(tempfile.mkdtemp(prefix="svcq-test-"))
    made.chmod(0o755)
    yield made
    rmtree(made)
