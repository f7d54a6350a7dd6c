"""Looks past the store's own verbs, at its tables, and what a hand might have written there."""

from __future__ import annotations

from typing import Any

from svcq.store import Store
from svcq.store.sqlite import SqliteEngine

COUNTS = (
    "SELECT queue, state, task, CAST(sum(n) AS BIGINT) FROM counts "
    "GROUP BY 1, 2, 3 HAVING sum(n) <> 0"
)
"""The counters: on PostgreSQL, those who write at once have rows of their own."""


def look(store: Store, sql: str) -> list[Any]:
    with store.engine.read() as tx:
        return tx.cursor.execute(sql).fetchall()  # type: ignore[attr-defined]


def write(store: Store, sql: str, values: tuple[Any, ...] = ()) -> None:
    """`?` stands for a value."""
    if not isinstance(store.engine, SqliteEngine):
        for n in range(1, len(values) + 1):
            sql = sql.replace("?", f"${n}", 1)
    with store.engine.write(durable=False) as tx:
        tx.cursor.execute(sql, values)  # type: ignore[attr-defined]


def empty(store: Store) -> None:
    """Let the next store on the same database be a new one; a file goes with its folder."""
    if not isinstance(store.engine, SqliteEngine):
        write(store, "DROP SCHEMA svcq CASCADE")
