"""Claiming, adding and counting in stores of growing size: the cost must not grow with them."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from svcq.jobs import completed, failed, interrupted
from svcq.store import Claimer, Report, Store, WorkerInfo, open_store
from tests.bench.figures import Figure, Scale
from tests.bench.places import config_in, new_job

SEED = 100  # jobs of a shape that the store itself makes; the rest are copies of them
FREE = 120  # jobs that can be claimed beside them
LIMIT = 1.3

Curve = dict[tuple[str, str], dict[int, float]]  # (verb, shape): {rows: microseconds}


def flat(scale: Scale, folder: Path, curve: Curve | None = None) -> Iterator[Figure]:
    """`curve` is filled with what was measured, for a picture."""
    curve = {} if curve is None else curve
    for shape, fill in SHAPES.items():
        costs = measure(shape, fill, scale, folder)
        for verb in VERBS:
            points = {rows: costs[rows, verb] for rows in scale.rows}
            curve[verb, shape] = points
            few, *_, many = points
            yield Figure(
                "flat",
                f"{verb}, {shape}",
                f"{points[many]:,.0f} us at {many:,} rows",
                f"{points[few]:,.0f} us at {few:,}",
                points[many] / points[few],
                at_most=LIMIT,
            )


def measure(
    shape: str, fill: Callable[[Store, int], str], scale: Scale, folder: Path
) -> dict[tuple[int, str], float]:
    """The median microseconds of each verb at each size, the sizes taking turns."""
    benches = {rows: make_bench(shape, fill, rows, folder) for rows in scale.rows}
    times: dict[tuple[int, str], list[float]] = {
        (rows, verb): [] for rows in scale.rows for verb in VERBS
    }
    dice = random.Random(1)
    for _ in range(scale.looks):
        for verb, run in VERBS.items():
            # In any order: the first after another verb finds the processor's caches cold.
            for rows in dice.sample(scale.rows, len(scale.rows)):
                times[rows, verb].append(run(benches[rows]))
    for bench in benches.values():
        bench.store.close()
        for file in bench.folder.iterdir():
            file.unlink()
    return {point: median(values) * 1e6 for point, values in times.items()}


class Bench(NamedTuple):
    store: Store
    folder: Path
    queue: str  # where the jobs are that can be claimed
    claimer: Claimer


def make_bench(shape: str, fill: Callable[[Store, int], str], rows: int, folder: Path) -> Bench:
    config = config_in(folder, f"{shape}-{rows}".replace(" ", "-"))
    with closing(open_store(config)) as store:
        worker = store.register(WorkerInfo("bench", 1))
        queue = fill(store, SEED)
    multiply(Path(config.store), rows // SEED)
    store = open_store(config)
    # They are claimed and given back again and again, so that their number stays.
    store.enqueue([new_job(queue, policy='{"max_interruptions":1000000}')] * FREE)
    return Bench(store, config.home, queue, Claimer(worker))


def fill_mixed(store: Store, n: int) -> str:
    """A fifth each: completed, retrying, pending, scheduled, held."""
    part = n // 5
    worker = store.workers()[0].id
    store.enqueue([new_job(policy='{"max_attempts":1000}')] * 3 * part)
    for outcome in (completed(), failed("no", delay_ms=10**9)):
        claims = store.claim(Claimer(worker), part)
        store.finish([Report.of(one, outcome) for one in claims])
    store.enqueue([new_job(delay_ms=10**9)] * part + [new_job(held=True)] * part)
    return "default"


def fill_saturated(store: Store, n: int) -> str:
    store.enqueue([new_job(key="one")] * n)
    store.claim(Claimer(store.workers()[0].id), 1)
    return "free"


def fill_paused(store: Store, n: int) -> str:
    store.enqueue([new_job()] * n)
    store.pause("default")
    return "free"


def fill_conditional(store: Store, n: int) -> str:
    store.enqueue([new_job(condition="ac-power")] * n)
    return "free"


SHAPES: dict[str, Callable[[Store, int], str]] = {
    "mixed states": fill_mixed,
    "behind a saturated key": fill_saturated,
    "in a paused queue": fill_paused,
    "behind a condition": fill_conditional,
}


def claim_times(n: int) -> Callable[[Bench], float]:
    def run(bench: Bench) -> float:
        start = perf_counter()
        claims = bench.store.claim(bench.claimer, n)
        took = perf_counter() - start
        assert len(claims) == n
        bench.store.finish([Report.of(c, interrupted()) for c in claims])
        return took

    return run


def enqueue_time(bench: Bench) -> float:
    # Last in line: what is claimed above stays the same.
    job = [new_job(bench.queue, priority=-1)]
    start = perf_counter()
    bench.store.enqueue(job)
    return perf_counter() - start


def counts_time(bench: Bench) -> float:
    start = perf_counter()
    bench.store.counts()
    return perf_counter() - start


VERBS: dict[str, Callable[[Bench], float]] = {
    "claim 1": claim_times(1),
    "claim 100": claim_times(100),
    "enqueue": enqueue_time,
    "counts": counts_time,
}


def multiply(file: Path, times: int) -> None:
    """Make each job of the store into so many, counters included: faster than adding them."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        execute = connection.execute
        execute("PRAGMA synchronous = OFF")
        execute("BEGIN IMMEDIATE")
        if times > 1:
            copy_rows(connection, times - 1)
            execute(f"UPDATE counts SET n = n * {times} WHERE state <> 'processing'")
            execute(f"UPDATE lanes SET live = (live - 1) * {times} + 1 WHERE key <> ''")
            execute(f"UPDATE meta SET value = value * {times} WHERE key = 'last_job'")
        execute("COMMIT")
        execute("PRAGMA wal_checkpoint(TRUNCATE)")
        found = execute("SELECT count(*) FROM jobs").fetchone()
        counted = execute("SELECT sum(n) FROM counts").fetchone()
        assert found == counted, f"{found} jobs, of which {counted} are counted"


def copy_rows(connection: sqlite3.Connection, copies: int) -> None:
    """Copy every job that does not run; a later copy was ready, is due and ended later."""
    (last,) = connection.execute("SELECT value FROM meta WHERE key = 'last_job'").fetchone()
    later = {"rank", "due_at", "finished_at", "ready_at", "created_at"}
    for table, own in (("specs", "id"), ("runs", "job"), ("changes", "job"), ("jobs", "id")):
        info = connection.execute(f"PRAGMA table_info({table})")
        columns = [row[1] for row in info if row[1] != "seq"]
        shift = {own: f" + n * {last}", **dict.fromkeys(later, " + n")}
        values = [f"old.{column}{shift.get(column, '')}" for column in columns]
        connection.execute(
            "WITH RECURSIVE copies (n) AS "
            f"(VALUES (1) UNION ALL SELECT n + 1 FROM copies WHERE n < {copies}) "
            f"INSERT INTO {table} ({', '.join(columns)}) "
            f"SELECT {', '.join(values)} FROM copies CROSS JOIN {table} AS old "
            f"WHERE old.{own} NOT IN (SELECT id FROM jobs WHERE state = 'processing')"
        )
