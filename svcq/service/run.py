"""The service itself: one for each home and machine, until the manager asks it to end.

It starts work and looks after it, and does none itself: when it is gone, the workers finish what
they hold, and the next one adopts them.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from svcq.config import Config, load
from svcq.errors import Refused, StoreVersion, SvcqError
from svcq.host import processes, service
from svcq.service.janitor import Janitor
from svcq.service.supervisor import Supervisor
from svcq.store import Store, open_store, upgrade_store
from svcq.version import __version__
from svcq.worker.places import Places

LOOK = 1.0  # seconds
_LAST_WAIT = 60.0  # seconds for jobs to go back when the machine goes down


def run_service(config: Config, say: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT."""
    places = Places(config.home)
    places.prepare()
    leaving = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leaving.set())
    with _only_one(places), closing(_open(config, say)) as store, Janitor(config, say):
        supervisor = Supervisor(store, config, say)
        service.notify("READY=1")
        say(f"svcq {__version__} runs, pid {os.getpid()}, on {config.store}.")
        _watch(supervisor, config, leaving, say)
        service.notify("STOPPING=1")
        _stop(supervisor, say)


class _only_one:  # noqa: N801 (used as a function is)
    """The lock of the service, with its pid for whoever comes second."""

    def __init__(self, places: Places) -> None:
        self._path: Path = places.service_lock

    def __enter__(self) -> None:
        lock = processes.hold_lock(self._path)
        if lock is None:
            holder = self._path.read_text().strip() or "unknown"
            raise Refused(
                f"The service runs already, with pid {holder}, on {self._path.parent}: "
                "svcq restart starts it anew, svcq stop ends it."
            )
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        self._lock = lock

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)


def _open(config: Config, say: Callable[[str], None]) -> Store:
    """A service brings its store up to date, after a backup."""
    try:
        return open_store(config)
    except StoreVersion:
        before, after = upgrade_store(config)
        say(f"The store was brought from schema {before} to {after}; a backup is beside it.")
        return open_store(config)


def _watch(
    supervisor: Supervisor, config: Config, leaving: threading.Event, say: Callable[[str], None]
) -> None:
    file = config.home / "config.toml"
    read, said = _changed(file), ""
    while not leaving.is_set():
        try:
            if _changed(file) != read:
                read = _changed(file)
                config = load(config.home)
                say("The settings have changed and were read again.")
                supervisor.renew()
            status = supervisor.look(config)
        except (SvcqError, OSError) as error:
            status = str(error)
            if status != said:  # a store that is away is told of once
                say(status)
        if status != said:
            service.notify(f"STATUS={status}")
            said = status
        service.notify("WATCHDOG=1")
        leaving.wait(LOOK)


def _changed(file: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = file.stat()
        return status.st_mtime_ns, status.st_size
    return None


def _stop(supervisor: Supervisor, say: Callable[[str], None]) -> None:
    why = service.why_leaving()
    if why == "restart":
        say("Stopped to be started anew; the workers go on meanwhile.")
        return
    try:
        if why == "down":
            _interrupt(supervisor)
            say("The session ends: what was running goes on at the next start.")
            return
        running = sum(one.running for one in supervisor.drain())
    except SvcqError as error:
        say(str(error))
        return
    say(f"Stopped; jobs that still run to their end: {running}." if running else "Stopped.")


def _interrupt(supervisor: Supervisor) -> None:
    """All jobs go back, and nobody is left when the session ends."""
    supervisor.drain(now=True)
    deadline = time.monotonic() + _LAST_WAIT
    while supervisor.mine() and time.monotonic() < deadline:
        time.sleep(0.1)
