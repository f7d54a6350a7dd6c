"""When a schedule fires: by cron, at an interval, or once; between a start and an end.

Times are instants in Unix milliseconds. A nominal time is the one a firing is for, whenever it
really comes.
"""

# No annotations from __future__: as text, each one of a NamedTuple is compiled at every start.

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from svcq.cron import Cron, parse_cron
from svcq.times import LATEST, MINUTE, SECOND

# So many times that have passed are counted; what is beyond is "or more".
MOST_COUNTED = 10_000


class Passed(NamedTuple):
    """The nominal times between two instants."""

    number: int  # how many, up to MOST_COUNTED
    latest: tuple[int, ...]  # the last of them, in order


class Trigger(NamedTuple):
    """Checked; one of `cron`, `every` and `at` is there."""

    cron: str | None = None
    zone: str | None = None  # of `cron`
    every: int | None = None
    at: int | None = None
    start: int | None = None
    end: int | None = None
    anchor: int = 0  # where an interval counts from

    def next_after(self, ms: int) -> int | None:
        return next(self.after(ms), None)

    def after(self, ms: int) -> Iterator[int]:
        """Its times after an instant, in order."""
        begin = ms if self.start is None else max(ms, self.start - 1)
        end = LATEST * SECOND if self.end is None else self.end
        for nominal in self._from(begin):
            if nominal > end:
                return
            yield nominal

    def passed(self, first: int, now: int, keep: int) -> Passed:
        """Of the times from `first`, which is one of them, up to now: how many, and the last few.

        Years of a schedule that fires every minute are not walked through one by one.
        """
        if self.every is not None:
            last = now if self.end is None else min(now, self.end)
            count = max((last - first) // self.every + 1, 0)
            begin = max(count - keep, 0)
            latest = tuple(first + n * self.every for n in range(begin, count))
            return Passed(min(count, MOST_COUNTED), latest)
        count, last_few = 0, deque[int](maxlen=keep)
        for nominal in self.after(first - 1):
            if nominal > now:
                break
            count += 1
            last_few.append(nominal)
            if count == MOST_COUNTED:
                last_few.extend(self._last_before(now, keep))
                break
        return Passed(count, tuple(last_few))

    @property
    def follows_the_clock(self) -> bool:
        """Whether it fires at every time the clock shows it, as cron(8) has it for wildcards; the
        others fire once for each day they name, though the clock may show that time twice."""
        return self.every is not None or (self.cron is not None and not self._cron().fixed)

    def _from(self, ms: int) -> Iterator[int]:
        if self.every is not None:
            nominal = self.anchor
            if ms >= nominal:
                nominal += ((ms - nominal) // self.every + 1) * self.every
            while True:
                yield nominal
                nominal += self.every
        elif self.at is not None:
            if self.at > ms:
                yield self.at
        else:
            yield from self._cron().after(ms)

    def _cron(self) -> Cron:
        return _parsed(self.cron or "", self.zone or "UTC")

    def _last_before(self, now: int, n: int) -> list[int]:
        """The last `n` times up to now, of a trigger that has had many more."""
        window = n * MINUTE
        while True:
            found = []
            for nominal in self.after(now - window):
                if nominal > now:
                    break
                found.append(nominal)
            if len(found) >= n:
                return found[-n:]
            window *= 2


# A clock asks for the next time at every firing.
_parsed = lru_cache(1000)(parse_cron)
