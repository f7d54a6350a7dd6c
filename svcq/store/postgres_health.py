"""How a server is that holds a store, for a doctor's look: each finding a line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

from svcq.config import Config
from svcq.finding import Finding, said_by
from svcq.store.engine import Transaction
from svcq.store.postgres import PostgresEngine
from svcq.store.postgres_connections import SCHEMA
from svcq.store.postgres_setup import engine_of, holds_store
from svcq.times import MINUTE, format_duration

SLOW = 100.0  # milliseconds, there and back
FEW_CONNECTIONS = 10
MUCH_TO_CLEAN = 1_000_000  # rows
LONG_OPEN = 10 * MINUTE


def is_there(config: Config) -> bool:
    """Whether the database holds a store; none is made."""
    with closing(engine_of(config)) as engine, engine.read() as tx:
        return holds_store(tx)


def examine_server(config: Config) -> Iterator[Finding]:
    with closing(engine_of(config)) as engine:
        yield from said_by("server", lambda: _server(engine))
        with engine.read() as tx:
            yield from said_by("rights", lambda: _rights(tx))
            yield from said_by("settings", lambda: _settings(tx))
            yield from said_by("connections", lambda: _connections(tx))
            yield from said_by("transactions", lambda: _transactions(tx))
            yield from said_by("vacuum", lambda: _vacuum(tx))


def _server(engine: PostgresEngine) -> Finding:
    with engine.read() as tx:
        row = tx.row("server")
    began = time.perf_counter()
    with engine.read() as tx:
        tx.row("server")
    took = (time.perf_counter() - began) * 1000 / 2  # it begins, and it ends
    assert row is not None
    says = f"{engine.where} is PostgreSQL {row[0].split()[0]}, {took:.1f} ms away"
    if row[1]:
        return Finding("server", False, f"{says}; it is a standby, which nobody can write",
                       "use the address of the primary")  # fmt: skip
    if took > SLOW:
        return Finding("server", False, says, "a claim asks some ten times: let workers be nearer")
    return Finding("server", True, says)


def _rights(tx: Transaction) -> Finding:
    row = tx.row("rights", schema=SCHEMA)
    assert row is not None
    user, may_make, there, looks, adds, works, steers, owns = row
    if not there:
        if may_make:
            return Finding("rights", True, f"{user} may make the store, with the first job")
        says = f"there is no store yet, and {user} may not make one"
        remedy = f"GRANT CREATE ON DATABASE ... TO {user}, or let its owner run svcq once"
        return Finding("rights", False, says, remedy)
    if owns:
        return Finding("rights", True, f"{user} owns the store")
    may = [word for word, right in (("look", looks), ("add jobs", adds), ("run them", works),
                                    ("change settings", steers)) if right]  # fmt: skip
    if not looks:
        return Finding("rights", False, f"{user} may not look at the store", "see docs/postgres.md")
    return Finding("rights", True, f"{user} may {', '.join(may)}")


def _settings(tx: Transaction) -> Finding:
    row = tx.row("server")
    assert row is not None
    _, _, fsync, pages, autovacuum, commit = row
    for name, value, why in (
        ("fsync", fsync, "a power cut may damage the store"),
        ("full_page_writes", pages, "a power cut may damage the store"),
        ("autovacuum", autovacuum, "the store only grows, and slows down"),
    ):
        if value == "off":
            return Finding("settings", False, f"{name} is off, so that {why}",
                           f"set {name} = on in its postgresql.conf")  # fmt: skip
    if commit == "off":
        says = "synchronous_commit is off there; svcq sets it on for what must not be lost"
        return Finding("settings", True, says)
    return Finding("settings", True, "what is told as done is on the server's disk")


def _connections(tx: Transaction) -> Finding:
    row = tx.row("connections_left")
    assert row is not None
    left, ours = row
    says = f"{ours} of svcq, {left} left"
    if left < FEW_CONNECTIONS:
        return Finding("connections", False, says,
                       "raise max_connections there, or run fewer workers")  # fmt: skip
    return Finding("connections", True, says)


def _transactions(tx: Transaction) -> Finding:
    row = tx.row("oldest_transaction")
    if row is None or row[3] < LONG_OPEN:
        return Finding("transactions", True, "none is open for long")
    pid, program, database, age = row
    who = f"{program} (pid {pid} of the server, in {database})"
    says = f"{who} has one open for {format_duration(age)}"
    return Finding("transactions", False, f"{says}; meanwhile nothing can be cleaned up",
                   f"end it there, or with SELECT pg_terminate_backend({pid})")  # fmt: skip


def _vacuum(tx: Transaction) -> Finding:
    row = tx.row("vacuumed", schema=SCHEMA)
    if row is None:
        return Finding("vacuum", True, "there is nothing to clean up")
    table, dead, live, ago = row
    when = "never" if ago is None else f"{format_duration(max(ago, 0))} ago"
    says = f"{table} has {dead:,} rows to clean up; that was last done {when}"
    if dead > max(MUCH_TO_CLEAN, live):
        return Finding("vacuum", False, says, f"VACUUM {SCHEMA}.{table}, and see what holds it up")
    return Finding("vacuum", True, says)
