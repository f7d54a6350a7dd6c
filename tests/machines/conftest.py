from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.network import Lab, Network, network
from tests.postgres import Server

# Only root may make namespaces of the network.
collect_ignore_glob = [] if os.geteuid() == 0 else ["test_*"]


@pytest.fixture(scope="session")
def cables() -> Iterator[tuple[Network, Server]]:
    """A network with a server, for all tests of a process."""
    with network() as made:
        yield made


@pytest.fixture
def lab(cables: tuple[Network, Server], tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, *cables)
    try:
        yield lab
    finally:
        lab.close()
