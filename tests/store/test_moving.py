"""A whole store moved from one database to another: everything, or nothing."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from socket import gethostname
from typing import Any

import psycopg
import pytest

from svcq.client import Client
from svcq.config import Config, load
from svcq.errors import InvalidInput, NotFound, Refused, StoreDamaged, StoreError, StoreVersion
from svcq.host import processes
from svcq.jobs import State
from svcq.migrate import migrate
from svcq.store import WorkerInfo
from svcq.store.engine import Engine, Transaction
from svcq.store.moving import TABLES
from svcq.store.opening import open_engine
from svcq.store.versions import newest, schema_folder
from svcq.worker.places import Places
from tests.clients import assert_sentence
from tests.postgres import Server
from tests.store.tables import write
from tests.store.test_transfer import everything
from tests.store.test_transfer import fill as fill_with_jobs

Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def target(postgres: Server) -> Iterator[str]:
    """A database of PostgreSQL without a store."""
    address = postgres.database()
    yield address
    postgres.drop(address)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(tmp_path / "home", {})


@pytest.fixture
def full(config: Config) -> Config:
    """A store of which every table holds something, and on which nobody works any more."""
    with Client(config=config) as client:
        fill_with_jobs(client)
        client.schedule("nightly", "true", cron="0 3 * * *", tz="Europe/Paris", env={"T": "secret"})
        client.schedule("often", task="mail.send", args=[1], every="1m")
        client.fire_schedule("often")
        write(client.store, "INSERT INTO tasks (name, options, policy) VALUES ('t', '{}', '{}')")
        write(client.store, "INSERT INTO requests (caller, key, digest, added, at)"
                            " VALUES ('me', 'k', 'd', '[]', 5)")  # fmt: skip
        leave(client)
    return config


def leave(client: Client) -> None:
    """What the worker still holds is given back, and it ends."""
    write(client.store, "UPDATE workers SET lease_until = 1")
    client.fetch("nothing")
    for worker in client.workers():
        client.store.leave(worker.id)


def rows_of(config: Config) -> Rows:
    with closing(open_engine(config)) as engine, engine.read() as tx:
        return {
            table.name: sorted(
                (tuple(row) for rows in tx.stream(table.read, **table.values) for row in rows),
                key=repr,
            )
            for table in TABLES
        }


def at(config: Config, store: object) -> Config:
    return config._replace(store=str(store))


def untouched(address: str) -> bool:
    with closing(psycopg.connect(address)) as own:
        found = own.execute("SELECT to_regclass('svcq.meta'), to_regnamespace('svcq')").fetchone()
    return found == (None, None)


def test_everything_goes_there_and_back(full: Config, target: str, tmp_path: Path) -> None:
    before = rows_of(full)
    assert [name for name, rows in before.items() if not rows] == []
    moved = migrate(full, target)
    assert rows_of(at(full, target)) == before
    assert moved.rows == sum(map(len, before.values()))
    assert moved.jobs == len(before["jobs"])
    assert rows_of(full) == before
    file = tmp_path / "back.db"
    migrate(at(full, target), str(file))
    assert rows_of(at(full, file)) == before
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_moved_store_goes_on_as_the_old_one_would(full: Config, target: str) -> None:
    migrate(full, target)
    with Client(config=full) as old, Client(config=at(full, target)) as new:
        assert everything(new) == everything(old)
        assert new.schedule_environment("nightly") == {"T": "secret"}
        assert [one.as_json() for one in new.schedules()] == [
            one.as_json() for one in old.schedules()
        ]
        assert new.changes() == old.changes()
        assert new.activity() == old.activity()
        ids = {job.id for job in new.list(limit=1000)}
        assert new.command("true", env={"NEW": "1"}, queue="new").id > max(ids)
        assert new.follow(old.follow().cursor).next(1) != []
        workers = {worker.id for worker in old.workers(ended=True)}
        claims = [[claim.id for claim in client.fetch("mail", 10)] for client in (old, new)]
        assert claims[0] == claims[1] != []
        assert new.workers()[0].id not in workers
        held = new.get("held")
        new.release(held)
        assert new.get(held).state is State.BLOCKED
        new.cleanup()
        assert new.store.id() != old.store.id()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_no_table_and_no_column_is_left_behind(full: Config, target: str, engine: str) -> None:
    """Whoever adds one to the schema has it moved, too."""
    config = full if engine == "sqlite" else at(full, target)
    # Rows of sums; and how a worker that lives is heard of, which none is that has moved.
    only_there = {"counts": {"slot"}, "minutes": {"slot"}, "workers": {"heard_at", "silence_ms"}}
    by_engine = only_there if engine == "postgres" else {}
    with closing(open_engine(config)) as opened, opened.read() as tx:
        for table, columns in columns_of(tx, engine).items():
            if table in ("meta", "services"):  # what runs tells of itself anew
                continue
            moved = {one.name: one for one in TABLES}[table]
            query = tx._queries[moved.read]  # type: ignore[attr-defined]
            if moved.write:
                filled = set(tx._queries[moved.write].parameters)  # type: ignore[attr-defined]
            else:
                name, read = query.reads()
                assert name == table
                filled = set(read)
            assert filled == columns - by_engine.get(table, set()), table


def columns_of(tx: Transaction, engine: str) -> dict[str, set[str]]:
    cursor = tx.cursor  # type: ignore[attr-defined]
    if engine == "postgres":
        found = cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'svcq'"
        ).fetchall()
    else:
        found = cursor.execute(
            "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c"
            " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'"
        ).fetchall()
    columns: dict[str, set[str]] = {}
    for table, column in found:
        columns.setdefault(table, set()).add(column)
    return columns


def test_both_engines_have_the_same_versions() -> None:
    assert newest(schema_folder("sqlite")) == newest(schema_folder("postgres"))


def test_more_rows_than_fit_into_one_batch(config: Config, target: str) -> None:
    with Client(config=config) as client:
        for n in range(6):
            client.import_lines(export_of(2000, f"tag{n}"))
    told: dict[str, list[int]] = {}
    moved = migrate(config, target, lambda table, n: told.setdefault(table, []).append(n))
    assert moved.jobs == 12_000
    assert told["jobs"] == [5000, 10_000, 12_000]
    assert rows_of(at(config, target)) == rows_of(config)


def export_of(n: int, tag: str) -> Iterator[str]:
    yield '{"svcq": 1}'
    for job in range(1, n + 1):
        yield (
            f'{{"job": {{"id": {job}, "state": "pending", "queue": "q", "command": "\\"true\\"",'
            f' "options": "{{}}", "created_at": 1, "tags": "[\\"{tag}\\"]",'
            f' "progress": {random.random()}}}}}'
        )


# What breaks off


class BrokenOff(Exception):
    pass


@pytest.mark.parametrize("table", ["queues", "jobs", "minutes"])
def test_what_breaks_off_leaves_nothing_and_can_be_repeated(
    full: Config, target: str, tmp_path: Path, table: str
) -> None:
    def break_off(name: str, _: int) -> None:
        if name == table:
            raise BrokenOff

    before, files = rows_of(full), sorted(tmp_path.rglob("*"))
    for place in (target, str(tmp_path / "new.db")):
        with pytest.raises(BrokenOff):
            migrate(full, place, break_off)
    assert untouched(target)
    assert sorted(tmp_path.rglob("*")) == files
    migrate(full, target)
    assert rows_of(at(full, target)) == before


def test_a_connection_that_is_lost_leaves_nothing(full: Config, target: str) -> None:
    def lose(table: str, _: int) -> None:
        if table == "jobs":
            with closing(psycopg.connect(target, autocommit=True)) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    with pytest.raises(StoreError) as caught:
        migrate(full, target, lose)
    assert_sentence(caught.value, "does not answer")
    assert untouched(target)
    migrate(full, target)


def test_a_copy_that_is_not_what_was_read_is_not_kept(full: Config, target: str) -> None:
    """A fault of a disk, or someone's trigger."""
    with closing(open_engine(at(full, target))) as engine, engine.write(durable=True) as tx:
        tx.script(
            "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$"
            " BEGIN NEW.options := '{\"nice\": 19}'; RETURN NEW; END $$;"
            "CREATE TRIGGER meddle BEFORE INSERT ON specs"
            " FOR EACH ROW WHEN (NEW.id = 3) EXECUTE FUNCTION meddle()"
        )
    with pytest.raises(StoreDamaged) as caught:
        migrate(full, target)
    assert_sentence(caught.value, "specs")
    assert {name for name, rows in rows_of(at(full, target)).items() if rows} == set()


