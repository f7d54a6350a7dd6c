"""Where requests are carried out: in threads with clients of their own, never in the loop.

A store that is busy or slow holds up those who ask for the same kind of thing, and nobody else:
looks, short writes and long ones have clerks of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from svcq.client import Client
from svcq.config import Config, Followed
from svcq.errors import SvcqError, Unreachable

T = TypeVar("T")

_LOOKERS = 2
_MOST_WAITING = 500  # requests for one clerk; more are turned away


class Desk:
    def __init__(self, config: Config) -> None:
        settings = Settings(config)
        self.settings = settings
        self._lookers = [Clerk(settings, f"web-look-{n}") for n in range(_LOOKERS)]
        self._writer = Clerk(settings, "web-write")
        self._patient = Clerk(settings, "web-long")

    async def look(self, act: Callable[[Client], T]) -> T:
        return await min(self._lookers, key=lambda clerk: clerk.waiting).do(act)

    async def write(self, act: Callable[[Client], T]) -> T:
        return await self._writer.do(act)

    async def take_time(self, act: Callable[[Client], T]) -> T:
        """What may take minutes: a purge of a million jobs."""
        return await self._patient.do(act)

    def close(self) -> None:
        for clerk in (*self._lookers, self._writer, self._patient):
            clerk.close()


class Settings:
    """The configuration as its file last had it; one that is wrong changes nothing."""

    def __init__(self, config: Config) -> None:
        self._followed = Followed(config)
        self._lock = threading.Lock()

    def now(self) -> Config:
        with self._lock:
            with suppress(SvcqError):
                self._followed.changed()
            return self._followed.config


class Clerk:
    """One thread and its client, opened when it is first needed."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._client: Client | None = None
        self.waiting = 0

    async def do(self, act: Callable[[Client], T]) -> T:
        if self.waiting >= _MOST_WAITING:
            raise Unreachable("The service has too much to do just now: try again in a while.")
        self.waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, self._act, act)
        finally:
            self.waiting -= 1

    def _act(self, act: Callable[[Client], T]) -> T:
        config = self._settings.now()
        if self._client is None or self._client.config is not config:
            self._leave()
            self._client = Client(config=config)
        return act(self._client)

    def _leave(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def close(self) -> None:
        self._thread.submit(self._leave)
        self._thread.shutdown(wait=True, cancel_futures=False)
