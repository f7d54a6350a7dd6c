"""Server-sent events: what changes, as it happens, with resumption by Last-Event-ID."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svcq.changes import Follower
from svcq.client import Client
from svcq.client.verbs import PREFIX, whole
from svcq.errors import Unreachable
from svcq.web.api import encoded, json_response
from svcq.web.body import read_query
from svcq.web.desk import Desk
from svcq.web.hub import Frame, Hub, encode_changes
from svcq.web.routes import Asked, Route

MOST_STREAMS = 400
_MOST_RESUMED = 10_000  # changes; who was away for longer draws everything anew
_SEND_PATIENCE = 30.0  # seconds in which a follower reads what it is sent, or is dropped
_RETRY = b"retry: 1000\n"
CURSOR = whole(0, 1 << 62)


class Streams:
    """How many there are; each holds a connection for as long as it likes."""

    def __init__(self) -> None:
        self._open = 0

    def __enter__(self) -> None:
        if self._open >= MOST_STREAMS:
            raise Unreachable(
                f"There are {MOST_STREAMS} streams open already: close some, then try again."
            )
        self._open += 1

    def __exit__(self, *_: object) -> None:
        self._open -= 1


class EventStream(Response):
    """Sends events as they come, until the caller has gone or stops reading."""

    def __init__(self, streams: Streams, events: AsyncIterator[bytes]) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self.headers["x-accel-buffering"] = "no"
        self._streams = streams
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body"})
                return
            sending = asyncio.ensure_future(self._send(scope, send))
            leaving = asyncio.ensure_future(_gone(receive))
            try:
                await asyncio.wait({sending, leaving}, return_when="FIRST_COMPLETED")
                if sending.done():
                    sending.result()
            finally:
                for task in (sending, leaving):
                    task.cancel()
                await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, scope: Scope, send: Send) -> None:
        async for event in self._events:
            try:
                async with asyncio.timeout(_SEND_PATIENCE):
                    await send({"type": "http.response.body", "body": event, "more_body": True})
            except TimeoutError:
                scope["connection"].drop()
                return
        await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def event(kind: str, cursor: int | str, data: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(cursor).encode(), kind.encode(), data)


PING = b":\n\n"


def routes(desk: Desk, hub: Hub, streams: Streams) -> list[Route]:
    async def changes(asked: Asked) -> Response:
        said = read_query(asked.request, CHANGES_QUERY)
        after = said.get("after", 0)
        wait = said.get("wait", 0)
        limit = said.get("limit", 1000)
        page = await desk.look(lambda client: _page(client, after, limit))
        if not page["changes"] and wait:
            await _wait_for(hub, page["cursor"], wait)
            page = await desk.look(lambda client: _page(client, after, limit))
        return json_response(encoded(page))

    async def last(_: Asked) -> Response:
        n = await desk.look(lambda client: client.store.last_change())
        return json_response(encoded({"n": n}))

    async def stream(asked: Asked) -> Response:
        after = _resume_from(asked.request)
        return EventStream(streams, _change_events(desk, hub, after))

    return [
        Route("GET", f"{PREFIX}/changes", changes),
        Route("GET", f"{PREFIX}/changes/last", last),
        Route("GET", f"{PREFIX}/stream", stream),
    ]


_SETTLE = 0.2  # seconds for which a commit with a lower number is waited for
CHANGES_QUERY = {"after": CURSOR, "limit": whole(1, 10_000, 1000), "wait": whole(0, 60, 0)}
STREAM_QUERY = {"after": CURSOR}


def _page(client: Client, after: int, limit: int) -> dict[str, Any]:
    found = Follower(client.store, after).settled(_SETTLE, limit)
    oldest = client.store.oldest_change()
    return {
        "changes": [change.as_json() for change in found],
        "cursor": found[-1].seq if found else max(after, client.store.last_change()),
        "missed": oldest > after + 1,
    }


async def _wait_for(hub: Hub, after: int, seconds: int) -> None:
    async with aclosing(hub.frames()) as frames:
        try:
            async with asyncio.timeout(seconds):
                async for frame in frames:
                    if frame is not None and frame.last > after:
                        return
        except TimeoutError:
            return


def _resume_from(request: Request) -> int | None:
    said = read_query(request, STREAM_QUERY)
    last = request.headers.get("last-event-id", "")
    if last.isascii() and last.isdigit() and len(last) < 19:
        return int(last)
    after: int | None = said.get("after")
    return after


async def _change_events(desk: Desk, hub: Hub, after: int | None) -> AsyncIterator[bytes]:
    at = after
    async with aclosing(hub.frames()) as frames:
        async for frame in frames:
            if frame is None:
                yield PING
                continue
            begins = not frame.body and not frame.missed
            at = frame.last if at is None else at
            if begins:
                yield _RETRY + event("ready", min(at, frame.cursor), _cursor(at))
            if frame.before != at:
                # Resumed, or too slow for what the hub keeps; or a cursor of another store.
                yield await _missing(desk, at, frame)
            at = frame.last
            if frame.missed:
                yield event("reset", frame.cursor, _cursor(at))
            elif not begins:
                yield event("changes", frame.cursor, b"[" + frame.body + b"]")


async def _missing(desk: Desk, after: int, frame: Frame) -> bytes:
    """What the hub no longer has before a frame, as one event; a reset where there is too much."""
    until = frame.before
    body = await desk.look(_between(after, until))
    if body is None:
        return event("reset", min(until, frame.cursor), _cursor(until))
    return event("changes", min(until, frame.cursor), b"[" + body + b"]")


def _cursor(at: int) -> bytes:
    return json.dumps({"cursor": at}).encode()


def _between(after: int, until: int) -> Callable[[Client], bytes | None]:
    """Changes that are no longer kept here, encoded; None when there are too many, or too few."""

    def look(client: Client) -> bytes | None:
        if not 0 < until - after <= _MOST_RESUMED or client.store.oldest_change() > after + 1:
            return None
        found = client.changes(after, limit=_MOST_RESUMED)
        return encode_changes([change for change in found if change.seq <= until])

    return look
