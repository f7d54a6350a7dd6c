from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.helpers import eventually
from tests.linux.machine import Machine
from tests.linux.manager import Manager
from tests.linux.namespaces import PATIENCE
from tests.linux.program import PLACE, put_program
from tests.linux.system import Person, System

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


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    """A machine with svcq on it, and a user named alice; one for all tests of a process."""
    machine = Machine()
    try:
        put_program(machine.disk(PLACE))
        machine.boot()
        machine.run("useradd", "--create-home", "--shell", "/bin/bash", "alice")
        yield machine
    finally:
        machine.close()


@pytest.fixture
def bare(machine: Machine) -> System:
    """The machine without a service."""
    system = System(machine)
    system.purge()
    return system


@pytest.fixture
def system(machine: Machine) -> System:
    """The machine with svcq as its service, at work."""
    system = System(machine)
    system.install()
    return system


@pytest.fixture
def alice(machine: Machine) -> Iterator[Person]:
    """Someone who has logged in, with nothing installed."""
    alice = Person(machine, "alice")
    alice.log_in()
    yield alice
    alice.linger(on=False)
    if not alice.is_there():
        alice.log_in()
    alice.purge()
    alice.log_out()
    eventually(alice.is_gone, PATIENCE)
    machine.run("rm", "-rf", alice.home, alice.units)
