"""Commands that were claimed before a slot is free for them.

When commands are short, a slot would wait for the store longer than for the command. So some are
claimed ahead, and begin the moment a slot is free; as soon as one takes longer, the others go back.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator

from svcq.worker.command import CommandRun

SHORT = 0.02  # seconds: a command this short is worth claiming ahead
LONG = 0.05  # seconds without an end, after which those behind can start sooner elsewhere
MOST = 16  # for each slot
_MEMORY = 0.2  # how much the newest counts in what is usual


class Ahead:
    def __init__(self, slots: int, on_long: Callable[[], None]) -> None:
        self._slots = slots
        self._on_long = on_long
        self._waiting: deque[CommandRun] = deque()
        self._usual = 1.0  # seconds
        self._last_end = 0.0
        self._watch: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[CommandRun]:
        return iter(self._waiting)

    def room(self) -> int:
        """How many could be claimed beyond the free slots."""
        if self._usual > SHORT:
            return 0
        each = min(MOST, int(LONG / max(self._usual, 0.001)))
        return max(self._slots * each - len(self._waiting), 0)

    def ended(self, took: float) -> None:
        """One that ran has ended, after so many seconds."""
        self._usual += _MEMORY * (took - self._usual)
        self._last_end = time.monotonic()

    def put(self, run: CommandRun) -> None:
        self._waiting.append(run)
        if self._watch is None:
            self._last_end = time.monotonic()
            self._watch = asyncio.get_running_loop().call_later(LONG, self._look)

    def next(self) -> CommandRun | None:
        return self._waiting.popleft() if self._waiting else None

    def take(self, job: int) -> CommandRun | None:
        """One of them, by its id, that is to begin no more."""
        run = next((one for one in self._waiting if one.claim.id == job), None)
        if run is not None:
            self._waiting.remove(run)
        return run

    def clear(self) -> list[CommandRun]:
        runs = list(self._waiting)
        self._waiting.clear()
        return runs

    def _look(self) -> None:
        self._watch = None
        if not self._waiting:
            return
        if time.monotonic() - self._last_end > LONG:
            self._usual = 1.0
            self._on_long()
        else:
            self._watch = asyncio.get_running_loop().call_later(LONG, self._look)
