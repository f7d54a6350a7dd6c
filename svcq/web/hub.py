"""One reader of the store for all who follow it.

A thread reads what happened, at most ten times a second, and encodes it once. Each follower knows
only how far it has come: nothing is kept for it, so one that is slow, or does not read at all,
costs no memory. What it missed it gets in one piece, from the frames kept here or from the store.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import NamedTuple

from svcq.changes import Follower
from svcq.config import Config
from svcq.errors import SvcqError
from svcq.jobs import Change
from svcq.store import open_store

INTERVAL = 0.1  # seconds between two frames
PING = 15.0  # seconds of silence after which a sign of life is sent
_LONGEST_LOOK = 1.0
_MOST_AT_ONCE = 5000  # changes in a frame
# From so many in a frame on, frames come more rarely: to hand each to all who follow is most of the
# work, and workers that are this busy need the machine.
_MANY = 400
_RARELY = 0.25
_KEPT_BYTES = 4 << 20
_LINGER = 10.0  # seconds for which it goes on when nobody follows any more
_AWAY = 2.0  # seconds until a store that is away is tried again


class Frame(NamedTuple):
    """Some changes, encoded: a JSON array without its brackets, so that frames can be joined."""

    n: int  # of the frame
    before: int  # the highest number of a change before it
    last: int  # and in it; one that was committed late may be lower than what came before
    cursor: int  # from where whoever comes back misses nothing
    body: bytes
    jobs: frozenset[int]
    missed: bool = False  # the store no longer had all of them


def encode_changes(changes: list[Change]) -> bytes:
    return ",".join(
        json.dumps(change.as_json(), separators=(",", ":")) for change in changes
    ).encode()


class Hub:
    """Reads while anyone follows, and rests otherwise."""

    def __init__(self, config: Config, say: Callable[[str], None]) -> None:
        self._config = config
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._followers = 0
        self._watched: dict[int, set[asyncio.Event]] = {}
        self._left = time.monotonic()
        self._wanted = threading.Event()
        self._leaving = False
        self._n = 0
        self._at: Frame | None = None
        self._thread = threading.Thread(target=self._read, name="web-hub", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._leaving = True
        self._wanted.set()
        self._thread.join(5)

    # For followers, in the loop

    async def frames(self) -> AsyncGenerator[Frame | None, None]:
        """What happens from now on; None is a sign of life.

        The first frame has no changes and tells where it begins. Frames that a follower was too
        slow for come joined; `before` tells a gap between two.
        """
        self._followers += 1
        self._wanted.set()
        try:
            begin = await self._begin()
            yield begin
            at = begin.n
            while True:
                news = self._news
                frame = self._since(at)
                if frame is None:
                    try:
                        await asyncio.wait_for(news.wait(), PING)
                    except TimeoutError:
                        yield None
                    continue
                at = frame.n
                yield frame
        finally:
            self._followers -= 1
            self._left = time.monotonic()

    @asynccontextmanager
    async def watching(self, job: int) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever something happens to a job, from now on."""
        changed = asyncio.Event()
        self._watched.setdefault(job, set()).add(changed)
        self._followers += 1
        self._wanted.set()
        try:
            await self._begin()
            yield changed
        finally:
            self._watched[job].discard(changed)
            if not self._watched[job]:
                del self._watched[job]
            self._followers -= 1
            self._left = time.monotonic()

    async def _begin(self) -> Frame:
        """Without changes: where the hub is now."""
        while self._at is None:
            await self._news.wait()
        return self._at

    def _since(self, at: int) -> Frame | None:
        """All that is kept after a frame, in one; None when there is nothing new."""
        fresh = []
        for frame in reversed(self._frames):
            if frame.n <= at:
                break
            fresh.append(frame)
        if not fresh:
            return None
        if len(fresh) == 1:
            return fresh[0]
        fresh.reverse()
        return Frame(
            fresh[-1].n,
            fresh[0].before,
            fresh[-1].last,
            fresh[-1].cursor,
            b",".join(frame.body for frame in fresh),
            frozenset().union(*(frame.jobs for frame in fresh)),
            any(frame.missed for frame in fresh),
        )

    def _publish(self, frame: Frame) -> None:
        self._at = frame._replace(before=frame.last, body=b"", jobs=frozenset(), missed=False)
        if frame.body or frame.missed:
            for job in self._watched.keys() & frame.jobs:
                for changed in self._watched[job]:
                    changed.set()
            self._frames.append(frame)
            self._bytes += len(frame.body)
            while self._bytes > _KEPT_BYTES and len(self._frames) > 1:
                self._bytes -= len(self._frames.popleft().body)
        self._news.set()
        self._news = asyncio.Event()

    def _rest(self) -> None:
        if not self._followers:
            self._wanted.clear()
            self._at = None
            self._frames.clear()
            self._bytes = 0

    # The reader, in its thread

    def _read(self) -> None:
        said = ""
        while not self._leaving:
            self._wanted.wait()
            try:
                self._follow()
                said = ""
            except (SvcqError, OSError) as error:
                if str(error) != said:
                    said = str(error)
                    self._say(f"Nobody is told of changes just now: {said}")
                time.sleep(_AWAY)

    def _follow(self) -> None:
        with closing(open_store(self._config)) as store:
            follower = Follower(store, None if self._at is None else self._at.cursor)
            while self._wanted.is_set() and not self._leaving:
                began, before = time.monotonic(), follower.newest
                if self._at is None:
                    self._tell(self._publish, self._frame(follower, before, b"", frozenset()))
                changes = follower.next(_LONGEST_LOOK, _MOST_AT_ONCE)
                if changes:
                    jobs = frozenset(change.job for change in changes)
                    body = encode_changes(changes)
                    self._tell(self._publish, self._frame(follower, before, body, jobs))
                    follower.missed = False
                    pace = _RARELY if _MANY <= len(changes) < _MOST_AT_ONCE else INTERVAL
                    time.sleep(max(began + pace - time.monotonic(), 0))
                if not self._followers and time.monotonic() - self._left > _LINGER:
                    self._tell(self._rest)

    def _frame(self, follower: Follower, before: int, body: bytes, jobs: frozenset[int]) -> Frame:
        self._n += 1
        return Frame(self._n, before, follower.newest, follower.cursor, body, jobs, follower.missed)

    def _tell(self, act: Callable[..., None], *what: object) -> None:
        try:
            self._loop.call_soon_threadsafe(act, *what)
        except RuntimeError:  # the loop has ended
            self._leaving = True
