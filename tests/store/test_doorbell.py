"""The doorbell of a store that machines share: heard everywhere, and left at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from svcq.client import Client
from svcq.config import load
from svcq.host.bell import Bell
from tests.helpers import eventually
from tests.postgres import Server, serving


@pytest.fixture
def client(postgres: Server, tmp_path: Path) -> Iterator[Client]:
    address = postgres.database()
    with Client(config=load(tmp_path / "home", {"SVCQ_STORE": address})) as client:
        yield client
    postgres.drop(address)


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Bell]:
    bell = Bell(tmp_path, "1")
    yield bell
    bell.close()


def rung(bell: Bell) -> bool:
    """Whether it was, since the last time."""
    found = bell.wait(0)
    bell.heard()
    return found


def listeners(client: Client) -> list[int]:
    with psycopg.connect(client.config.store) as connection:
        return [
            pid for (pid,) in connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN svcq'"
                " AND datname = current_database()"
            )
        ]  # fmt: skip


def test_a_ring_is_heard_by_those_it_is_for(client: Client, bell: Bell, tmp_path: Path) -> None:
    engine, clock = client.store.engine, Bell(tmp_path, "clock")
    with engine.hear(bell), engine.hear(clock, "clocks"):
        eventually(lambda: rung(bell))  # as soon as it listens, for what was written before
        eventually(lambda: rung(clock))
        with Client(config=client.config) as other:
            other.command("true")
            eventually(lambda: rung(bell))
            assert not rung(clock)
            other.schedule("often", "true", every="1h")
            eventually(lambda: rung(clock))
    clock.close()


def test_whoever_was_hung_up_on_listens_again(client: Client, bell: Bell) -> None:
    with client.store.engine.hear(bell):
        (listener,) = eventually(lambda: listeners(client))
        eventually(lambda: rung(bell))
        with psycopg.connect(client.config.store, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (listener,))
        eventually(lambda: listeners(client) not in ([], [listener]))
        eventually(lambda: rung(bell))


def test_leaving_takes_no_time_and_ends_the_connection(client: Client, bell: Bell) -> None:
    for _ in range(5):
        with client.store.engine.hear(bell):
            eventually(lambda: listeners(client))
            left = time.monotonic()
        assert time.monotonic() - left < 0.4
        eventually(lambda: listeners(client) == [])


def test_a_bell_that_was_left_is_rung_no_more(tmp_path: Path, bell: Bell) -> None:
    with serving() as server:
        config = load(tmp_path / "home", {"SVCQ_STORE": server.url()})
        with Client(config=config) as client, Client(config=config) as other:
            with client.store.engine.hear(bell):
                eventually(lambda: rung(bell))
                server.stop("immediate")
            rung(bell)
            server.start()
            other.command("true")
            eventually(lambda: other.counts()["pending"] == 1)
            assert not rung(bell)
