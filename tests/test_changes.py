"""Following a store: every change once, in order, whoever made it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from svcq.changes import Follower, wait_for_write
from svcq.client import Client
from svcq.config import load
from tests.clients import open_client, run_python
from tests.store.conftest import Clock

DAY = 86_400


def kinds(follower: Follower, timeout: float = 0) -> list[str]:
    return [change.kind for change in follower.next(timeout)]


def test_each_change_comes_once_and_in_order(client: Client) -> None:
    follower = client.follow()
    job = client.command("true")
    (claim,) = client.fetch()
    assert kinds(follower) == ["pending", "processing"]
    client.progress(claim, 0.5)
    client.cancel(job)
    client.complete(claim)
    assert kinds(follower) == ["progress", "cancel_requested", "completed"]
    assert kinds(follower) == []
    assert not follower.missed


def test_a_follower_begins_now_or_at_its_cursor(client: Client) -> None:
    jobs = [client.command("true").id for _ in range(5)]
    assert client.follow().next(0) == []
    everything = client.follow(0).next(0)
    assert [change.job for change in everything] == jobs
    later = client.follow(everything[1].seq)
    assert later.next(0) == everything[2:]
    assert later.cursor == everything[-1].seq
    assert not later.missed


def test_long_news_come_in_parts(client: Client) -> None:
    follower = client.follow()
    jobs = [client.command("true").id for _ in range(7)]
    parts = [[change.job for change in follower.next(0, limit=3)] for _ in range(4)]
    assert parts == [jobs[:3], jobs[3:6], jobs[6:], []]


def test_a_follower_is_an_iterator(client: Client) -> None:
    follower = client.follow()
    jobs = [client.command("true").id for _ in range(3)]
    assert [change.job for change in itertools.islice(follower, 3)] == jobs


def test_without_news_the_answer_is_empty(client: Client) -> None:
    follower = client.follow()
    assert follower.next(0.02) == []
    client.queue("a", weight=2)  # a write, but no change of a job
    assert follower.next(0.02) == []


@pytest.mark.parametrize("own", [True, False], ids=["own write", "another's write"])
def test_a_waiting_follower_is_woken(client: Client, own: bool) -> None:
    with open_client(client.config.home) as other:
        follower = client.follow()
        assert follower.next(0) == []
        writer = client if own else other
        thread = threading.Thread(target=writer.command, args=("true",))
        thread.start()
        assert kinds(follower, timeout=30) == ["pending"]
        thread.join()


def test_waiting_for_a_write_gives_the_new_mark(client: Client) -> None:
    store = client.store
    mark = store.write_mark()
    assert wait_for_write(store, mark, 0.01) == mark
    client.command("true")
    assert wait_for_write(store, mark, 30) != mark


WRITER = """
import sys, svcq
with svcq.Client(store=sys.argv[1]) as client:
    for n in range(100):
        client.command("true", tags=[sys.argv[2]])
"""


def test_the_news_of_other_processes(client: Client) -> None:
    follower = client.follow()
    threads = [
        threading.Thread(target=run_python, args=(WRITER, client.config.store, tag))
        for tag in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    seen: list[int] = []
    jobs: list[int] = []
    while len(seen) < 200 and (news := follower.next(timeout=30)):
        seen += [change.seq for change in news]
        jobs += [change.job for change in news]
    for thread in threads:
        thread.join()
    assert seen == list(range(seen[0], seen[0] + 200))
    assert sorted(jobs) == sorted(job.id for job in client.list(limit=1000))
    assert follower.next(0) == []
    assert not follower.missed


@pytest.fixture
def aging(tmp_path: Path) -> Callable[[], tuple[Client, Clock]]:
    clock = Clock()
    return lambda: (Client(config=load(tmp_path / "home", {}), clock=clock), clock)


def test_what_was_trimmed_is_missed(aging: Callable[[], tuple[Client, Clock]]) -> None:
    client, clock = aging()
    with client:
        job = client.command("true")
        follower, started = client.follow(), client.follow(0)
        for priority in range(5):
            client.edit(job, priority=priority)
        clock.advance(2 * DAY)
        client.cancel(job)
        client.cleanup()
        assert "cancelled" in kinds(follower)
        assert follower.missed
        started.next(0)
        assert started.missed
        assert not client.follow().missed


def test_what_was_seen_before_it_was_trimmed_is_not_missed(
    aging: Callable[[], tuple[Client, Clock]],
) -> None:
    client, clock = aging()
    with client:
        follower = client.follow()
        job = client.command("true")
        assert kinds(follower) == ["pending"]
        clock.advance(2 * DAY)
        client.cancel(job)
        client.cleanup()
        assert kinds(follower) == ["cancelled"]
        assert not follower.missed
