"""The workers that the service keeps on this machine, whichever service started them.

A worker started for the service says so in its lock file; those that people start are left alone.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from svcq.config import Config
from svcq.errors import NotFound
from svcq.host.service import Manager
from svcq.store import Store, Worker
from svcq.worker.places import KEPT, Places
from svcq.worker.program import (
    slots_of,
    start_detached,
    worker_command,
    worker_environment,
    worker_log,
)

_KEPT = ("--kept",)  # tells a worker that it is the service's
_LOOK = 0.1
# Ours alone; a worker that talked to the manager in our name would confuse it.
_OF_OUR_UNIT = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INVOCATION_ID")


def crew(store: Store, places: Places) -> list[Worker]:
    here = socket.gethostname()
    return [one for one in store.workers() if one.host == here and is_kept(places, one)]


def is_kept(places: Places, worker: Worker) -> bool:
    try:
        lock = places.worker_lock(worker.pid, worker.born or "")
        return lock.read_text() == KEPT
    except OSError:
        return False


def drain(store: Store, places: Places, *, now: bool = False) -> list[Worker]:
    """Let all of them end, when they are done or now; those that still run something.

    Once asked, a worker claims nothing more: what runs when this returns is all there is.
    """
    for one in crew(store, places):
        with suppress(NotFound):  # it has ended meanwhile
            store.drain(one.id, now=now)
    return [one for one in crew(store, places) if one.running]


def interrupt(store: Store, places: Places, patience: float) -> bool:
    """Let all jobs go back, and wait for it; whether all workers have ended by then."""
    drain(store, places, now=True)
    deadline = time.monotonic() + patience
    while crew(store, places):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK)
    return True


class ServiceCrew:
    """What the supervisor asks of the service: each worker has a unit of its own, where the manager
    grants one, and so outlives the service."""

    def __init__(self, config: Config, manager: Manager, say: Callable[[str], None]) -> None:
        self._places = Places(config.home)
        self._manager = manager
        self._say = say
        self._numbers = itertools.count(1)
        self.hindrance = ""

    def has(self, worker: Worker) -> bool:
        return is_kept(self._places, worker)

    def size(self, config: Config) -> tuple[int, int]:
        return config.workers.count, slots_of(config)

    def start(self, config: Config) -> int | None:
        env = {k: v for k, v in worker_environment(config).items() if k not in _OF_OUR_UNIT}
        pid = self._manager.start_worker(
            worker_command(_KEPT), env, worker_log(config), next(self._numbers)
        )
        if pid is None:
            return self._start_without_unit(config)
        self.hindrance = ""
        return pid

    def _start_without_unit(self, config: Config) -> int | None:
        """As a child of ours, unless what holds for us would let its jobs fail: then they wait."""
        sandboxed = self._manager.is_sandboxed()
        if not self.hindrance:
            instead = "jobs wait" if sandboxed else "they run inside the unit of the service"
            self._say(f"Workers get no unit of their own, so {instead}: see svcq doctor.")
        self.hindrance = "workers get no unit of their own (svcq doctor)"
        return None if sandboxed else start_detached(config, _KEPT)
