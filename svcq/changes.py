"""Following what happens in a store: a cursor that waits for news without asking all the time.

On PostgreSQL a change has its number before its transaction commits: a higher one may be seen
first, and a lower one later, or never. So what is missing is looked for again, until all who could
have taken it have ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from svcq.jobs import Change
from svcq.store import Store

_FIRST_NAP = 0.005
_LONGEST_NAP = 0.25
_LOOK_BACK = 1000  # numbers before the first, of transactions that have yet to commit
_MOST_GAPS = 200


class _Gap(NamedTuple):
    """Numbers that nobody has seen, and those who may still commit them."""

    first: int
    last: int
    writers: frozenset[str]


class Follower:
    """Changes from a cursor on, each once, in order but for those that were committed late.

    All up to `cursor` was seen, or will never be: whoever goes on from there misses nothing, and
    may see some of the last ones again. `newest` is the highest number seen. `missed` tells that
    the store no longer had everything since the cursor: whoever keeps a picture of the store should
    then draw it anew.
    """

    def __init__(self, store: Store, cursor: int | None = None) -> None:
        self._store = store
        self._seen: tuple[int, int] | None = None
        self._gaps: list[_Gap] = []
        self.missed = False
        self.newest = store.last_change() if cursor is None else cursor
        writers = store.writers()
        if writers:
            self._note_gaps(self.newest - _LOOK_BACK, writers)

    @property
    def cursor(self) -> int:
        return self._gaps[0].first - 1 if self._gaps else self.newest

    def next(self, timeout: float, limit: int = 1000) -> list[Change]:
        """The next changes; an empty list when there were none for `timeout` seconds."""
        deadline = time.monotonic() + timeout
        nap = _FIRST_NAP
        while True:
            found = self._look(limit)
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            if self._gaps:
                # That they are filled does not show in what is newest.
                time.sleep(min(nap, left))
                nap = min(nap * 1.5, _LONGEST_NAP)
            elif self._seen is not None:
                wait_for_write(self._store, self._seen, left)

    def settled(self, patience: float, limit: int = 1000) -> list[Change]:
        """What there is now, in order; what is being committed is waited for, for a moment."""
        found = self.next(0, limit)
        deadline = time.monotonic() + patience
        while self._gaps and found and time.monotonic() < deadline:
            time.sleep(_FIRST_NAP)
            found += self._fill(limit)
        return sorted(found, key=lambda change: change.seq)

    def __iter__(self) -> Iterator[Change]:
        while True:
            yield from self.next(timeout=60)

    def _look(self, limit: int) -> list[Change]:
        late = self._fill(limit) if self._gaps else []
        if late:
            return late
        mark = self._store.write_mark()
        if mark == self._seen:
            return []
        found = self._store.changes(self.newest, limit)
        if len(found) < limit:
            self._seen = mark
        if found:
            before, self.newest = self.newest, found[-1].seq
            if found[-1].seq - before > len(found):
                self._look_for_gaps(before, [change.seq for change in found])
        return found

    def _look_for_gaps(self, before: int, seen: list[int]) -> None:
        writers = self._store.writers()
        if seen[0] > before + 1 and not writers and self._is_trimmed(before + 1):
            self.missed = True
            before = seen[0] - 1
        for one, after in zip([before, *seen], seen, strict=False):
            if after > one + 1:
                self._gaps.append(_Gap(one + 1, after - 1, writers))
        if len(self._gaps) > _MOST_GAPS:
            self._gaps = self._gaps[-_MOST_GAPS:]
            self.missed = True

    def _is_trimmed(self, seq: int) -> bool:
        return self._store.oldest_change() > seq

    def _note_gaps(self, before: int, writers: frozenset[str]) -> None:
        """What is missing in the last numbers may be someone's who has yet to commit."""
        seen = [change.seq for change in self._store.changes(max(before, 0), _LOOK_BACK)]
        seen = [seq for seq in seen if seq <= self.newest]
        if seen:
            pairs = zip(seen, [*seen[1:], self.newest + 1], strict=True)
            self._gaps = [_Gap(a + 1, b - 1, writers) for a, b in pairs if b > a + 1]

    def _fill(self, limit: int) -> list[Change]:
        """What has come of the missing numbers. One is given up when it was not there after all who
        wrote when it was missed had ended."""
        found: list[Change] = []
        left: list[_Gap] = []
        for gap in self._gaps:
            room = limit - len(found)
            late = self._store.changes(gap.first - 1, room, until=gap.last) if room else []
            found += late
            if gap.writers or late or not room:
                left += _without(gap, [change.seq for change in late])
            elif self._is_trimmed(gap.first):
                self.missed = True
        writers = self._store.writers() if left else frozenset()
        self._gaps = [gap._replace(writers=gap.writers & writers) for gap in left]
        return found


def _without(gap: _Gap, seen: list[int]) -> Iterator[_Gap]:
    before = gap.first - 1
    for seq in [*seen, gap.last + 1]:
        if seq > before + 1:
            yield _Gap(before + 1, seq - 1, gap.writers)
        before = seq


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
