"""Following a store on which many write at once: numbers are committed in any order, or never."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import psycopg
import pytest

from svcq.client import Client
from svcq.config import load
from svcq.jobs import Change
from svcq.web.hub import Hub
from tests.helpers import eventually
from tests.postgres import Server


@pytest.fixture
def client(postgres: Server, tmp_path: Path) -> Iterator[Client]:
    address = postgres.database()
    with Client(config=load(tmp_path / "home", {"SVCQ_STORE": address})) as client:
        client.command("true")
        yield client
    while opened:
        opened.pop().close()
    postgres.drop(address)


opened: list[psycopg.Connection[tuple[object, ...]]] = []


class Open:
    """A connection whose transaction has written a change, and has yet to end."""

    def __init__(self, client: Client, changes: int = 1) -> None:
        self.connection = psycopg.connect(client.config.store)
        opened.append(self.connection)
        self.execute = self.connection.execute
        # As every transaction of ours that writes: holding the lock of those who do.
        self.execute(f"SELECT pg_advisory_xact_lock_shared({0x73766371}, 2)")
        for _ in range(changes):
            self.execute("INSERT INTO svcq.changes (job, at, kind) VALUES (7, 0, 'late')")

    def commit(self) -> None:
        self.connection.commit()
        self.connection.close()

    def undo(self) -> None:
        self.connection.rollback()
        self.connection.close()


def kinds(changes: list[Change]) -> list[str]:
    return [change.kind for change in changes]


def test_what_is_committed_late_is_seen(client: Client) -> None:
    follower = client.follow()
    first, second = Open(client, 2), Open(client)
    last = Open(client)
    last.commit()
    (seen,) = follower.next(5)
    assert follower.cursor == seen.seq - 4
    assert follower.newest == seen.seq
    assert follower.next(0.05) == []
    second.commit()
    assert [change.seq for change in follower.next(5)] == [seen.seq - 1]
    assert follower.cursor == seen.seq - 4
    first.commit()
    assert [change.seq for change in follower.next(5)] == [seen.seq - 3, seen.seq - 2]
    assert follower.next(0) == []
    assert follower.cursor == follower.newest == seen.seq
    assert not follower.missed


def test_what_is_never_committed_is_not_waited_for(client: Client) -> None:
    follower = client.follow()
    never = Open(client)
    job = client.command("true").id
    assert [change.job for change in follower.next(5)] == [job]
    assert follower.cursor < follower.newest
    never.undo()

    def closed() -> bool:
        assert follower.next(0) == []
        return follower.cursor == follower.newest

    eventually(closed)
    assert not follower.missed


def test_a_follower_that_begins_hears_of_what_is_still_being_written(client: Client) -> None:
    for _ in range(3):
        client.command("true")
    late = Open(client)
    client.command("true")
    follower = client.follow()
    assert follower.next(0) == []
    late.commit()
    assert kinds(follower.next(5)) == ["late"]
    assert follower.next(0.05) == []


def test_who_comes_back_to_its_cursor_misses_nothing(client: Client) -> None:
    follower = client.follow()
    late = Open(client)
    client.command("true")
    seen = follower.next(5)
    late.commit()
    again = client.follow(follower.cursor)
    assert [change.seq for change in again.next(5)] == [seen[0].seq - 1, seen[0].seq]


def test_a_page_of_changes_waits_a_moment_for_what_is_being_written(client: Client) -> None:
    follower = client.follow()
    late = Open(client)
    client.command("true")
    ending = threading.Timer(0.2, late.commit)
    ending.start()
    assert kinds(follower.settled(10)) == ["late", "pending"]
    ending.join()


def test_nothing_is_missed_and_nothing_told_twice_among_many_writers(client: Client) -> None:
    follower = client.follow()

    def write(n: int) -> None:
        with Client(config=client.config) as writer:
            for step in range(30):
                if (step + n) % 5 == 0:
                    Open(client).undo()
                writer.command("true", tags=["x"] if step % 2 else [])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    jobs: list[int] = []
    while len(jobs) < 120 and (news := follower.next(timeout=30)):
        jobs += [change.job for change in news]
    for thread in threads:
        thread.join()
    assert sorted(jobs) == sorted(job.id for job in client.list(limit=1000))[1:]
    assert len(set(jobs)) == 120
    assert not follower.missed


def test_those_who_follow_the_service_get_what_is_committed_late(client: Client) -> None:
    async def follow() -> None:
        hub = Hub(client.config, print)
        try:
            async with asyncio.timeout(30), aclosing(hub.frames()) as frames:
                begin = await anext(frames)
                late = Open(client)
                job = client.command("true").id
                early = await anext(frames)
                assert begin is not None
                assert early is not None
                assert (early.jobs, early.before) == ({job}, begin.last)
                # Whoever comes back from here gets all of it, the late one among them.
                assert early.cursor == begin.cursor < early.last
                late.commit()
                after = await anext(frames)
                assert after is not None
                assert (after.jobs, after.before, after.last) == ({7}, early.last, early.last)
                assert after.cursor == after.last
                assert b'"late"' in after.body
        finally:
            await asyncio.to_thread(hub.close)

    asyncio.run(follow())
