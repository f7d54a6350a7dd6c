"""Machines that are upgraded one by one: a made-up next schema, on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from svcq.config import Config, load
from svcq.errors import StoreVersion, SvcqError
from svcq.store import Store, open_store, upgrade_store, versions
from svcq.store.opening import open_engine
from svcq.store.versions import migrate, newest, read_version, schema_folder
from tests.clients import assert_sentence
from tests.postgres import Server
from tests.store.conftest import ENGINES, Desk

pytestmark = pytest.mark.parametrize("config", ENGINES, indirect=True)
NOW = newest(schema_folder("sqlite"))


@pytest.fixture
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Config]:
    """Its tables are changed, so that no other test can have it."""
    if request.param == "sqlite":
        yield load(tmp_path / "home", {})
        return
    server: Server = request.getfixturevalue("postgres")
    address = server.database()
    yield load(tmp_path / "home", {"SVCQ_STORE": address})
    server.drop(address)


@pytest.fixture
def folder(tmp_path: Path, config: Config) -> Callable[..., str]:
    """The schema of the next program, in which a column is added, and another one is removed."""

    def next_schema(addition: str = "ALTER TABLE jobs ADD COLUMN newer bigint;") -> str:
        engine = "postgres" if "://" in config.store else "sqlite"
        made = tmp_path / "schema"
        made.mkdir()
        for script in Path(schema_folder(engine)).glob("*.sql"):
            (made / script.name).write_text(script.read_text())
        if engine == "sqlite":
            addition = addition.replace("bigint", "INTEGER")
        (made / f"{NOW + 1:04}.sql").write_text(addition + "\n")
        removal = "ALTER TABLE jobs DROP COLUMN progress_note;\n"
        (made / f"{NOW + 1:04}-remove.sql").write_text(removal)
        return str(made)

    return next_schema


def upgraded(config: Config, folder: str) -> tuple[int, int]:
    with closing(open_engine(config)) as engine, engine.write(durable=True) as tx:
        migrate(tx, folder)
        return read_version(tx)


def test_a_migration_only_adds_while_an_older_worker_is_registered(
    desk: Desk, config: Config, folder: Callable[..., str]
) -> None:
    schema = folder()
    held = desk.add()
    (claim,) = desk.claim()
    assert upgraded(config, schema) == (NOW + 1, 1)
    # The program before goes on with what it holds, and with what comes.
    assert desk.store.progress(claim, 0.5, "half")
    assert desk.get(held).progress_note == "half"
    desk.end(claim)
    assert desk.store.orders(desk.worker).state == "draining"
    with closing(open_store(config)):
        pass
    desk.store.leave(desk.worker)
    assert upgraded(config, schema) == (NOW + 1, NOW + 1)
    with pytest.raises(StoreVersion) as caught:
        open_store(config)
    assert_sentence(caught.value, NOW + 1, "upgrade svcq")


def test_a_migration_that_fails_changes_nothing(
    desk: Desk, config: Config, folder: Callable[..., str]
) -> None:
    schema = folder("CREATE TABLE half (a bigint);\nCREATE TABLE half (a bigint);")
    with pytest.raises(SvcqError):
        upgraded(config, schema)
    with closing(open_engine(config)) as engine, engine.read() as tx:
        assert read_version(tx) == (NOW, 1)
    job = desk.add()
    assert desk.claimed() == [job]


def test_nothing_migrates_by_accident(
    desk: Desk, config: Config, folder: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open a store is no reason; the program says what is."""
    schema = folder()
    monkeypatch.setattr(versions, "schema_folder", lambda _: schema)
    with pytest.raises(StoreVersion) as caught:
        open_store(config)
    assert_sentence(caught.value, NOW, NOW + 1, "svcq upgrade-store")
    with closing(open_engine(config)) as engine, engine.read() as tx:
        assert read_version(tx) == (NOW, 1)
    assert upgrade_store(config) == (NOW, NOW + 1)
    with closing(open_store(config)) as store:
        assert isinstance(store, Store)
    assert upgrade_store(config) == (NOW + 1, NOW + 1)
