"""Adding jobs inside the caller's own transaction, on a connection of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import class_row, dict_row

from svcq.errors import InvalidInput, NotFound, StoreBusy, StoreError, StoreReadOnly, UniqueTaken
from svcq.store import Filter, Store
from svcq.store.engine import Engine
from tests.helpers import eventually
from tests.postgres import Server
from tests.store.conftest import Clock, Desk

Connect = Callable[..., Any]
ADD = "INSERT INTO orders VALUES (1)"


@pytest.fixture
def connect(desk: Desk) -> Connect:
    """Opens a connection of the caller's own to the store's database, with a table of theirs."""
    address = desk.store.config.store
    opened: type[Any] = psycopg.Connection if "://" in address else sqlite3.Connection
    open_it: Connect = psycopg.connect if opened is psycopg.Connection else sqlite3.connect
    with closing(open_it(address)) as made:
        made.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER)")
        made.execute("DELETE FROM orders")
        made.commit()
    return lambda **options: open_it(address, **options)


@pytest.fixture
def own(connect: Connect) -> Iterator[Any]:
    with closing(connect()) as own:
        yield own


def orders(connect: Connect) -> int:
    with closing(connect()) as own:
        return int(own.execute("SELECT count(*) FROM orders").fetchone()[0])


def pending(desk: Desk) -> int:
    return desk.store.counts()["pending"]


@pytest.mark.parametrize("first", [True, False], ids=["job first", "job last"])
def test_a_job_is_part_of_the_callers_transaction(
    desk: Desk, connect: Connect, own: Any, first: bool
) -> None:
    for end, expected in ((own.rollback, 0), (own.commit, 1)):
        if first:
            desk.store.enqueue([desk.new(name="n", tags=["t"])], own)
        own.execute(ADD)
        if not first:
            desk.store.enqueue([desk.new(name="n", tags=["t"])], own)
        assert pending(desk) == 0
        end()
        assert (orders(connect), pending(desk)) == (expected, expected)


def test_a_refused_job_leaves_the_callers_transaction_as_it_was(
    desk: Desk, connect: Connect, own: Any
) -> None:
    own.execute(ADD)
    with pytest.raises(NotFound):
        desk.store.enqueue([desk.new(), desk.new(after=99)], own)
    desk.store.enqueue([desk.new(name="n")], own)
    with pytest.raises(UniqueTaken):
        desk.store.enqueue([desk.new(name="n")], own)
    own.commit()
    assert (orders(connect), pending(desk)) == (1, 1)


def test_what_was_added_is_seen_inside(desk: Desk, own: Any) -> None:
    (added,) = desk.store.enqueue([desk.new(unique_key="k")], own)
    (again,) = desk.store.enqueue([desk.new(unique_key="k")], own)
    assert (again.id, again.created) == (added.id, False)
    assert desk.store.get(added.id, own).unique_key == "k"
    (child,) = desk.store.enqueue([desk.new(after=added.id)], own)
    own.commit()
    assert desk.get(child.id).after == (added.id,)


def test_jobs_in_bulk_are_part_of_it_too(desk: Desk, own: Any) -> None:
    for end, expected in ((own.rollback, 0), (own.commit, 100)):
        desk.store.enqueue([desk.new() for _ in range(100)], own)
        end()
        assert pending(desk) == expected


def test_rows_in_the_callers_form_do_not_disturb_us(desk: Desk, own: Any) -> None:
    parent = desk.add()
    rich = {"after": parent, "unique_key": "u", "env": {"A": "1"}, "concurrency_key": "k"}
    forms: list[Any] = [sqlite3.Row, lambda *_: None]
    if isinstance(own, psycopg.Connection):
        forms = [dict_row, class_row(Clock)]
    for n, form in enumerate(forms):
        own.row_factory = form
        desk.store.enqueue([desk.new(**{**rich, "unique_key": f"u{n}"})], own)  # type: ignore[arg-type]
    own.commit()
    assert desk.store.counts()["blocked"] == len(forms)


def test_a_closed_connection_is_a_sentence(desk: Desk, own: Any) -> None:
    own.close()
    with pytest.raises(StoreError, match=r"closed"):
        desk.store.enqueue([desk.new()], own)


@pytest.mark.parametrize("kind", ["number", "sqlite3", "psycopg"])
def test_another_kind_of_connection_is_refused(desk: Desk, kind: str, postgres: Server) -> None:
    """Whichever the store is not on."""
    of_ours = "psycopg" if "://" in desk.store.config.store else "sqlite3"
    if kind == of_ours:
        kind = "number"
    lent: Any = 5
    if kind == "sqlite3":
        lent = sqlite3.connect(":memory:")
    if kind == "psycopg":
        lent = psycopg.connect(postgres.url())
    with pytest.raises(InvalidInput, match=f"give a .*{of_ours}"):
        desk.store.enqueue([desk.new()], lent)
    if kind != "number":
        lent.close()


# SQLite alone


def only(engine: str) -> Any:
    return pytest.mark.parametrize("config", [engine], indirect=True)


@only("sqlite")
@pytest.mark.parametrize("level", ["DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_every_way_to_begin(desk: Desk, connect: Connect, level: str) -> None:
    with closing(connect(isolation_level=level)) as own:
        for end, expected in ((own.rollback, 0), (own.commit, 1)):
            desk.store.enqueue([desk.new()], own)
            assert pending(desk) == 0
            end()
            assert pending(desk) == expected


@only("sqlite")
def test_a_connection_without_transactions_may_begin_its_own(desk: Desk, connect: Connect) -> None:
    with closing(connect(isolation_level=None)) as own:
        own.execute("BEGIN")
        desk.store.enqueue([desk.new()], own)
        own.execute("ROLLBACK")
        assert pending(desk) == 0
        desk.store.enqueue([desk.new()], own)
        assert pending(desk) == 1


@only("sqlite")
def test_a_connection_to_another_file_is_refused(desk: Desk, tmp_path: Path) -> None:
    for path, named in ((":memory:", "a database in memory"), (tmp_path / "shop.db", "shop.db")):
        with closing(sqlite3.connect(path)) as own:
            with pytest.raises(InvalidInput, match=f"{named}.*open the store's own file"):
                desk.store.enqueue([desk.new()], own)
            assert not own.in_transaction


# PostgreSQL alone


@only("postgres")
def test_a_connection_that_commits_by_itself(desk: Desk, connect: Connect) -> None:
    with closing(connect(autocommit=True)) as own:
        desk.store.enqueue([desk.new()], own)
        assert pending(desk) == 1
        with own.transaction() as mine:
            desk.store.enqueue([desk.new()], own)
            raise psycopg.Rollback(mine)
        assert pending(desk) == 1
        with own.transaction():
            desk.store.enqueue([desk.new()], own)
            assert pending(desk) == 1
        assert pending(desk) == 2


@only("postgres")
def test_a_savepoint_takes_its_jobs_along(desk: Desk, own: Any) -> None:
    desk.store.enqueue([desk.new()], own)
    with own.transaction() as inner:
        desk.store.enqueue([desk.new(name="gone")], own)
        raise psycopg.Rollback(inner)
    with own.transaction():
        desk.store.enqueue([desk.new(name="there")], own)
    own.commit()
    assert sorted(job.name or "" for job in desk.store.list(Filter())) == ["", "there"]


@only("postgres")
def test_the_settings_of_the_connection_stay(desk: Desk, connect: Connect) -> None:
    with closing(connect(options="-c search_path=public -c lock_timeout=7s")) as own:

        def settings() -> list[Any]:
            names = ("search_path", "lock_timeout", "synchronous_commit", "statement_timeout")
            return [own.execute(f"SHOW {name}").fetchone()[0] for name in names]

        own.execute("SET LOCAL statement_timeout = '77s'")
        own.execute("CREATE TEMP TABLE jobs (id text)")  # not ours
        before = settings()
        desk.store.enqueue([desk.new(name="n")], own)
        assert settings() == before
        with pytest.raises(UniqueTaken):
            desk.store.enqueue([desk.new(name="n")], own)
        assert settings() == before
        assert own.execute("SELECT count(*) FROM jobs").fetchone()[0] == 0
        own.commit()
    assert pending(desk) == 1


@only("postgres")
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_stricter_transactions(desk: Desk, own: Any, level: str) -> None:
    own.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
    own.execute(ADD)
    desk.store.enqueue([desk.new(unique_key="k", env={"A": "1"})], own)
    own.commit()
    assert pending(desk) == 1


@only("postgres")
def test_it_wakes_workers_at_the_commit(desk: Desk, own: Any) -> None:
    with closing(psycopg.connect(desk.store.config.store, autocommit=True)) as listening:
        listening.execute("LISTEN svcq")
        desk.store.enqueue([desk.new()], own)
        assert list(listening.notifies(timeout=0.1, stop_after=1)) == []
        own.commit()
        assert [one.channel for one in listening.notifies(timeout=10, stop_after=1)] == ["svcq"]


@only("postgres")
def test_an_open_transaction_with_plain_jobs_holds_nobody_up(
    desk: Desk, own: Any, open_again: Callable[[], Store]
) -> None:
    first = desk.add()
    desk.store.enqueue([desk.new()], own)
    desk.add()
    other = open_again()
    other.hold(first)
    other.release(first)
    other.set_queue("default", {"weight": 3})
    assert len(desk.claimed(5)) == 2
    own.commit()
    assert len(desk.claimed(5)) == 1


@only("postgres")
def test_an_open_transaction_with_other_jobs_holds_up_what_people_do(
    desk: Desk, connect: Connect, own: Any
) -> None:
    job = desk.add()
    desk.store.enqueue([desk.new(unique_key="k")], own)
    desk.add()
    assert len(desk.claimed(5)) == 2
    impatient = desk.store.engine.fresh()
    impatient.connections.busy_wait_ms = 50  # type: ignore[attr-defined]
    with closing(impatient), pytest.raises(StoreBusy, match="locked by another transaction"):
        held(impatient)
    own.rollback()
    desk.store.cancel(job)


def held(engine: Engine) -> int:
    """A transaction that writes takes its locks with its first statement."""
    with engine.write(durable=True) as tx:
        return tx.now


@only("postgres")
def test_a_connection_to_another_database_is_refused(desk: Desk, postgres: Server) -> None:
    address = postgres.database()
    try:
        with closing(psycopg.connect(address)) as own:
            with pytest.raises(InvalidInput, match="not to the database of the store"):
                desk.store.enqueue([desk.new()], own)
            assert own.execute("SELECT 1").fetchone() == (1,)
    finally:
        postgres.drop(address)


@only("postgres")
def test_a_failed_or_read_only_transaction_is_a_sentence(desk: Desk, own: Any) -> None:
    with pytest.raises(psycopg.Error):
        own.execute("SELECT nothing")
    with pytest.raises(StoreError, match=r"failed already.*roll it back"):
        desk.store.enqueue([desk.new()], own)
    own.rollback()
    own.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(StoreReadOnly):
        desk.store.enqueue([desk.new()], own)
    own.rollback()
    desk.store.enqueue([desk.new()], own)
    own.commit()
    assert pending(desk) == 1


@only("postgres")
def test_a_broken_off_connection_adds_nothing(desk: Desk, own: Any) -> None:
    desk.store.enqueue([desk.new()], own)
    with closing(psycopg.connect(desk.store.config.store, autocommit=True)) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [own.info.backend_pid])
    with pytest.raises(StoreError):
        eventually(lambda: desk.store.enqueue([desk.new()], own) == [])
    assert pending(desk) == 0
