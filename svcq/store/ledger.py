"""What every write notes beside its own rows: changes, counters, the minute's activity.

A verb fills one ledger and writes it at the end of its transaction, so that each table is touched
once however many jobs moved.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from svcq.states import QUEUED, State
from svcq.store.engine import Transaction
from svcq.times import MINUTE

# In place of a job's id, in changes that are about no job.
NO_JOB = 0


class Ledger:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._changes: list[tuple[int, str, int]] = []
        self._counts: dict[tuple[str, str, str], int] = defaultdict(int)
        self._minutes: dict[tuple[str, str, int], list[int]] = {}
        self._keys: dict[str, None] = {}
        self.wakes = False  # whether a worker may have something to do now

    def added(self, ids: Sequence[int], state: State, queue: str, task: str) -> None:
        self._tell(ids, state)
        self._counts[queue, state, task] += len(ids)
        self._time(queue, "added", 0, len(ids))
        self.wakes = True

    def moved(self, ids: Sequence[int], old: State, new: State, queue: str, task: str) -> None:
        self._tell(ids, new)
        self._counts[queue, old, task] -= len(ids)
        self._counts[queue, new, task] += len(ids)
        self.wakes = self.wakes or new in QUEUED

    def removed(self, state: State, queue: str, task: str) -> None:
        self._counts[queue, state, task] -= 1

    def renamed(self, state: State, old: tuple[str, str], new: tuple[str, str]) -> None:
        """An edit gave a job another queue or task."""
        self._counts[old[0], state, old[1]] -= 1
        self._counts[new[0], state, new[1]] += 1

    def told(self, job: int, kind: str) -> None:
        """Something that is not a change of state: progress, an edit, a request."""
        self.wakes = self.wakes or kind != "progress"
        self._tell((job,), kind)

    def told_of_schedules(self) -> None:
        """Whoever shows schedules looks again; which one it was is not worth a column."""
        self._tell((NO_JOB,), "schedules")

    def timed(self, queue: str, kind: str, times: Iterable[int]) -> None:
        """How long jobs waited (kind started) or ran (kind: how it ended), in milliseconds."""
        for ms, n in Counter(times).items():
            self._time(queue, kind, ms, n)

    def touched(self, key: str) -> None:
        """Lanes of this concurrency key gained or lost jobs, or the key gained or lost room."""
        self.wakes = True
        self._keys[key] = None

    def settle_keys(self) -> None:
        """Bring the lanes of touched keys up to date before the transaction goes on to use them."""
        for key in self._keys:
            self._tx.run("drop_empty_lanes", key=key)
            self._tx.run("refresh_lanes", key=key)
            self._tx.run("drop_idle_key", key=key)
        self._keys.clear()

    def write(self) -> None:
        tx = self._tx
        self.settle_keys()
        if self._changes:
            tx.many("add_changes", self._changes)
        counts = [(*place, n) for place, n in self._counts.items() if n]
        if counts:
            tx.many("add_counts", counts)
        if self._minutes:
            minute = tx.now // MINUTE
            tx.many("add_minutes", [(minute, *k, *v) for k, v in self._minutes.items()])

    def _tell(self, ids: Iterable[int], kind: str) -> None:
        now, text = self._tx.now, str(kind)  # an enum takes twice as long to bind
        self._changes += [(job, text, now) for job in ids]

    def _time(self, queue: str, kind: str, ms: int, n: int) -> None:
        ms = max(ms, 0)  # a clock that was set back
        sums = self._minutes.setdefault((queue, kind, bucket_of(ms)), [0, 0])
        sums[0] += n
        sums[1] += ms * n


def bucket_of(ms: int) -> int:
    """Four buckets to each doubling: percentiles to within a fifth, whatever the scale."""
    if ms < 4:
        return ms
    exponent = ms.bit_length() - 3
    return exponent * 4 + (ms >> exponent)


def bucket_range(bucket: int) -> tuple[int, int]:
    """The milliseconds a bucket stands for: from, up to but not including."""
    if bucket < 4:
        return bucket, bucket + 1
    exponent, top = (bucket - 4) // 4, 4 + bucket % 4
    return top << exponent, (top + 1) << exponent
