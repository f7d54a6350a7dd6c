"""The service on PostgreSQL, with a password that nobody gets to see."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, QUICK, Home
from tests.postgres import Server, serving

PASSWORD = "Correct-Horse-4711"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that asks for a password."""
    with serving() as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE worker SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        with (server.data / "pg_hba.conf").open("r+") as file:
            rules = file.read()
            file.seek(0)
            file.write(f"local all worker scram-sha-256\n{rules}")
        server.reload()
        yield server


@pytest.fixture(params=["in its place", "in the query"])
def home(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Home]:
    database = server.database()
    name = database.partition("@/")[2].partition("?")[0]
    store = f"postgresql://worker:{PASSWORD}@/{name}?host={server.folder}"
    if request.param == "in the query":
        store = f"postgresql://worker@/{name}?host={server.folder}&password={PASSWORD}"
    home = Home(tmp_path, f'store = "{store}"\n{QUICK}[workers]\nslots = 2\n', store)
    yield home
    home.close()
    server.drop(database)


def leaks(home: Home, *allowed: str) -> list[str]:
    """Where the password stands: arguments and environments of processes, and files of the home."""
    secret, found = PASSWORD.encode(), []
    for pid in home.processes():
        for name in ("cmdline", "environ"):
            with suppress(OSError):
                if secret in Path(f"/proc/{pid}/{name}").read_bytes():
                    found.append(f"{pid}/{name}")
    files = [*home.path.rglob("*"), *home.work.rglob("*")]
    kept = (file for file in files if file.is_file() and file.name not in allowed)
    return found + [str(file) for file in kept if secret in file.read_bytes()]


def stores(home: Home) -> list[str]:
    """What the services, workers and jobs of a home are told of its store."""
    return [line for line in home.said().splitlines() if "postgresql://" in line]


@pytest.mark.parametrize("face", [("service",), ("up",)], ids=["service", "up"])
def test_it_starts_works_and_stops(home: Home, face: tuple[str, ...]) -> None:
    service = home.start(*face)
    eventually(home.client.workers, PATIENCE)
    done = home.run("env; echo $SVCQ_HOME")
    assert done.state == "completed"
    assert str(home.path) in home.output(done.id)
    held = home.add("sleep 60")
    home.wait_until_running(held)
    assert leaks(home, "config.toml") == []
    assert any("postgresql://worker" in line for line in stores(home))
    for command in (("status", "--json"), ("config", "list"), ("worker", "list")):
        said = home.svcq(*command)
        assert PASSWORD not in said.stdout + said.stderr, command
    if face == ("service",):
        assert home.svcq("service").returncode == 1  # there is one for each home
    home.client.cancel(held)
    home.ended(held)
    os.kill(service.pid, signal.SIGTERM)
    assert service.wait(PATIENCE) == 0
    eventually(lambda: home.client.workers() == [], PATIENCE)
    assert home.client.clock().elsewhere == ()


def test_an_address_from_a_variable_stays_with_workers(home: Home) -> None:
    store = home.client.config.store
    home.configure(QUICK)
    home.start("up", "--count", 1, env={"SVCQ_STORE": store})
    eventually(home.client.workers, PATIENCE)
    job = home.run("env")
    assert "SVCQ_STORE=postgresql://worker@" in home.output(job.id)
    assert PASSWORD not in home.output(job.id)
    assert PASSWORD not in home.said()