# What is refused


def refused(config: Config, to: object, *named: object, kind: type[Exception] = Refused) -> None:
    with pytest.raises(kind) as caught:
        migrate(config, str(to))
    assert_sentence(caught.value, *named)


def test_a_store_on_which_a_worker_is_at_work(full: Config, target: str) -> None:
    places = Places(full.home)
    places.prepare()
    with Client(config=full) as client:
        worker = client.store.register(WorkerInfo(host=gethostname(), pid=77, born="born"))
        lock = processes.hold_lock(places.worker_lock(77, "born"))
        assert lock is not None
        refused(full, target, f"Worker {worker} (pid 77 on ", "svcq worker stop")
        os.close(lock)
        migrate(full, target)  # it died and held nothing


def test_a_store_with_jobs_of_a_dead_worker(full: Config, target: str) -> None:
    with Client(config=full) as client:
        worker = client.store.register(WorkerInfo(host=gethostname(), pid=77, born="born"))
        job = client.command("true")
        write(client.store, "UPDATE jobs SET state = 'processing', rank = NULL, worker = ?"
                            " WHERE id = ?", (worker, job.id))  # fmt: skip
    refused(full, target, f"Worker {worker} (pid 77", "svcq worker start")
    assert untouched(target)


def test_a_store_of_which_someone_holds_a_lease(full: Config, target: str) -> None:
    with Client(config=full) as client:
        client.fetch(lease="1h")
        refused(full, target, "is at work on the store")


