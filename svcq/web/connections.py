"""Connections, and what they may cost: a caller who says nothing, or never ends, is let go.

Anyone on the machine can connect, and hold connections. Those whose caller is not known yet are
few and short-lived: when more come, the oldest is dropped, so that nobody can keep others out.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from svcq.host import peers
from svcq.web import problems
from svcq.web.problems import Problem

MOST = 700
"""Connections in all. The service needs files for its own work, of which it may have 1024."""
MOST_STRANGERS = 200
HEAD_LIMIT = 96 << 10  # bytes of a request's first line and headers: a query of five long texts
HEAD_PATIENCE = 10.0  # seconds for them to arrive


class Strangers:
    """Connections whose caller is not known yet, oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[Connection, None] = {}

    def add(self, connection: Connection) -> None:
        self._waiting[connection] = None
        while len(self._waiting) > MOST_STRANGERS:
            next(iter(self._waiting)).drop()

    def remove(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)


class Connection(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.trusted = False
        if len(self.connections) > MOST:
            self.transport.abort()
        self._head = 0
        self._deaf = False
        self._patience: asyncio.TimerHandle | None = None
        self.peer = _peer_of(transport)
        self._strangers: Strangers = self.app_state["strangers"]
        self._strangers.add(self)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._strangers.remove(self)
        self._have_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        if self._between_requests():
            self._expect_head()
        super().data_received(data)
        if self._between_requests():
            # What the parser keeps of a head that is not whole yet, it tells nobody.
            self._head += len(data)
            if self._head > HEAD_LIMIT:
                self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["connection"] = self  # type: ignore[typeddict-unknown-key]
        self._size = 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if not self._deaf:
            self._have_head()
            super().on_headers_complete()

    def trust(self) -> None:
        """Its caller is known."""
        self.trusted = True
        self._strangers.remove(self)

    def drop(self) -> None:
        """At once, whatever is still to be sent: a caller who does not read would wait for ever."""
        self._strangers.remove(self)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, f"{msg.rstrip('.')}: send HTTP/1.1."))

    def _refuse_head(self) -> None:
        most = HEAD_LIMIT >> 10
        self._refuse(Problem(431, f"The head of the request has over {most} KiB: send less."))

    def _refuse(self, problem: Problem) -> None:
        """What cannot be read as HTTP is answered all the same, and what follows is not heard: a
        caller who is still sending would otherwise never see the answer."""
        if self._deaf or self.transport.is_closing():
            return
        response = problems.answer(problem)
        head = [STATUS_LINE[problem.status].rstrip(), b"connection: close"]
        head += [name + b": " + value for name, value in response.raw_headers]
        self.transport.write(b"\r\n".join([*head, b"", bytes(response.body)]))
        self._deaf = True
        self.transport.write_eof()
        self._have_head()
        self._expect_head()

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > HEAD_LIMIT:
            self._refuse_head()

    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect_head(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(2.0 if self._deaf else HEAD_PATIENCE, self.drop)

    def _have_head(self) -> None:
        self._head = 0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def _peer_of(transport: asyncio.Transport) -> int | None:
    """The user at the other end of a local socket; None for one of the network."""
    end: Any = transport.get_extra_info("socket")
    if end.family != getattr(socket, "AF_UNIX", None):
        return None
    return peers.uid_of(end)
