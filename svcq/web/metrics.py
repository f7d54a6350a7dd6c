"""/metrics, for Prometheus: from the store's counters and its sums by the minute.

Nothing is counted out. What only grows is added up here from the minutes that have passed since
the service began, so that it keeps growing when the store lets old minutes go.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.responses import Response

from svcq.client import Client
from svcq.jobs import How
from svcq.store.ledger import bucket_range
from svcq.store.stats import Rollup
from svcq.times import MINUTE, now_ms
from svcq.version import __version__
from svcq.web.desk import Desk
from svcq.web.routes import Asked, Route

PATH = "/metrics"
_STILL_OPEN = 2  # minutes that may still be added to
_LONGEST_GAP = 24 * 60  # minutes; what is longer ago is not made up for
# In milliseconds, each four times the last, up to about three days: ends of the store's buckets.
_BOUNDS = [4**n for n in range(15)]
_ENDS = tuple(how.value for how in How)


def routes(desk: Desk) -> list[Route]:
    meter = Meter()

    async def metrics(_: Asked) -> Response:
        data = await desk.look(meter.measure)
        return Response(data, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return [Route("GET", PATH, metrics)]


class Times(NamedTuple):
    """How often something took how long: by bound, in all, and the sum in milliseconds."""

    buckets: dict[int, int]
    total_ms: list[int]

    @classmethod
    def none(cls) -> Times:
        return cls(defaultdict(int), [0])

    def cumulative(self) -> Iterator[tuple[str, float]]:
        seen, left = 0, sorted(self.buckets.items())
        for bound in _BOUNDS:
            while left and bucket_range(left[0][0])[1] <= bound:
                seen += left.pop(0)[1]
            yield str(bound / 1000), seen
        yield "+Inf", seen + sum(n for _, n in left)


class Meter:
    """What has happened since it was made, from the minutes of the store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[tuple[int, str, str, int], tuple[int, int]] = {}
        self._since = now_ms() // MINUTE
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._times: dict[tuple[str, str], Times] = defaultdict(Times.none)

    def measure(self, client: Client) -> bytes:
        """All there is to say, in the format of Prometheus."""
        with self._lock:
            self._add_up(client)
            registry = CollectorRegistry()
            registry.register(_Collected([*self._grown(), *_standing(client)]))
            return generate_latest(registry)

    def _add_up(self, client: Client) -> None:
        now = now_ms() // MINUTE
        for row in client.store.rollups(max(self._since, now - _LONGEST_GAP)):
            key = row[:4]
            n, ms = self._seen.get(key, (0, 0))
            self._seen[key] = (row.n, row.total_ms)
            self._count(row, row.n - n, row.total_ms - ms)
        self._since = now - _STILL_OPEN
        self._seen = {key: was for key, was in self._seen.items() if key[0] >= self._since}

    def _count(self, row: Rollup, n: int, ms: int) -> None:
        self._counts[row.queue, row.kind] += n
        if row.kind != "added":
            # How long it waited, or ran.
            times = self._times[row.queue, "wait" if row.kind == "started" else "run"]
            times.buckets[row.bucket] += n
            times.total_ms[0] += ms

    def _grown(self) -> Iterable[Metric]:
        added = CounterMetricFamily("svcq_jobs_enqueued", "Jobs added.", labels=["queue"])
        started = CounterMetricFamily("svcq_runs_started", "Runs begun.", labels=["queue"])
        ended = CounterMetricFamily("svcq_runs_ended", "Runs ended.", labels=["queue", "how"])
        for (queue, kind), n in sorted(self._counts.items()):
            if kind in _ENDS:
                ended.add_metric([queue, kind], n)
            else:
                (added if kind == "added" else started).add_metric([queue], n)
        wait = HistogramMetricFamily(
            "svcq_job_wait_seconds", "From when a job could start to when it did.",
            labels=["queue"],
        )  # fmt: skip
        run = HistogramMetricFamily("svcq_job_run_seconds", "How long runs took.", labels=["queue"])
        for (queue, what), times in sorted(self._times.items()):
            (wait if what == "wait" else run).add_metric(
                [queue], list(times.cumulative()), times.total_ms[0] / 1000
            )
        return added, started, ended, wait, run


class _Collected:
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _standing(client: Client) -> Iterator[Metric]:
    """How things are now."""
    depth = GaugeMetricFamily("svcq_jobs", "Jobs by state.", labels=["queue", "state"])
    oldest = GaugeMetricFamily(
        "svcq_oldest_pending_seconds",
        "For how long the longest waiting of the first in line has been ready.",
        labels=["queue"],
    )
    for queue in client.stats(minutes=1):
        for state, n in queue.counts.items():
            depth.add_metric([queue.queue, state], n)
        oldest.add_metric([queue.queue], queue.oldest or 0)
    yield from (depth, oldest)
    workers = client.workers()
    living = GaugeMetricFamily("svcq_workers", "Workers by state.", labels=["state"])
    for state in ("running", "draining", "stopping"):
        living.add_metric([state], sum(worker.state == state for worker in workers))
    yield living
    yield _gauge(
        "svcq_slots", "Jobs that all workers can run at once.", sum(w.slots for w in workers)
    )
    yield _gauge("svcq_slots_busy", "Jobs that run.", sum(worker.running for worker in workers))
    yield _gauge("svcq_clock_lag_seconds", "How late the clock is.", _clock_lag(client))
    yield _gauge("svcq_store_bytes", "How much of the disk the store takes.", client.store.size())
    info = GaugeMetricFamily("svcq_info", "The program.", labels=["version"])
    info.add_metric([__version__], 1)
    yield info


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=value)


def _clock_lag(client: Client) -> float:
    """For how long the schedule that is due longest has been."""
    due = [schedule.due_ms for schedule in client.store.timetable.due(1)]
    return max(0.0, (now_ms() - due[0]) / 1000) if due and due[0] is not None else 0.0
