"""The service itself: one for each home and machine, until the manager asks it to end.

It starts work and looks after it, and does none itself: when it is gone, the workers finish what
they hold, and the next one adopts them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Self

from svcq.config import Config, load
from svcq.errors import NotPermitted, Refused, StoreAway, StoreVersion, SvcqError
from svcq.host import processes, service
from svcq.host.service import Manager
from svcq.passwords import hide_password
from svcq.service.announce import Announcer
from svcq.service.clock import Clock
from svcq.service.crew import ServiceCrew, drain, interrupt
from svcq.service.janitor import Janitor
from svcq.service.starts import Starts
from svcq.service.supervisor import Supervisor
from svcq.service.when_done import WhenDone
from svcq.service.wishes import Wishes
from svcq.store import Store, open_store, upgrade_store
from svcq.trouble import Trouble
from svcq.version import __version__
from svcq.worker.places import Places

LOOK = 1.0  # seconds
_LAST_WAIT = 60.0  # seconds for jobs to go back when the machine goes down


Say = Callable[[str], None]
Beside = Callable[[Config, Say, Wishes], AbstractContextManager[object]]


def run_service(home: Path, manager: Manager, say: Say, beside: Beside) -> None:
    """Run until SIGTERM or SIGINT; `beside` hears callers meanwhile, and holds up nothing."""
    places = Places(home)
    places.prepare()
    leaving = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leaving.set())
    with _only_one(places) as lock, Starts(home, leaving, say):
        config, wishes = load(home), Wishes()
        with (
            closing(_open_patiently(config, say, leaving)) as store,
            Janitor(config, say),
            Clock(config, say),
            WhenDone(config, say),
            Announcer(config, say),
            beside(config, say, wishes),
        ):
            crew = ServiceCrew(config, manager, say)
            supervisor = Supervisor(store, config, say, crew, wishes)
            service.notify("READY=1")
            say(f"svcq {__version__} runs, pid {os.getpid()}, on {hide_password(config.store)}.")
            _watch(supervisor, leaving)
            service.notify("STOPPING=1")
            _stop(manager.why_leaving(), store, lock, say)


class _only_one:  # noqa: N801 (used as a function is)
    """The lock of the service, with its pid for whoever comes second."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._lock: int | None = None

    def __enter__(self) -> Self:
        path = self.places.service_lock
        try:
            lock = processes.hold_lock(path)
        except OSError as error:
            raise NotPermitted(
                f"{path} cannot be written ({error.strerror}), so no service can run on this home: "
                "set SVCQ_HOME to one that can be written."
            ) from error
        if lock is None:
            holder = path.read_text().strip() or "unknown"
            raise Refused(
                f"The service runs already, with pid {holder}, on {path.parent}: "
                "svcq restart starts it anew, svcq stop ends it."
            )
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        self._lock = lock
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _open_patiently(config: Config, say: Say, leaving: threading.Event) -> Store:
    """A server that does not answer yet may do so soon, as when all machines have just started."""
    trouble = Trouble(say)
    while True:
        try:
            store = _open(config, say)
            trouble.over()
            return store
        except StoreAway as error:
            trouble.met(error)
            service.notify("READY=1")  # or the manager would give us up
            service.notify(f"STATUS={error}")
            service.notify("WATCHDOG=1")
            if leaving.wait(LOOK):
                raise SystemExit(0) from None


def _open(config: Config, say: Callable[[str], None]) -> Store:
    """A service brings its store up to date, after a backup."""
    try:
        return open_store(config)
    except StoreVersion:
        before, after = upgrade_store(config)
        say(f"The store was brought from schema {before} to {after}; a backup is beside it.")
        return open_store(config)


def _watch(supervisor: Supervisor, leaving: threading.Event) -> None:
    said = ""
    while not leaving.is_set():
        how = supervisor.tend()
        if how != said:
            service.notify(f"STATUS={how}")
            said = how
        service.notify("WATCHDOG=1")
        leaving.wait(LOOK)


def _stop(why: str, store: Store, lock: _only_one, say: Callable[[str], None]) -> None:
    if why == "restart":
        say("Stopped to be started anew; the workers go on meanwhile.")
        return
    # A worker that is only just coming up is in no list yet: it ends when it finds no service.
    lock.release()
    try:
        if why == "down":
            interrupt(store, lock.places, _LAST_WAIT)
            say("The session ends: what was running goes on at the next start.")
            return
        running = sum(one.running for one in drain(store, lock.places))
    except SvcqError as error:
        say(str(error))
        return
    say(f"Stopped; jobs that still run to their end: {running}." if running else "Stopped.")
