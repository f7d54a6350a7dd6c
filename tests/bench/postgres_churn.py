"""What a claim costs on PostgreSQL in a large store, and in one that much has gone through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from statistics import median
from time import perf_counter

import psycopg

from svcq.jobs import interrupted
from svcq.store import Claimer, Report, Store, WorkerInfo, open_store
from tests.bench.drain import BATCH, DONE
from tests.bench.figures import Figure, Scale
from tests.bench.places import new_job
from tests.bench.postgres import database, store_in

_GIVEN_BACK = '{"max_interruptions":1000000}'
_WAITING = 1_000  # jobs that are in line while others churn
_ADDED = 1_000  # at once
_POINTS = 10  # of the curve
_LARGE = 1.5
_CHURN = 2.0


def pg_flat(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Many that have ended and many that wait, against a table of a few."""
    finished, pending = scale.finished, scale.finished // 10
    with database() as server:
        empty, full = server.database(), server.database()
        with (
            closing(open_store(store_in(folder, "empty", empty))) as small,
            closing(open_store(store_in(folder, "full", full))) as large,
        ):
            workers = {store: fill(store) for store in (small, large)}
            multiply(full, finished, pending)
            for n in (1, BATCH):
                times: dict[Store, list[float]] = {small: [], large: []}
                for _ in range(scale.looks):
                    for store, taken in times.items():
                        taken.append(claim_time(store, workers[store], n))
                few, many = (median(times[store]) * 1e6 for store in (small, large))
                yield Figure(
                    "pg_flat",
                    f"claim {n}: {finished:,} finished, {pending:,} pending",
                    f"{many:,.0f} us",
                    f"empty table {few:,.0f} us",
                    many / few,
                    at_most=_LARGE,
                )


def pg_churn(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Nobody vacuums but the server itself; then the same while a transaction stays open."""
    yield from churn_figures("nobody tends it", scale.churned, folder)
    yield from churn_figures("a transaction open", scale.churned_beside, folder, held_open=True)


def churn_figures(
    what: str, jobs: int, folder: Path, *, held_open: bool = False
) -> Iterator[Figure]:
    name = what.replace(" ", "-")
    with database() as server:
        address = server.database()
        with closing(open_store(store_in(folder, name, address))) as store:
            worker = store.register(WorkerInfo("bench", 1))
            store.enqueue([new_job()] * _WAITING)
            churn(store, worker, _ADDED)  # the first plans are made
            with staying_open(address) if held_open else nullcontext():
                curve = [
                    churn(store, worker, max(jobs // _POINTS // _ADDED, 1) * _ADDED)
                    for _ in range(_POINTS)
                ]
    print("   ", what, "- ms for 100 claimed and finished:", *(f"{1000 * at:.1f}" for at in curve))
    yield Figure(
        "pg_churn",
        f"{jobs:,} jobs, {what}",
        f"last tenth {1000 * curve[-1]:.1f} ms a batch",
        f"first {1000 * curve[0]:.1f} ms",
        curve[-1] / curve[0],
        at_most=_CHURN,
    )


def churn(store: Store, worker: int, jobs: int) -> float:
    """As many come as go; the median seconds it takes to claim and finish a batch."""
    times = []
    for _ in range(jobs // _ADDED):
        store.enqueue([new_job()] * _ADDED)
        for _ in range(_ADDED // BATCH):
            start = perf_counter()
            claims = store.claim(Claimer(worker), BATCH)
            store.finish([Report.of(one, DONE) for one in claims])
            times.append(perf_counter() - start)
            assert len(claims) == BATCH
    return median(times)


@contextmanager
def staying_open(address: str) -> Iterator[None]:
    """Someone looks at the store, and does not end it."""
    with psycopg.connect(address) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM svcq.jobs")
        yield


def fill(store: Store) -> int:
    """Jobs that are claimed and given back again and again, and one that has ended; the worker."""
    worker = store.register(WorkerInfo("bench", 1))
    store.enqueue([new_job()])
    store.finish([Report.of(one, DONE) for one in store.claim(Claimer(worker), 1)])
    store.enqueue([new_job(policy=_GIVEN_BACK)] * (BATCH + 20))
    return worker


def claim_time(store: Store, worker: int, n: int) -> float:
    start = perf_counter()
    claims = store.claim(Claimer(worker), n)
    took = perf_counter() - start
    assert len(claims) == n
    store.finish([Report.of(one, interrupted()) for one in claims])
    return took


def multiply(address: str, finished: int, pending: int) -> None:
    """Copies of the job that ended, and of one that waits, behind all others, counters included."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET search_path = svcq")
        for state, n, later in (("completed", finished, 0), ("pending", pending, 10**9)):
            connection.execute(_COPIES, {"state": state, "n": n, "later": later})


_COPIES = """
WITH one AS (
    SELECT jobs.*, specs.queue, specs.task, specs.args, specs.options, specs.created_at
    FROM jobs JOIN specs USING (id) WHERE jobs.state = %(state)s ORDER BY id DESC LIMIT 1
), ids (id) AS (
    SELECT last - %(n)s + i
    FROM (SELECT take_ids(%(n)s::bigint)) AS taken (last), generate_series(1, %(n)s) AS i
), copies AS (
    INSERT INTO jobs (id, lane, state, worker, run, ready_at, rank, started_at, finished_at)
    SELECT ids.id, lane, state, worker, run, ready_at, rank + %(later)s, started_at, finished_at
    FROM one, ids
), said AS (
    INSERT INTO specs (id, created_at, queue, task, args, options)
    SELECT ids.id, created_at, queue, task, args, options FROM one, ids
)
UPDATE counts SET n = n + %(n)s WHERE state = %(state)s
"""
