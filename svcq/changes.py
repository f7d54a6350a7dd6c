"""Following what happens in a store: a cursor that waits for news without asking all the time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from svcq.jobs import Change
from svcq.store import Store

_FIRST_NAP = 0.005
_LONGEST_NAP = 0.25


class Follower:
    """Changes from a cursor on, in order, each once.

    `missed` tells that the store no longer had everything since the cursor: whoever keeps a
    picture of the store should then draw it anew.
    """

    def __init__(self, store: Store, cursor: int | None = None) -> None:
        self._store = store
        self._seen: tuple[int, int] | None = None
        self.missed = False
        self.cursor = store.last_change() if cursor is None else cursor

    def next(self, timeout: float, limit: int = 1000) -> list[Change]:
        """The next changes; an empty list when there were none for `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            found = self._look(limit)
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            if self._seen is not None:
                wait_for_write(self._store, self._seen, left)

    def __iter__(self) -> Iterator[Change]:
        while True:
            yield from self.next(timeout=60)

    def _look(self, limit: int) -> list[Change]:
        mark = self._store.write_mark()
        if mark == self._seen:
            return []
        found = self._store.changes(self.cursor, limit)
        if len(found) < limit:
            self._seen = mark
        if found:
            gap = found[0].seq > self.cursor + 1
            if gap and self._store.oldest_change() > self.cursor + 1:
                self.missed = True
            self.cursor = found[-1].seq
        return found


def wait_for_write(store: Store, mark: tuple[int, int], timeout: float) -> tuple[int, int]:
    """Wait until someone has written since `mark`; the new mark, or the old one after `timeout`."""
    deadline = time.monotonic() + timeout
    nap = _FIRST_NAP
    while (now := store.write_mark()) == mark:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(nap, left))
        nap = min(nap * 1.5, _LONGEST_NAP)
    return now
