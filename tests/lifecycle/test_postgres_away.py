"""PostgreSQL restarts, crashes, hangs up, is slow, is full: all wait, say so once, and go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import psycopg
import pytest

from svcq.client import Client
from svcq.errors import NameTaken, StoreError
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, QUICK, Home
from tests.postgres import Server, serving

MANY = 12


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that may be stopped and filled: no other test uses it."""
    with serving(max_connections="30", log_min_messages="panic") as server:
        yield server


@pytest.fixture
def home(server: Server, tmp_path: Path) -> Iterator[Home]:
    store = server.database()
    home = Home(tmp_path, f'store = "{store}"\nbusy_wait = "300ms"\n{QUICK}', store)
    yield home
    home.close()
    server.drop(store)


def away(said: str) -> list[str]:
    """What was said of a store that does not answer."""
    signs = ("does not answer", "was not opened", "cannot be reached", "was lost while")
    return [line for line in said.splitlines() if any(sign in line for sign in signs)]


class Jobs:
    """A job again and again while a block lasts, each with a name, so that none is added twice."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._add_all)
        self.added: list[str] = []
        self.ledger = home.work / "ledger"

    def __enter__(self) -> Self:
        self._thread.start()
        eventually(lambda: len(self.ran()) >= MANY, PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()

    def ran(self) -> list[str]:
        return self.ledger.read_text().split() if self.ledger.exists() else []

    def _add_all(self) -> None:
        with Client(config=self._home.client.config) as client:
            while not self._leaving.wait(0.02):
                self._add(client, f"job-{len(self.added)}")

    def _add(self, client: Client, name: str) -> None:
        while not self._leaving.is_set():
            try:
                client.command(f"echo {name} >> {self.ledger}; sleep 0.05", name=name)
            except NameTaken:
                pass  # it was told after all
            except StoreError:
                continue
            self.added.append(name)
            return

    def account(self) -> None:
        """Each job that was told of has ended well, and its run is in the ledger."""
        client = self._home.client
        eventually(lambda: client.counts()["completed"] >= len(self.added), PATIENCE)
        assert {job.state for job in client.list(limit=10_000)} == {"completed"}
        assert set(self.ran()) >= set(self.added)
        for job in client.list(limit=10_000):
            # What ran again was given back or lost, and never failed.
            assert (job.failures, self.ran().count(str(job.name)) <= job.run) == (0, True)
        assert not list((self._home.path / "spool").glob("*.json"))


def restart(server: Server) -> None:
    server.restart()


def crash(server: Server) -> None:
    server.restart("immediate")


def hang_up(server: Server) -> None:
    """On all that is idle, as a server or a firewall may do at any time."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        for _ in range(5):
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'svcq' AND pid <> pg_backend_pid()"
            )
            connection.execute("SELECT pg_sleep(0.1)")


@pytest.mark.parametrize("happens", [restart, crash, hang_up])
def test_each_job_is_accounted_for(
    home: Home, server: Server, happens: Callable[[Server], None]
) -> None:
    worker = home.worker("--slots", 2)
    with Jobs(home) as jobs:
        for _ in range(2):
            happens(server)
            ran = len(jobs.ran())
            eventually(lambda ran=ran: len(jobs.ran()) > ran + MANY, PATIENCE)
    jobs.account()
    assert worker.process.poll() is None
    said = home.said()
    assert len(away(said)) <= (10 if happens is hang_up else 2)
    assert said.count("The store answers again") == len(away(said))


def test_the_outcome_of_what_ended_meanwhile_is_delivered(home: Home, server: Server) -> None:
    home.worker()
    go = home.work / "go"
    job = home.add(f"until [ -e {go} ]; do sleep 0.02; done; echo told")
    home.wait_until_running(job)
    server.stop("immediate")
    try:
        go.touch()
        eventually(lambda: list((home.path / "spool").glob("*.json")), PATIENCE)
        lines = len(away(home.said()))
        time_to_say_it_again = time.monotonic() + 3
        eventually(lambda: time.monotonic() > time_to_say_it_again, PATIENCE)
        assert (lines, len(away(home.said()))) == (1, 1)
    finally:
        server.start()
    ended = home.ended(job)
    assert (ended.state, ended.run, home.last_run(job).tail) == ("completed", 1, "told")
    eventually(lambda: "The store answers again" in home.said(), PATIENCE)


def test_a_store_that_someone_has_locked_is_waited_for(home: Home, server: Server) -> None:
    home.worker()
    first = home.add("sleep 0.3; echo first")
    home.wait_until_running(first)
    with psycopg.connect(home.client.config.store) as connection:
        connection.execute("LOCK TABLE svcq.jobs IN ACCESS EXCLUSIVE MODE")
        eventually(lambda: list((home.path / "spool").glob("*.json")), PATIENCE)
        eventually(lambda: "was locked by another transaction" in home.said(), PATIENCE)
        connection.rollback()
    assert home.ended(first).state == "completed"
    assert home.said().count("was locked by another transaction") == 1
    eventually(lambda: "The store answers again" in home.said(), PATIENCE)


def test_a_server_without_connections_left_is_waited_for(home: Home, server: Server) -> None:
    home.worker()
    with ExitStack() as taken:
        hog = taken.enter_context(psycopg.connect(server.url(), autocommit=True))

        def take_all() -> None:
            with suppress(psycopg.OperationalError):
                while True:
                    taken.enter_context(psycopg.connect(server.url(), autocommit=True))

        def says_so() -> bool:
            hog.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'svcq'"
            )
            take_all()
            return "it has no connections left" in home.said()

        take_all()
        eventually(says_so, PATIENCE, 0.5)
    assert home.run("echo done").state == "completed"
    eventually(lambda: "The store answers again" in home.said(), PATIENCE)
    assert home.said().count("it has no connections left") == 1


def test_a_service_waits_says_so_and_goes_on(home: Home, server: Server) -> None:
    home.start("up", "--count", 1, "--slots", 2)
    home.svcq("schedule", "add", "often", "--every", "1s", "--", "true")
    with Jobs(home) as jobs:
        server.stop("immediate")
        eventually(lambda: len(away(home.said())) >= 2, PATIENCE)
        server.start()
        ran = len(jobs.ran())
        eventually(lambda: len(jobs.ran()) > ran + MANY, PATIENCE)
    eventually(lambda: "The store answers again" in home.said(), PATIENCE)
    eventually(lambda: set(jobs.added) <= set(jobs.ran()), PATIENCE)
    fired = home.client.counts()["completed"]
    eventually(lambda: home.client.counts()["completed"] > fired, PATIENCE)
    (home.work / "all").write_text(home.said())


def test_a_service_that_starts_before_its_store_waits_for_it(home: Home, server: Server) -> None:
    job = home.add("echo done")
    server.stop()
    try:
        first = home.start("service")
        eventually(lambda: away(home.said()), PATIENCE)
        first.terminate()
        assert first.wait(PATIENCE) == 0
        second = home.start("service")
        eventually(lambda: len(away(home.said())) >= 2, PATIENCE)
    finally:
        server.start()
    assert home.ended(job).state == "completed"
    second.terminate()
    assert second.wait(PATIENCE) == 0
    assert "Traceback" not in home.said()
