"""The worker as a program: how it is started, and how `svcq up` keeps some running."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from svcq.config import Config
from svcq.errors import SvcqError
from svcq.host import processes
from svcq.store import Store, open_store
from svcq.worker import spool
from svcq.worker.places import Places
from svcq.worker.rescue import rescue_dead

_LOOK = 0.5
_LONGEST_BACKOFF = 30.0
_HEALTHY = 10.0  # seconds after which a worker counts as having started well


def worker_command(arguments: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-m", "svcq", "worker", "run", *arguments]


def worker_environment(config: Config) -> dict[str, str]:
    return {**os.environ, "SVCQ_HOME": str(config.home), "SVCQ_STORE": config.store}


def start_detached(config: Config, arguments: Sequence[str] = ()) -> int:
    """Start a worker that outlives this program; its pid."""
    Places(config.home).prepare()
    return processes.spawn_detached(
        worker_command(arguments),
        log=worker_log(config),
        env=worker_environment(config),
        # Modules are looked for where it was asked for; otherwise it keeps no folder busy.
        cwd=os.getcwd() if "--import" in arguments else "/",
    )


def worker_log(config: Config) -> Path:
    return config.home / "logs" / "workers.log"


def slots_of(config: Config) -> int:
    return config.workers.slots or os.cpu_count() or 1


class _Kept(NamedTuple):
    process: subprocess.Popen[bytes]
    since: float


class Keeper:
    """Keeps workers running in the foreground: rescues what a dead one held, and replaces it."""

    def __init__(self, config: Config, say: Callable[[str], None]) -> None:
        self._config = config
        self._say = say
        self._places = Places(config.home)
        self._places.prepare()
        self._store: Store = open_store(config)
        self._kept: list[_Kept] = []
        self._backoff = 0.0
        self._next_start = 0.0
        self._stopping = False

    def run(self, count: int, arguments: Sequence[str] = ()) -> None:
        """Until SIGINT or SIGTERM; jobs that run then go back unharmed."""
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        # The end of a worker wakes us at once.
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        woken, waker = socket.socketpair()
        for one in (woken, waker):
            one.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        try:
            while not self._stopping:
                self._look()
                while len(self._kept) < count and time.monotonic() >= self._next_start:
                    self._start(arguments)
                select.select([woken], [], [], _LOOK)
                _empty(woken)
        finally:
            self._end_all()
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._store.close()

    def _start(self, arguments: Sequence[str]) -> None:
        process = subprocess.Popen(
            worker_command(arguments),
            env=worker_environment(self._config),
            stdin=subprocess.DEVNULL,
            # A session of its own: Ctrl-C in our terminal is ours to hear, not the workers'.
            start_new_session=True,
        )
        self._kept.append(_Kept(process, time.monotonic()))

    def _look(self) -> None:
        gone = [kept for kept in self._kept if kept.process.poll() is not None]
        self._kept = [kept for kept in self._kept if kept not in gone]
        for kept in gone:
            lived = time.monotonic() - kept.since
            code = kept.process.returncode
            said = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._say(f"A worker (pid {kept.process.pid}) ended with {said}; starting another.")
            # The first replacement comes at once; what keeps dying is started ever more slowly.
            self._next_start = time.monotonic() + self._backoff
            self._backoff = (
                0 if lived > _HEALTHY else min(2 * self._backoff + 0.5, _LONGEST_BACKOFF)
            )
        try:
            spool.deliver(self._places.spool, self._store)
            rescued = rescue_dead(self._store, self._places, self._say)
        except SvcqError as error:
            self._say(str(error))
            return
        for worker, jobs in rescued:
            held = ", ".join(map(str, jobs)) or "no jobs"
            self._say(f"Worker {worker.id} (pid {worker.pid}) is gone; it held {held}.")

    def _stop(self, *_: object) -> None:
        if self._stopping:
            for kept in self._kept:
                kept.process.kill()
        self._stopping = True

    def _end_all(self) -> None:
        for kept in self._kept:
            kept.process.terminate()
        for kept in self._kept:
            kept.process.wait()
        try:
            killed = [kept.process.pid for kept in self._kept]
            rescue_dead(self._store, self._places, self._say, killed=killed)
        except SvcqError as error:
            self._say(str(error))


def _empty(woken: socket.socket) -> None:
    try:
        while woken.recv(64):
            pass
    except BlockingIOError:
        pass


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
