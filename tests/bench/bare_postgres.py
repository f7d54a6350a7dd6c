"""What PostgreSQL itself costs: plain loops over psycopg, one statement after the other.

`Same` writes the rows that the store writes, with its statements; `One` has a single table, as the
simplest of queues would.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import psycopg

from svcq.store.engine import load_queries
from svcq.times import now_ms
from tests.bench.bare import MINUTE_MS, OWNER
from tests.bench.places import args_text, work

_COPY_JOBS = "COPY jobs (id, lane, state, priority, ready_at, rank) FROM STDIN"
_COPY_SPECS = "COPY specs (id, queue, task, args, options, created_at, owner) FROM STDIN"
_COPY_CHANGES = "COPY changes (job, kind, at) FROM STDIN"


class Same:
    def __init__(self, address: str) -> None:
        self._connection: psycopg.Connection[Any] = psycopg.connect(address, autocommit=True)
        self._connection.prepare_threshold = 2
        self._connection.execute("SET search_path = svcq")
        # Its plans, too.
        self._connection.execute("SET enable_seqscan = off")
        self._cursor = psycopg.RawCursor(self._connection)
        self._sql = {name: query.sql for name, query in load_queries("postgres").complete().items()}

    def close(self) -> None:
        self._connection.close()

    def lane(self) -> int:
        """The one lane of the queue `default`."""
        row = self._cursor.execute("SELECT id FROM lanes").fetchone()
        assert row is not None
        return int(row[0])

    def enqueue_one(self, lane: int, n: int) -> None:
        execute, sql = self._cursor.execute, self._sql
        now = now_ms()
        execute("BEGIN")
        ((job,),) = execute(sql["take_ids"], (1,)).fetchall()
        execute(sql["add_call"], (job, lane, 0, now, now))
        execute(sql["add_call_spec"], (job, "default", work.name, args_text(n), "{}", now, OWNER))
        execute(sql["add_changes"], (job, "pending", now))
        self._count(("default", "pending", work.name, 1))
        execute(sql["add_minutes"], (now // MINUTE_MS, "default", "added", 0, 1, 0))
        execute("COMMIT")

    def enqueue_many(self, lane: int, n: int) -> None:
        execute, sql = self._cursor.execute, self._sql
        now = now_ms()
        execute("BEGIN")
        ((last,),) = execute(sql["take_ids"], (n,)).fetchall()
        ids = range(last - n + 1, last + 1)
        self._copy(_COPY_JOBS, [(job, lane, "pending", 0, now, now) for job in ids])
        self._copy(_COPY_SPECS, [
            (job, "default", work.name, args_text(job), "{}", now, OWNER) for job in ids
        ])  # fmt: skip
        self._copy(_COPY_CHANGES, [(job, "pending", now) for job in ids])
        self._count(("default", "pending", work.name, n))
        execute(sql["add_minutes"], (now // MINUTE_MS, "default", "added", 0, n, 0))
        execute("COMMIT")

    def claim(self, lane: int, worker: int, n: int) -> list[tuple[int, int]]:
        """(job, run) of the first `n` of a lane, which are processing now."""
        execute, sql = self._cursor.execute, self._sql
        now = now_ms()
        execute("BEGIN")
        execute("SET LOCAL synchronous_commit = off")
        rows = execute(sql["first_in_lane"], (lane, n)).fetchall()
        ids = [row[1] for row in rows]
        execute(sql["start_runs"], (worker, now, json.dumps(ids)))
        self._note(ids, "pending", "processing", "started", now)
        execute("COMMIT")
        return [(row[1], row[2]) for row in rows]

    def finish(self, worker: int, runs: list[tuple[int, int]]) -> None:
        execute = self._cursor.execute
        now = now_ms()
        execute("BEGIN")
        ids = json.dumps([job for job, _ in runs])
        execute(self._sql["complete_runs"], (now, ids, worker, runs[0][1])).fetchall()
        self._note([job for job, _ in runs], "processing", "completed", "completed", now)
        execute("COMMIT")

    def _note(self, ids: list[int], old: str, new: str, kind: str, now: int) -> None:
        self._copy(_COPY_CHANGES, [(job, new, now) for job in ids])
        self._count(("default", old, work.name, -len(ids)), ("default", new, work.name, len(ids)))
        row = (now // MINUTE_MS, "default", kind, 0, len(ids), 0)
        self._cursor.execute(self._sql["add_minutes"], row)

    def _count(self, *rows: Sequence[Any]) -> None:
        for row in rows:
            self._cursor.execute(self._sql["add_counts"], row)

    def _copy(self, copy: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._cursor.copy(copy) as into:
            for row in rows:
                into.write_row(row)


class One:
    """A table of jobs and nothing beside."""

    def __init__(self, address: str) -> None:
        self._connection: psycopg.Connection[Any] = psycopg.connect(address, autocommit=True)
        self._connection.prepare_threshold = 2
        self._cursor = psycopg.RawCursor(self._connection)
        self._cursor.execute(
            "CREATE TABLE IF NOT EXISTS bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
            " state text NOT NULL DEFAULT 'pending', task text NOT NULL, args text NOT NULL)"
        )
        self._cursor.execute(
            "CREATE INDEX IF NOT EXISTS bare_pending ON bare (id) WHERE state = 'pending'"
        )

    def close(self) -> None:
        self._connection.close()

    def insert(self, n: int) -> None:
        sql = "INSERT INTO bare (task, args) VALUES ($1::text, $2::text)"
        self._cursor.execute(sql, (work.name, args_text(n)))

    def fill(self, n: int) -> None:
        with self._cursor.copy("COPY bare (task, args) FROM STDIN") as into:
            for i in range(n):
                into.write_row((work.name, args_text(i)))

    def drain(self, batch: int) -> int:
        """Claim and finish until there is nothing left; how many there were."""
        execute, done = self._cursor.execute, 0
        while ids := [row[0] for row in execute(_TAKE, (batch,)).fetchall()]:
            execute("UPDATE bare SET state = 'completed' WHERE id = ANY ($1::bigint[])", (ids,))
            done += len(ids)
        return done


_TAKE = """
UPDATE bare SET state = 'processing'
WHERE id = ANY (ARRAY(SELECT id FROM bare WHERE state = 'pending' ORDER BY id LIMIT $1::int
                      FOR UPDATE SKIP LOCKED))
RETURNING id, task, args
"""
