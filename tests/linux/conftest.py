from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.helpers import eventually
from tests.linux.manager import PATIENCE, Manager

# Only root may make the namespaces that a manager of its own needs.
collect_ignore_glob = [] if os.geteuid() == 0 else ["test_*"]


@pytest.fixture
def manager() -> Iterator[Manager]:
    manager = Manager()
    try:
        yield manager
    finally:
        manager.close()


@pytest.fixture
def installed(manager: Manager) -> Manager:
    """svcq is installed, runs, and has its worker."""
    manager.configure('[workers]\nslots = 2\n[jobs]\ngrace = "500ms"\n')
    manager.svcq("install", "--no-linger")
    eventually(lambda: manager.workers(state="running"), PATIENCE)
    return manager
