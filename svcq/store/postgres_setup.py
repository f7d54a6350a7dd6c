"""A store on PostgreSQL: its schema, made whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from secrets import token_hex

from svcq import host
from svcq.config import Config
from svcq.errors import NotAStore, NotPermitted
from svcq.store.postgres import PostgresEngine, PostgresTransaction
from svcq.store.postgres_connections import SCHEMA
from svcq.store.versions import migrate, schema_folder


def open_or_make(config: Config, clock: Callable[[], int] | None = None) -> PostgresEngine:
    # Bells are of this machine: beside what else the home has, since the store is elsewhere.
    bells = os.path.join(config.directory, "bells")
    engine = PostgresEngine(config.store, bells, busy_wait_ms=config.busy_wait, clock=clock)
    try:
        host.private_directory(config.home)
        with engine.read() as tx:
            there = _is_there(tx)
        if not there:
            _make(engine)
    except BaseException:
        engine.close()
        raise
    return engine


def _is_there(tx: PostgresTransaction) -> bool:
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
    try:
        with engine.write(durable=True) as tx:
            if _is_there(tx):
                return  # someone was faster
            tx.script(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            migrate(tx, schema_folder(engine.name), fresh=True)
            tx.run("set_meta", key="store_id", value=token_hex(8))
    except NotPermitted as error:
        raise NotPermitted(
            f"There is no store in {engine.where} yet, and its user may not make one: let the "
            "owner of the database run svcq once, or GRANT CREATE ON DATABASE to that user."
        ) from error
