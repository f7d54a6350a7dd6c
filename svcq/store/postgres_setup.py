"""A store on PostgreSQL: its schema, made whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from secrets import token_hex

from svcq import host
from svcq.config import Config
from svcq.errors import NotAStore, NotPermitted
from svcq.store.engine import Transaction
from svcq.store.moving import TABLES, check_unused
from svcq.store.postgres import PostgresEngine, PostgresTransaction
from svcq.store.postgres_connections import SCHEMA
from svcq.store.versions import migrate, newest, schema_folder


def engine_of(config: Config, clock: Callable[[], int] | None = None) -> PostgresEngine:
    """Whether or not there is a store."""
    # Bells are of this machine: beside what else the home has, since the store is elsewhere.
    bells = os.path.join(config.directory, "bells")
    return PostgresEngine(config.store, bells, busy_wait_ms=config.busy_wait, clock=clock)


def open_or_make(config: Config, clock: Callable[[], int] | None = None) -> PostgresEngine:
    engine = engine_of(config, clock)
    try:
        host.private_directory(config.home)
        with engine.read() as tx:
            there = holds_store(tx)
        if not there:
            _make(engine)
    except BaseException:
        engine.close()
        raise
    return engine


def holds_store(tx: PostgresTransaction) -> bool:
    """Whether there is a store; where its schema holds something else, that is refused."""
    row = tx.row("schema_state", schema=SCHEMA)
    assert row is not None
    store, tables = row
    if not store and tables:
        raise NotAStore(
            f"The schema {SCHEMA} of this database holds {tables} tables that are no store of "
            "svcq: use another database."
        )
    return bool(store)


def _make(engine: PostgresEngine) -> None:
    with _may_be_made(engine), engine.write(durable=True) as tx:
        if not holds_store(tx):  # someone may have been faster
            _create(tx)


def fill(config: Config, write: Callable[[Transaction], None], origin: str) -> None:
    """What is to be in a store that nobody has used yet, in one transaction with the store."""
    with (
        closing(engine_of(config)) as engine,
        _may_be_made(engine),
        engine.write(durable=True) as tx,
    ):
        engine.settle(tx)
        if not holds_store(tx):
            _create(tx)
        check_unused(tx, newest(schema_folder(engine.name)), engine.where, origin)
        write(tx)
        tx.rows("beyond_ids")
        # What has just been filled has no statistics, and the first claim would read all of it.
        tx.script("; ".join(f"ANALYZE {table.name}" for table in TABLES))


def _create(tx: PostgresTransaction) -> None:
    tx.script(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    migrate(tx, schema_folder("postgres"), fresh=True)
    tx.run("set_meta", key="store_id", value=token_hex(8))


@contextmanager
def _may_be_made(engine: PostgresEngine) -> Iterator[None]:
    try:
        yield
    except NotPermitted as error:
        with engine.read() as tx:
            if holds_store(tx):
                raise
        raise NotPermitted(
            f"There is no store in {engine.where} yet, and its user may not make one: let the "
            "owner of the database run svcq once, or GRANT CREATE ON DATABASE to that user."
        ) from error