def test_a_store_that_is_served(full: Config, target: str) -> None:
    places = Places(full.home)
    lock = processes.hold_lock(places.service_lock)
    assert lock is not None
    places.service_lock.write_text("4711")
    refused(full, target, "The service runs (pid 4711)", "svcq stop")
    os.close(lock)
    migrate(full, target)


def test_ends_of_jobs_that_were_not_delivered(full: Config, target: str) -> None:
    places = Places(full.home)
    places.prepare()
    (places.spool / "1.1-a.json").write_text("{}")
    refused(full, target, places.spool)


def test_a_place_that_is_in_use(full: Config, target: str, tmp_path: Path) -> None:
    with Client(config=at(full, target)) as client:
        client.queue("mine", weight=3)
    refused(full, target, "in use already (it has queues)")
    taken = tmp_path / "taken.db"
    taken.write_text("precious")
    refused(full, taken, "exists already", kind=InvalidInput)
    assert taken.read_text() == "precious"


def test_a_store_that_was_moved_there_already(full: Config, target: str) -> None:
    migrate(full, target)
    refused(full, target, "is this one already", "svcq config set store")


def test_onto_itself(full: Config, target: str) -> None:
    refused(full, full.store, "is at ", "already")
    migrate(full, target)
    refused(at(full, target), target, "is at ", "already")


def test_a_store_that_is_not_there(config: Config, target: str) -> None:
    refused(config, target, config.store, kind=NotFound)
    assert untouched(target)
    assert not Path(config.store).exists()


@pytest.mark.parametrize(("version", "remedy"), [(1, "svcq upgrade-store"), (99, "upgrade svcq")])
def test_a_store_of_another_schema(full: Config, target: str, version: int, remedy: str) -> None:
    with closing(sqlite3.connect(full.store)) as own, own:
        own.execute("UPDATE meta SET value = ? WHERE key = 'version'", (version,))
    refused(full, target, version, remedy, kind=StoreVersion)


def test_nobody_writes_meanwhile(full: Config, target: str) -> None:
    """On either side: who tries waits until it is over."""

    def look(check: Callable[[], None]) -> Callable[[str, int], None]:
        return lambda table, _: check() if table == "jobs" else None

    def nobody_can(config: Config) -> Callable[[], None]:
        def check() -> None:
            with closing(open_engine(config._replace(busy_wait=50))) as other:
                for alone in (True, False):
                    with pytest.raises(StoreError, match="locked by another"):
                        hold(other, alone=alone)

        return check

    migrate(full, target, look(nobody_can(full)))
    migrate(
        at(full, target),
        str(Path(full.store).with_name("b.db")),
        look(nobody_can(at(full, target))),
    )


def hold(engine: Engine, *, alone: bool) -> int:
    with engine.write(durable=True, alone=alone) as tx:
        return tx.now
