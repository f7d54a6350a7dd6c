"""Numbers about the store, from counters and rollups: never by counting jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from svcq.jobs import How, State
from svcq.store.engine import Transaction
from svcq.store.ledger import bucket_range
from svcq.times import MINUTE, iso, moment
from svcq.tuples import NamedTuple


class Times(NamedTuple):
    """How long something took, in seconds, over `n` times. Percentiles are within a fifth."""

    n: int = 0
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class QueueStats(NamedTuple):
    queue: str
    counts: dict[str, int]  # by state
    tasks: dict[str, dict[str, int]]  # by task and state; commands under "command"
    oldest: float | None  # seconds that the longest waiting of the first in line has been ready
    added: int  # these four within the time asked for
    completed: int
    failed: int
    wait: Times
    run: Times

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "wait": self.wait._asdict(), "run": self.run._asdict()}


class Activity(NamedTuple):
    """What happened in one minute: added, started, and how runs ended; how long those that started
    had waited, and those that ended had run."""

    minute: datetime
    queue: str
    counts: dict[str, int]
    wait: Times = Times()
    run: Times = Times()

    def as_json(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "minute": iso(round(self.minute.timestamp() * 1000)),
            "wait": self.wait._asdict(),
            "run": self.run._asdict(),
        }


class Rollup(NamedTuple):
    """What happened in one minute, of one kind, that took about as long."""

    minute: int
    queue: str
    kind: str
    bucket: int
    n: int
    total_ms: int


def rollups(tx: Transaction, since: int) -> list[Rollup]:
    """All since a minute, oldest first."""
    return [Rollup._make(row) for row in tx.rows("minutes_since", since=since, queue=None)]


FAILURES = (How.FAILED, How.TIMED_OUT, How.REJECTED, How.LOST)


def counts(tx: Transaction, queue: str | None = None) -> dict[str, int]:
    """How many jobs are in each state; every state is there."""
    total = {state.value: 0 for state in State}
    for _, state, _, n in tx.rows("counts", queue=queue):
        total[state] += n
    return total


def stats(tx: Transaction, queue: str | None, minutes: int) -> list[QueueStats]:
    by_state: dict[str, dict[str, int]] = defaultdict(dict)
    by_task: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for name, state, task, n in tx.rows("counts", queue=queue):
        by_state[name][state] = by_state[name].get(state, 0) + n
        by_task[name][task or "command"][state] = n
    oldest: dict[str, int | None] = dict(tx.rows("oldest_in_line", queue=queue))
    rollups: dict[str, list[tuple[str, int, int, int]]] = defaultdict(list)
    since = tx.now // MINUTE - minutes
    for _, name, *rollup in tx.rows("minutes_since", since=since, queue=queue):
        rollups[name].append(tuple(rollup))
    names = sorted(by_state.keys() | rollups.keys() | oldest.keys())
    return [
        QueueStats(
            queue=name,
            counts=by_state[name],
            tasks={task: dict(states) for task, states in by_task[name].items()},
            oldest=_age(tx.now, oldest.get(name)),
            added=_sum(rollups[name], "added"),
            completed=_sum(rollups[name], How.COMPLETED),
            failed=_sum(rollups[name], *FAILURES),
            wait=_times(rollups[name], "started"),
            run=_times(rollups[name], How.COMPLETED, *FAILURES),
        )
        for name in names
    ]


def activity(tx: Transaction, queue: str | None, minutes: int) -> list[Activity]:
    """Minute by minute, oldest first; minutes in which nothing happened are left out."""
    found: dict[tuple[int, str], list[tuple[str, int, int, int]]] = defaultdict(list)
    since = tx.now // MINUTE - minutes + 1
    for minute, name, *rollup in tx.rows("minutes_since", since=since, queue=queue):
        found[minute, name].append(tuple(rollup))
    return [
        Activity(
            moment(minute * MINUTE), name, _by_kind(rollups),
            wait=_times(rollups, "started"), run=_times(rollups, How.COMPLETED, *FAILURES),
        )
        for (minute, name), rollups in sorted(found.items())
    ]  # fmt: skip


def _age(now: int, since: int | None) -> float | None:
    return None if since is None else max(now - since, 0) / 1000


def _by_kind(rollups: Iterable[tuple[str, int, int, int]]) -> dict[str, int]:
    counted: dict[str, int] = defaultdict(int)
    for kind, _, n, _ in rollups:
        counted[kind] += n
    return dict(counted)


def _sum(rollups: Iterable[tuple[str, int, int, int]], *kinds: str) -> int:
    return sum(n for kind, _, n, _ in rollups if kind in kinds)


def _times(rollups: Iterable[tuple[str, int, int, int]], *kinds: str) -> Times:
    buckets: dict[int, int] = defaultdict(int)
    total = 0
    for kind, bucket, n, total_ms in rollups:
        if kind in kinds:
            buckets[bucket] += n
            total += total_ms
    count = sum(buckets.values())
    if not count:
        return Times()
    shares: list[Any] = [_percentile(buckets, count, share) for share in (0.5, 0.95, 0.99)]
    return Times(count, total / count / 1000, *shares)


def _percentile(buckets: dict[int, int], count: int, share: float) -> float:
    """The middle of the bucket that holds it: an eighth off at most; its ends, a quarter."""
    rank = share * count
    for bucket, n in sorted(buckets.items()):
        if rank <= n:
            low, high = bucket_range(bucket)
            return (low + high - 1) / 2000
        rank -= n
    raise AssertionError("the counts of the buckets do not add up")
