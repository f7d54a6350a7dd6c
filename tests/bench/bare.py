"""What SQLite itself costs: plain loops over the store's own tables, indexes and statements.

They write the rows that the store writes, with its pragmas and in as many transactions, and do
nothing else: no checks, no limits, no objects.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from svcq.store.engine import load_queries
from tests.bench.places import args_text, work

OWNER = "someone"
MINUTE_MS = 60_000


class Bare:
    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None, cached_statements=256)
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._cursor = self._connection.cursor()
        self._sql = {name: query.sql for name, query in load_queries("sqlite").complete().items()}
        self._synchronous("FULL")

    def close(self) -> None:
        self._connection.close()

    def enqueue_one(self, lane: int, n: int) -> None:
        execute, sql = self._cursor.execute, self._sql
        now = _now()
        execute("BEGIN IMMEDIATE")
        ((job,),) = execute(sql["take_ids"], (1,)).fetchall()
        execute(sql["add_jobs"], job_row(job, lane, now))
        execute(sql["add_specs"], spec_row(job, n, now))
        execute(sql["add_changes"], (job, "pending", now))
        execute(sql["add_counts"], ("default", "pending", work.name, 1))
        execute(sql["add_minutes"], (now // MINUTE_MS, "default", "added", 0, 1, 0))
        execute("COMMIT")

    def enqueue_many(
        self, jobs: Sequence[Any], specs: Sequence[Any], changes: Sequence[Any]
    ) -> None:
        execute, many, sql = self._cursor.execute, self._cursor.executemany, self._sql
        now = _now()
        execute("BEGIN IMMEDIATE")
        execute(sql["take_ids"], (len(jobs),)).fetchall()
        many(sql["add_jobs"], jobs)
        many(sql["add_specs"], specs)
        many(sql["add_changes"], changes)
        execute(sql["add_counts"], ("default", "pending", work.name, len(jobs)))
        execute(sql["add_minutes"], (now // MINUTE_MS, "default", "added", 0, len(jobs), 0))
        execute("COMMIT")

    def rows_for(self, lane: int, n: int) -> tuple[list[Any], list[Any], list[Any]]:
        """The next `n` jobs as enqueue_many takes them."""
        now = _now()
        query = "SELECT value FROM meta WHERE key = 'last_job'"
        last = self._cursor.execute(query).fetchone()[0]
        ids = range(last + 1, last + 1 + n)
        return (
            [job_row(job, lane, now) for job in ids],
            [spec_row(job, job, now) for job in ids],
            [(job, "pending", now) for job in ids],
        )

    def claim(self, lane: int, worker: int, n: int) -> list[tuple[int, int]]:
        """(job, run) of the first `n` of a lane, which are processing now."""
        execute, sql = self._cursor.execute, self._sql
        self._synchronous("NORMAL")
        now = _now()
        execute("BEGIN IMMEDIATE")
        rows = execute(sql["first_in_lane"], (lane, n)).fetchall()
        ids = [row[1] for row in rows]
        execute(sql["start_runs"], (worker, now, json.dumps(ids)))
        self._note(ids, "pending", "processing", "started", now)
        execute("COMMIT")
        return [(row[1], row[2]) for row in rows]

    def finish(self, worker: int, runs: list[tuple[int, int]]) -> None:
        execute = self._cursor.execute
        self._synchronous("FULL")
        now = _now()
        execute("BEGIN IMMEDIATE")
        ids = json.dumps([job for job, _ in runs])
        execute(self._sql["complete_runs"], (now, ids, worker, runs[0][1])).fetchall()
        self._note([job for job, _ in runs], "processing", "completed", "completed", now)
        execute("COMMIT")

    def lane(self) -> int:
        """The one lane of the queue `default`."""
        return int(self._cursor.execute("SELECT id FROM lanes").fetchone()[0])

    def _note(self, ids: list[int], old: str, new: str, kind: str, now: int) -> None:
        execute, many, sql = self._cursor.execute, self._cursor.executemany, self._sql
        many(sql["add_changes"], [(job, new, now) for job in ids])
        moved = [("default", old, work.name, -len(ids)), ("default", new, work.name, len(ids))]
        many(sql["add_counts"], moved)
        execute(sql["add_minutes"], (now // MINUTE_MS, "default", kind, 0, len(ids), 0))

    def _synchronous(self, level: str) -> None:
        self._cursor.execute(f"PRAGMA synchronous = {level}")


def job_row(job: int, lane: int, now: int) -> tuple[Any, ...]:
    return (job, lane, "pending", 0, 0, 0, now, None, now, None, None)


def spec_row(job: int, n: int, now: int) -> tuple[Any, ...]:
    return (
        job, "default", work.name, None, args_text(n), "{}", now, None, None, OWNER, None, None,
        "", "", "", None, None, None,
    )  # fmt: skip


def _now() -> int:
    return time.time_ns() // 1_000_000
