"""Seeing jobs through where no service may be running: a worker lives for as long as they need one.

The worker is one that a service keeps. So a service that starts meanwhile goes on with it, and
without one it ends by itself some time after we have.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from typing import Self

from svcq import host
from svcq.client import Client
from svcq.errors import WaitTimeout
from svcq.host import processes
from svcq.host.service import Manager
from svcq.jobs import Job
from svcq.service.crew import ServiceCrew
from svcq.worker.places import Places

_LOOK = 1.0  # seconds
_SOON = 30.0  # within which a worker that was started is to be there


class Attendant:
    """While it is entered, workers that a service would keep go on."""

    def __init__(self, client: Client, manager: Manager) -> None:
        self._client = client
        self._crew = ServiceCrew(client.config, manager, lambda _: None)
        self._places = Places(client.config.home)
        self._lock_file = self._places.attendants / f"{os.getpid()}.lock"
        self._started = float("-inf")

    def __enter__(self) -> Self:
        self._places.prepare()
        host.private_directory(self._places.attendants)
        for left in self._places.attendants.glob("*.lock"):  # by those that were killed
            if processes.process_born(int(left.stem)) is None:
                left.unlink(missing_ok=True)
        self._lock = processes.hold_lock(self._lock_file)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock_file.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)

    def see_through(self, jobs: Iterable[int]) -> list[Job]:
        """Wait until they have ended, with a worker there to run them."""
        return [self._ended(job) for job in jobs]

    def _ended(self, job: int) -> Job:
        while True:
            self._see_to_worker()
            try:
                return self._client.wait(job, _LOOK)
            except WaitTimeout:
                continue

    def _see_to_worker(self) -> None:
        """Start a worker, unless one lives on this machine."""
        if self._one_lives():
            self._started = float("-inf")
        elif time.monotonic() - self._started > _SOON:
            self._crew.start(self._client.config)
            self._started = time.monotonic()

    def _one_lives(self) -> bool:
        here = socket.gethostname()
        return any(
            worker.host == here
            and worker.state == "running"
            and processes.lock_is_held(self._places.worker_lock(worker.pid, worker.born or ""))
            for worker in self._client.workers()
        )
