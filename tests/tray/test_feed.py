"""Following a real service: its stream, its tokens, its end and its return."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from svcq_tray.feed import Feed, News

from svcq.client.connection import Connection, LocalConnection, NetworkConnection
from tests.helpers import eventually
from tests.tray.desktop import PATIENCE
from tests.tray.wrong import Wrong, answer
from tests.web.served import Served


class Heard:
    def __init__(self) -> None:
        self.news: list[News] = []
        self.changed = threading.Event()

    def ended(self) -> dict[int, str]:
        return {end.job: end.kind for one in self.news for end in one.ended}


@contextmanager
def fed(
    connect: Callable[[float], Connection], cursor: int | None = None, silence: float = 40
) -> Iterator[tuple[Feed, Heard]]:
    heard = Heard()
    feed = Feed(connect, cursor, heard.news.append, heard.changed.set, silence)
    feed.start()
    try:
        yield feed, heard
    finally:
        feed.stop()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


def by_socket(served: Served) -> Callable[[float], Connection]:
    return lambda patience: LocalConnection(served.path / "service.sock", patience)


def by_network(served: Served) -> Callable[[float], Connection]:
    return lambda patience: NetworkConnection(served.path, patience)


def ready(feed: Feed) -> None:
    eventually(lambda: feed.cursor is not None and not feed.trouble, PATIENCE)


def test_ends_are_heard(served: Served, tmp_path: Path) -> None:
    # Run again it takes a while, or both would come in one piece, of which the last counts.
    again = f"[ -e {tmp_path}/been ] && sleep 2; touch {tmp_path}/been; exit 3"
    with fed(by_socket(served)) as (feed, heard):
        ready(feed)
        good, bad = served.run("true").id, served.run(again).id
        eventually(lambda: heard.ended() == {good: "completed", bad: "dead"}, PATIENCE)
        served.client.retry(bad)
        eventually(lambda: any(bad in one.went_on for one in heard.news), PATIENCE)


def test_what_happened_while_it_was_away_is_heard_afterwards(served: Served) -> None:
    with fed(by_socket(served)) as (feed, heard):
        ready(feed)
        served.stop()
        eventually(lambda: feed.trouble, PATIENCE)
        job = served.client.command("true").id
        served.client.cancel(job)
        served.serve()
        eventually(lambda: heard.ended().get(job) == "cancelled", PATIENCE)
        assert not feed.trouble


def test_a_cursor_that_was_kept_goes_on_where_it_was(served: Served) -> None:
    with fed(by_socket(served)) as (feed, _):
        ready(feed)
        cursor = feed.cursor
    job = served.run("true").id
    with fed(by_socket(served), cursor) as (_, heard):
        eventually(lambda: job in heard.ended(), PATIENCE)


def test_a_cursor_of_another_store_begins_anew(served: Served) -> None:
    with fed(by_socket(served), 1 << 40) as (feed, heard):
        eventually(lambda: any(one.missed for one in heard.news), PATIENCE)
        ready(feed)
        job = served.run("true").id
        eventually(lambda: job in heard.ended(), PATIENCE)


def test_a_token_that_was_rotated_is_read_anew(served: Served) -> None:
    with fed(by_network(served)) as (feed, heard):
        ready(feed)
        before = served.token()
        assert served.svcq("token", "rotate").returncode == 0
        assert served.token() != before
        heard.changed.clear()
        eventually(heard.changed.is_set, PATIENCE)  # the stream was put out
        job = served.run("true").id
        eventually(lambda: job in heard.ended(), PATIENCE)


def test_a_stream_that_hangs_counts_as_broken(tmp_path: Path) -> None:
    """It is opened, and then nothing comes, not even a sign of life."""
    path = tmp_path / "service.sock"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    wrong = Wrong(path, head + b'event: ready\nid: 5\ndata: {"cursor": 5}\n\n')
    try:
        with fed(lambda patience: LocalConnection(path, patience), silence=0.5) as (feed, heard):
            eventually(lambda: feed.trouble, PATIENCE)
            assert "timed out" in feed.trouble
            assert feed.cursor == 5
            eventually(lambda: wrong.asked > 2, PATIENCE)
            assert heard.changed.is_set()
    finally:
        wrong.close()


@pytest.mark.parametrize(
    "said",
    [
        answer("500 Internal Server Error", b"Oops", "text/plain"),
        answer("200 OK", b"event: changes\ndata: {{{\n\n", "text/event-stream"),
        answer("200 OK", b'event: changes\ndata: [{"job": 1}]\n\n', "text/event-stream"),
        answer("200 OK", b"\xff\xfe\n\n\n", "text/event-stream"),
        answer("200 OK", b"", "text/event-stream"),
    ],
    ids=["500", "no JSON", "other JSON", "no text", "nothing"],
)
def test_a_stream_that_makes_no_sense_is_tried_again(tmp_path: Path, said: bytes) -> None:
    path = tmp_path / "service.sock"
    wrong = Wrong(path, said)
    try:
        with fed(lambda patience: LocalConnection(path, patience)) as (feed, heard):
            eventually(lambda: wrong.asked > 2, PATIENCE)
            assert feed.trouble
            assert heard.ended() == {}
    finally:
        wrong.close()
