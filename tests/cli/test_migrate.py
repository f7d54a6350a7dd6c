"""`svcq migrate` from the command line: what it says, and what it leaves when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from svcq.client import Client
from tests.cli.conftest import Svcq
from tests.cli.terminals import Terminal
from tests.helpers import eventually
from tests.postgres import ASKED, Server

LOCKED = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'COPY jobs%'"


@pytest.fixture
def target(postgres: Server) -> Iterator[str]:
    address = postgres.database()
    yield address
    postgres.drop(address)


def test_move_and_switch(svcq: Svcq, target: str, home: Path) -> None:
    job = svcq.add("--name", "kept")
    said = svcq.ok("migrate", "--to", target, "--switch").out.splitlines()
    assert said[0].startswith("Moved 1 job (")
    assert said[0].endswith(f"to {target}; the copy was checked.")
    assert said[1:] == [
        "This home uses it from now on: svcq start.",
        f"The old store, {home / 'svcq.db'}, is as it was.",
    ]
    assert svcq.ok("config", "get", "store").out == f"{target}\n"
    assert svcq.job("kept")["id"] == job
    assert svcq.ok("status", "--json").json["store"] == target
    assert svcq.add() > job


def test_move_alone_says_how_to_switch(
    svcq: Svcq, target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    svcq.add()
    assert f"svcq config set store {target}" in svcq.ok("migrate", "--to", target).out
    assert svcq.ok("config", "get", "store").out == "svcq.db\n"
    assert "this one already" in svcq.refuses("migrate", "--to", target, code=1)
    monkeypatch.setenv("SVCQ_STORE", target)
    monkeypatch.chdir(tmp_path)
    said = svcq.ok("migrate", "--to", "back.db", "--switch").out
    assert "SVCQ_STORE is set, too" in said
    assert str(tmp_path / "back.db") in said
    monkeypatch.delenv("SVCQ_STORE")
    assert len(svcq.ok("list", "--json").json) == 1


def test_what_cannot_be_a_target(svcq: Svcq, target: str, home: Path) -> None:
    assert "nothing to move" in svcq.refuses("migrate", "--to", target, code=3)
    svcq.add()
    assert "--to is missing" in svcq.refuses("migrate")
    assert "give the path of a file" in svcq.refuses("migrate", "--to", "mysql://h/db")
    assert "already" in svcq.refuses("migrate", "--to", home / "svcq.db", code=1)
    assert "does not exist" in svcq.refuses("migrate", "--to", home / "no" / "x.db")
    svcq.add()
    with Client() as client:
        client.fetch()
        said = svcq.refuses("migrate", "--to", target, code=1)
    assert "is at work on the store: svcq worker stop" in said


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_half_way_and_repeated(
    svcq: Svcq, target: str, home: Path, shell_environment: Mapping[str, str], how: signal.Signals
) -> None:
    """It waits for a lock that someone holds, with half of the tables written."""
    with Client() as client:
        for n in range(20):
            client.command("true", tags=[f"t{n}"])
    with Client(store=target):
        pass
    command = [sys.executable, "-m", "svcq", "migrate", "--to", target]
    with closing(psycopg.connect(target)) as holder:
        holder.execute("LOCK TABLE svcq.jobs IN SHARE MODE")
        migrating = subprocess.Popen(
            command, env=dict(shell_environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        with closing(psycopg.connect(target, autocommit=True)) as look:
            eventually(lambda: look.execute(LOCKED).fetchone(), 30)
        migrating.send_signal(how)
        holder.rollback()
    out, err = migrating.communicate(timeout=30)
    assert migrating.returncode in (-signal.SIGKILL, 130)
    assert out == ""
    assert "Traceback" not in err
    with closing(psycopg.connect(target)) as look:
        for table in ("jobs", "specs", "queues", "tags"):
            assert look.execute(f"SELECT count(*) FROM svcq.{table}").fetchone() == (0,)
    assert len(svcq.ok("list", "--json").json) == 20
    assert "Moved 20 jobs" in svcq.ok("migrate", "--to", target, "--switch").out
    assert len(svcq.ok("list", "--json").json) == 20


@pytest.fixture
def secret(postgres: Server, target: str) -> Iterator[str]:
    """A role that is asked for its password, which is hunter2, and may make a store in `target`."""
    role = f"asked_{os.getpid()}"
    with psycopg.connect(target, autocommit=True) as own:
        own.execute(f"DO $$ BEGIN CREATE ROLE {ASKED}; EXCEPTION WHEN duplicate_object THEN END $$")
        own.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'hunter2' IN ROLE {ASKED}")
        name = own.info.dbname
        own.execute(f"GRANT CREATE ON DATABASE {name} TO {role}")
    yield postgres.url(name, role)
    with psycopg.connect(target, autocommit=True) as own:
        own.execute(f"DROP OWNED BY {role}")
        own.execute(f"DROP ROLE {role}")


def test_a_password_of_the_environment(
    svcq: Svcq, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    svcq.add()
    assert "wants a password: put it in ~/.pgpass" in svcq.refuses(
        "migrate", "--to", secret, code=4, stdin=""
    )
    monkeypatch.setenv("PGPASSWORD", "hunter1")
    said = svcq.refuses("migrate", "--to", secret, code=4)
    assert "its password is wrong" in said
    assert "hunter" not in said
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    assert svcq.ok("migrate", "--to", secret, "--switch").err == ""
    assert svcq.ok("status").out


def test_a_password_in_the_address_is_warned_of(svcq: Svcq, secret: str, home: Path) -> None:
    svcq.add()
    address = secret.replace("@", ":hunter2@", 1)
    said = svcq.ok("migrate", "--to", address, "--switch")
    assert "list of processes: change it" in said.err
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
    shown = [said, svcq("status"), svcq("status", "--json"), svcq("config", "list"),
             svcq("config", "get", "store"), svcq("config", "list", "--json"), svcq("doctor"),
             svcq("add", "--", "true"), svcq("migrate", "--to", address)]  # fmt: skip
    assert [one for one in shown if "hunter2" in one.out + one.err] == []
    assert svcq.ok("list", "--json").json
    assert "list of processes" in svcq.ok("config", "set", "store", address).err


def test_a_password_that_is_asked_for(
    svcq: Svcq, secret: str, shell_environment: Mapping[str, str]
) -> None:
    svcq.add()
    terminal = Terminal(shell_environment, "migrate", "--to", secret)
    terminal.see("Password for ")
    terminal.type("hunter2\n")
    code, text = terminal.end()
    assert code == 0
    assert "The password was not kept" in text
    assert "hunter2" not in text
