"""The command line on a store in PostgreSQL: what can be wrong with it, each in one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from svcq.client import Client
from svcq.errors import NotPermitted, StoreError
from svcq.store.postgres_connections import OLDEST_SERVER, check_server
from tests.cli.conftest import Svcq
from tests.clients import assert_sentence
from tests.helpers import eventually
from tests.postgres import ASKED, Server, serving

Become = Callable[[str], str]
GUIDE = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text("utf-8")
GRANTS = re.findall(r"^```sql\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def address(postgres: Server, svcq: Svcq, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The store of every command is to be in this database."""
    made = postgres.database()
    monkeypatch.setenv("SVCQ_STORE", made)
    yield made
    postgres.drop(made)


def sql(address: str, *statements: str) -> None:
    with closing(psycopg.connect(address, autocommit=True)) as own:
        for statement in statements:
            own.execute(statement)


def database(address: str) -> str:
    return address.partition("@/")[2].partition("?")[0]


@contextmanager
def role(address: str, *rights: str) -> Iterator[str]:
    """A user of that database."""
    name = f"role_{os.getpid()}"
    sql(address, f"CREATE ROLE {name} LOGIN {' '.join(rights)}")
    try:
        yield name
    finally:
        sql(address, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_everything_that_is_done_on_one_evening(svcq: Svcq, address: str) -> None:
    job = svcq.add("--name", "one", "--tag", "t", "--unique", "u", "--env", "TOKEN=secret")
    svcq.add("--after", "one", "--priority", "3")
    svcq.ok("hold", "one")
    svcq.ok("release", "one")
    svcq.ok("edit", "one", "--priority", "5")
    svcq.ok("move", "one", "--last")
    svcq.ok("queue", "set", "default", "concurrency=2", "rate=10/1m")
    svcq.ok("pause", "default")
    assert "Paused: default." in svcq.ok("status").out
    svcq.ok("resume", "default")
    svcq.ok("schedule", "add", "s", "--cron", "0 3 * * *", "--tz", "UTC", "--", "true")
    svcq.ok("schedule", "run", "s")
    assert "secret" not in svcq.ok("show", "one").out
    assert [one["name"] for one in svcq.ok("list", "--tag", "t", "--json").json] == ["one"]
    for words in (["why", job], ["stats"], ["activity"], ["worker", "list"], ["dlq", "list"],
                  ["schedule", "list"], ["export"], ["cleanup"], ["queue", "list"]):  # fmt: skip
        svcq.ok(*words)
    svcq.ok("cancel", "one")
    svcq.ok("retry", job)
    assert svcq.ok("status", "--json").json["counts"]["pending"] == 2
    assert svcq.ok("upgrade-store").out == "The store has schema 3: there is nothing to do.\n"


def test_the_environment_that_machines_share_is_what_lasts(
    svcq: Svcq, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may read the store would read the secrets of everyone's shell."""
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    jobs = [svcq.add(), svcq.add("--priority", "1"), svcq.add("--env", "MY_TOKEN")]
    jobs.append(int(svcq.ok("enqueue", '{"command": "true"}').out))
    with Client() as client:
        kept = [client.environment(job) or {} for job in jobs]
    assert [one.get("MY_TOKEN") for one in kept] == [None, None, "s3cret", None]
    assert {one["LANG"] for one in kept} == {"C.UTF-8"}


def test_no_such_database(svcq: Svcq, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVCQ_STORE", address.replace(database(address), "nowhere"))
    assert "no such database" in svcq.refuses("list", code=4)


def test_no_such_user(svcq: Svcq, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVCQ_STORE", address.replace("svcq@", "nobody@"))
    assert "no such user" in svcq.refuses("list", code=4)


def test_no_server(svcq: Svcq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVCQ_STORE", f"postgresql:///db?host={tmp_path}")
    assert "cannot be reached" in svcq.refuses("list", code=4)
    said = svcq("doctor")
    assert said.code == 1
    assert "problem  store: The store" in said.out


@pytest.mark.parametrize(
    "wrong", ["me:hun/ter2@h:x/db", "me:hunter2@h/db?nonsense=1", "h:hunter2/d"]
)
def test_an_address_that_is_none(svcq: Svcq, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVCQ_STORE", f"postgresql://{wrong}")
    said = svcq.refuses("list")
    assert "is none of PostgreSQL" in said
    assert "hun" not in said


def test_a_wrong_password(svcq: Svcq, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql(address, f"DO $$ BEGIN CREATE ROLE {ASKED}; EXCEPTION WHEN duplicate_object THEN END $$")
    with role(address, f"PASSWORD 'hunter2' IN ROLE {ASKED}") as name:
        for user, says in ((name, "wants a password"), (f"{name}:hunter1", "password is wrong")):
            monkeypatch.setenv("SVCQ_STORE", address.replace("svcq@", f"{user}@"))
            said = svcq.refuses("list", code=4)
            assert says in said
            assert "hunter" not in said
            assert "hunter" not in svcq("doctor").out


def test_no_right_to_make_the_store(
    svcq: Svcq, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with role(address) as name:
        monkeypatch.setenv("SVCQ_STORE", address.replace("svcq@", f"{name}@"))
        assert "may not make one" in svcq.refuses("add", "--", "true", code=5)
        assert f"problem  rights: there is no store yet, and {name} may not" in svcq("doctor").out
        monkeypatch.setenv("SVCQ_STORE", address)
        svcq.add()
        monkeypatch.setenv("SVCQ_STORE", address.replace("svcq@", f"{name}@"))
        assert "permission denied" in svcq.refuses("list", code=5)


def test_a_server_that_is_too_old() -> None:
    check_server(OLDEST_SERVER * 10_000, "there")
    with pytest.raises(StoreError) as caught:
        check_server(120_009, "there")
    assert_sentence(caught.value, "PostgreSQL 12", f"{OLDEST_SERVER} or later")


def test_a_schema_of_another_program(svcq: Svcq, address: str) -> None:
    sql(address, "CREATE SCHEMA svcq", "CREATE TABLE svcq.theirs (a integer)")
    assert "holds 1 tables that are no store" in svcq.refuses("add", "--", "true", code=4)
    assert "no store of svcq" in svcq("doctor").out


def test_a_store_of_a_newer_program(svcq: Svcq, address: str) -> None:
    svcq.add()
    sql(address, "UPDATE svcq.meta SET value = '99' WHERE key IN ('version', 'oldest_program')")
    for words in (["list"], ["upgrade-store"], ["backup", "x.db"]):
        assert "needs a program made for 99" in svcq.refuses(*words, code=4)
    assert "needs a program made for 99" in svcq("doctor").out


def test_a_standby_can_be_looked_at(
    svcq: Svcq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(wal_level="replica", max_wal_senders="4") as primary:
        monkeypatch.setenv("SVCQ_STORE", primary.url())
        job = svcq.add()
        with primary.standby() as standby:
            monkeypatch.setenv("SVCQ_STORE", standby.url())
            eventually(lambda: svcq("show", job).code == 0)
            assert svcq.job(job)["state"] == "pending"
            for words in (["add", "--", "true"], ["cancel", job], ["pause", "default"]):
                assert "may not be written" in svcq.refuses(*words, code=4)
            assert "a standby, which nobody can write" in svcq("doctor").out


def test_what_the_doctor_sees_of_a_server(svcq: Svcq, address: str) -> None:
    def said() -> str:
        return svcq("doctor").out

    assert "ok       rights: svcq may make the store" in said()
    assert f"ok       server: {address} is PostgreSQL " in said()
    with closing(psycopg.connect(address)) as own:
        assert own.execute("SELECT to_regclass('svcq.meta')").fetchone() == (None,)
    svcq.add()
    assert "ok       rights: svcq owns the store" in said()
    assert "problem  settings: fsync is off" in said()
    assert re.search(r"ok       connections: \d+ of svcq, \d+ left", said())
    assert "ok       transactions: none is open for long" in said()
    assert f"ok       store: {address} opens; its schema is 3" in said()
    assert "ok       vacuum: " in said()


# Roles, as the guide has them


@pytest.fixture
def roles(svcq: Svcq, address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Become]:
    names = ("svcq_owner", "svcq_work", "svcq_queue")
    first, second = GRANTS
    sql(address, first.replace("DATABASE svcq", f"DATABASE {database(address)}"))

    def become(name: str) -> str:
        mine = address.replace("svcq@", f"{name}@")
        monkeypatch.setenv("SVCQ_STORE", mine)
        return mine

    try:
        owner = become("svcq_owner")
        svcq.ok("status")
        sql(owner, second)
        yield become
    finally:
        for name in names:
            sql(address, f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


FORBIDDEN = "may not do that (permission denied"


def test_who_queues_adds_and_looks_and_no_more(svcq: Svcq, roles: Become) -> None:
    roles("svcq_queue")
    job = svcq.add("--queue", "new", "--env", "TOKEN=secret", "--tag", "t", "--name", "n")
    svcq.add("--after", "n", "--key", "k", "--key-limit", "2", "--unique", "u", "--in", "1h")
    svcq.add("--unique", "u2", "--on-duplicate", "existing")
    svcq.add("--unique", "u2", "--on-duplicate", "existing")
    bulk = '{"command": "true"}\n' * 20
    svcq.ok("enqueue", "--file", "-", stdin=bulk)
    for words in (["list"], ["why", job], ["status"], ["stats"], ["activity"], ["queue", "list"],
                  ["schedule", "list"], ["worker", "list"], ["doctor"]):  # fmt: skip
        assert svcq(*words).code in (0, 1), svcq(*words)
    assert svcq.job(job)["state"] == "pending"
    for words in (
        ["cancel", job], ["hold", job], ["edit", job, "--priority", "3"],
        ["move", job, "--last"], ["pause", "new"], ["queue", "set", "new", "weight=3"],
        ["purge", "--state", "pending", "--yes"], ["cleanup"],
        ["schedule", "add", "s", "--every", "1h", "--", "true"],
        ["add", "--unique", "u2", "--on-duplicate", "replace", "--", "true"],
    ):  # fmt: skip
        assert FORBIDDEN in svcq.refuses(*words, code=5), words
    with Client() as client:
        with pytest.raises(NotPermitted):
            client.fetch()
        with pytest.raises(NotPermitted):
            client.environment(job)
    assert svcq.ok("status", "--json").json["counts"]["pending"] == 22


def test_who_works_does_all_but_change_the_tables(
    svcq: Svcq, roles: Become, tmp_path: Path
) -> None:
    roles("svcq_queue")
    job = svcq.add("--env", "TOKEN=secret", "--key", "k")
    address = roles("svcq_work")
    with Client() as client:
        (claim,) = client.fetch()
        client.progress(claim, 0.5)
        client.complete(claim, {"a": 1})
        assert client.environment(job)
    for words in (
        ["retry", job], ["hold", job], ["release", job], ["cancel", job], ["pause", "default"],
        ["queue", "set", "default", "weight=3"],
        ["schedule", "add", "s", "--every", "1h", "--", "true"], ["schedule", "run", "s"],
        ["cleanup"], ["backup", tmp_path / "copy.db"], ["purge", "--state", "cancelled", "--yes"],
    ):  # fmt: skip
        svcq.ok(*words)
    assert "svcq_work may look, add jobs, run them, change settings" in svcq("doctor").out
    for statement in (
        "ALTER TABLE svcq.jobs ADD COLUMN x integer", "CREATE TABLE svcq.x (a integer)",
        "DROP TABLE svcq.jobs", "TRUNCATE svcq.jobs",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(address, statement)
