"""Server-sent events: what happens, to everyone who follows, however slowly they read."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPResponse
from pathlib import Path

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, lives
from tests.web.served import Event, Served, events


def add(served: Served, n: int = 1) -> list[int]:
    """Jobs that nobody runs: one change each."""
    return [served.client.command("true", hold=True).id for _ in range(n)]


def changes(stream: Iterator[Event], jobs: list[int]) -> list[int]:
    """The jobs of the changes that come, until those have."""
    seen: list[int] = []
    while not set(jobs) <= set(seen):
        event = next(stream)
        assert event.kind == "changes", event
        seen += [change["job"] for change in event.data]
        assert event.id == str(event.data[-1]["seq"])
    return seen


def begin(response: HTTPResponse) -> tuple[Iterator[Event], int]:
    assert response.status == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    stream = events(response)
    ready = next(stream)
    assert ready.kind == "ready"
    return stream, int(ready.data["cursor"])


def settle(served: Served) -> None:
    """Wait until the service has read all that the tests before have written."""

    def has_read_all() -> bool:
        with served.opened("GET", "/api/v1/stream") as response:
            return begin(response)[1] == served.client.follow().cursor

    eventually(has_read_all, PATIENCE)


def test_changes_come_as_they_happen(idle: Served) -> None:
    settle(idle)
    with idle.opened("GET", "/api/v1/stream") as response:
        stream, cursor = begin(response)
        assert cursor == idle.client.follow().cursor
        jobs = add(idle, 3)
        assert changes(stream, jobs) == jobs
        idle.client.cancel(jobs[0])
        event = next(stream)
        assert [(one["job"], one["kind"]) for one in event.data] == [(jobs[0], "cancelled")]


def test_a_stream_is_resumed_where_it_broke_off(idle: Served) -> None:
    with idle.opened("GET", "/api/v1/stream") as response:
        stream, _ = begin(response)
        first = add(idle)
        changes(stream, first)
        last = idle.client.follow().cursor
    missed = add(idle, 5)
    headers = {"Last-Event-ID": str(last)}
    with idle.opened("GET", "/api/v1/stream", headers=headers) as response:
        stream, cursor = begin(response)
        assert cursor == last
        assert changes(stream, missed) == missed
        more = add(idle)
        assert changes(stream, more) == more
    with idle.opened("GET", f"/api/v1/stream?after={last}") as response:
        stream, _ = begin(response)
        assert changes(stream, missed)[:5] == missed


def test_who_was_away_for_too_long_is_told_to_look_anew(idle: Served) -> None:
    add(idle, 5)
    # A cursor of another store, and one whose changes are gone.
    for cursor in ("4000000000", "0"):
        if cursor == "0":
            with idle.client.store.engine.write(durable=True) as tx:
                tx.run("forget_changes", since=1 << 60, until=1 << 60, n=2)
        settle(idle)
        with idle.opened("GET", "/api/v1/stream", headers={"Last-Event-ID": cursor}) as response:
            stream = events(response)
            assert next(stream).kind == "ready"
            reset = next(stream)
            assert reset.kind == "reset"
            assert reset.data["cursor"] == idle.client.follow().cursor
            jobs = add(idle)
            assert changes(stream, jobs) == jobs


def test_many_changes_come_in_few_events(idle: Served) -> None:
    settle(idle)
    with idle.opened("GET", "/api/v1/stream") as response:
        stream, _ = begin(response)
        began = time.monotonic()
        jobs: list[int] = []
        while time.monotonic() - began < 1:
            jobs += add(idle, 10)
        seen, count = [], 0
        while jobs[-1] not in seen:
            event = next(stream)
            count += 1
            seen += [change["job"] for change in event.data]
        took = time.monotonic() - began
    assert seen == jobs
    assert count <= took * 10 + 2


def test_all_followers_get_all(idle: Served) -> None:
    settle(idle)
    with ExitStack() as opened:
        streams = [
            begin(opened.enter_context(idle.opened("GET", "/api/v1/stream")))[0] for _ in range(20)
        ]
        jobs = add(idle, 50)
        for stream in streams:
            assert changes(stream, jobs) == jobs


def test_a_follower_that_does_not_read_holds_up_nobody_and_gets_the_rest_later(
    idle: Served,
) -> None:
    with ExitStack() as opened:
        slow, _ = begin(opened.enter_context(idle.opened("GET", "/api/v1/stream")))
        quick, _ = begin(opened.enter_context(idle.opened("GET", "/api/v1/stream")))
        memory = resident(idle.service.pid)
        jobs: list[int] = []
        for _ in range(20):
            new = [
                one.id
                for one in idle.client.add([idle.client.new_command("true", hold=True)] * 1000)
            ]
            changes(quick, new)
            jobs += new
        # 1.4 MB of events for each follower, of which nothing was kept for the slow one.
        assert resident(idle.service.pid) - memory < 16 << 20
        assert sorted(set(changes(slow, jobs))) == jobs


def test_waiting_for_a_change_instead_of_following(idle: Served) -> None:
    cursor = idle.ok("GET", "/changes/last")["n"]
    nothing = idle.ok("GET", f"/changes?after={cursor}&wait=1")
    assert nothing == {"changes": [], "cursor": cursor, "missed": False}
    with idle.opened("GET", f"/api/v1/changes?after={cursor}&wait=0") as response:
        assert response.status == 200
    (job,) = add(idle)
    said = idle.ok("GET", f"/changes?after={cursor}&wait=30")
    assert [change["job"] for change in said["changes"]] == [job]
    assert said["cursor"] == cursor + 1


def test_a_thousand_streams_that_nobody_reads_do_no_harm(idle: Served) -> None:
    request = (
        f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{idle.port}\r\n"
        f"Authorization: Bearer {idle.token()}\r\n\r\n"
    ).encode()
    with ExitStack() as opened:
        ends = []
        for _ in range(1000):
            end = opened.enter_context(closing(socket.create_connection(("127.0.0.1", idle.port))))
            end.sendall(request)
            ends.append(end)
        answers = [end.recv(12) for end in ends]
        assert answers.count(b"HTTP/1.1 200") == 400
        assert answers.count(b"HTTP/1.1 503") == 600
        began = time.monotonic()
        (job,) = add(idle)
        assert idle.ok("GET", f"/jobs/{job}")["state"] == "held"
        assert idle.ask("GET", "/counts", token=idle.token()).status == 200
        assert time.monotonic() - began < 20  # as any others on a busy machine
    assert lives(idle.service.pid)
    # The places are free again as soon as those are gone.
    eventually(
        lambda: idle.ask("GET", "/changes?wait=0").status == 200 and streams_open(idle) == 0,
        PATIENCE,
    )
    settle(idle)
    with idle.opened("GET", "/api/v1/stream") as response:
        stream, _ = begin(response)
        jobs = add(idle)
        assert changes(stream, jobs) == jobs


def streams_open(served: Served) -> int:
    """Connections of the network that the service still holds."""
    port = f":{served.port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[1].endswith(port) and line.split()[3] == "01" for line in lines)


def resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096
