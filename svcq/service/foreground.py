"""`svcq up`: workers as children of a program in the foreground, kept as the service keeps its own,
until Ctrl-C."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from svcq.config import Config
from svcq.errors import SvcqError
from svcq.host import processes
from svcq.policy import check_int
from svcq.service.supervisor import Supervisor
from svcq.service.wishes import Wishes
from svcq.store import Worker, open_store
from svcq.worker.places import Places
from svcq.worker.program import slots_of, worker_command, worker_environment
from svcq.worker.rescue import rescue_dead

_LOOK = 0.5  # seconds


class Foreground:
    """Given a number of workers or slots, the settings do not count for these."""

    hindrance = ""

    def __init__(
        self,
        config: Config,
        say: Callable[[str], None],
        *,
        count: int | None = None,
        slots: int | None = None,
        arguments: Sequence[str] = (),
        wishes: Wishes | None = None,
    ) -> None:
        self._config = config
        self._say = say
        self._count = count
        self._slots = slots
        self._arguments = arguments
        self._wishes = wishes
        self._children: list[subprocess.Popen[bytes]] = []
        self._stopping = False
        self.size(config)  # a number that cannot be meant is refused before anything is made
        Places(config.home).prepare()
        self._store = open_store(config)

    def __enter__(self) -> Self:
        """From here on SIGINT and SIGTERM are heard at leisure, and interrupt nothing half-way."""
        before = {number: signal.signal(number, self._stop) for number in processes.END_SIGNALS}
        for number in processes.CHILD_SIGNALS:  # the end of a worker wakes us at once
            before[number] = signal.signal(number, lambda *_: None)
        self._before = before
        self._deaf = processes.hear_end(self._stop)
        self._woken, self._waker = socket.socketpair()
        for one in (self._woken, self._waker):
            one.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._deaf()
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._woken.close()
        self._waker.close()
        self._store.close()

    def run(self) -> None:
        """Until SIGINT or SIGTERM; jobs that run then go back unharmed."""
        supervisor = Supervisor(self._store, self._config, self._say, self, self._wishes)
        try:
            while not self._stopping:
                self._reap()
                supervisor.tend()
                select.select([self._woken], [], [], _LOOK)
                with suppress(BlockingIOError):
                    while self._woken.recv(64):
                        pass
        finally:
            self._end_all()

    # What its supervisor asks

    def has(self, worker: Worker) -> bool:
        return any(child.pid == worker.pid for child in self._children)

    def size(self, config: Config) -> tuple[int, int]:
        count = config.workers.count if self._count is None else self._count
        slots = slots_of(config) if self._slots is None else self._slots
        return check_int(count, "number of workers", 1, 256), slots

    def start(self, config: Config) -> int:
        child = processes.start_apart(
            worker_command(self._arguments), worker_environment(config), stdin=subprocess.DEVNULL
        )
        self._children.append(child)
        return child.pid

    # Their ends, and ours

    def _reap(self) -> None:
        for child in [one for one in self._children if one.poll() is not None]:
            self._children.remove(child)
            if code := child.returncode:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                self._say(f"A worker (pid {child.pid}) ended with {how}.")

    def _stop(self, *_: object) -> None:
        if self._stopping:
            for child in self._children:
                child.kill()
        self._stopping = True

    def _end_all(self) -> None:
        for child in self._children:
            processes.ask_child_to_end(child)
        for child in self._children:
            child.wait()
        try:
            killed = [child.pid for child in self._children]
            rescue_dead(self._store, Places(self._config.home), self._say, killed=killed)
        except SvcqError as error:
            self._say(str(error))
