"""The web server beside the service's own work: in a thread and a loop of its own.

It never holds the service up and cannot take it down: whatever goes wrong here is said, and it is
started anew.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import uvicorn

from svcq.config import Config
from svcq.errors import SvcqError
from svcq.host import peers
from svcq.service.wishes import Wishes
from svcq.web import tokens
from svcq.web.access import Access
from svcq.web.app import build
from svcq.web.connections import Connection, Strangers
from svcq.web.desk import Desk
from svcq.web.hub import Hub
from svcq.web.listen import Listening, listen, listen_on
from svcq.web.offer import keep_offering
from svcq.web.sessions import Sessions
from svcq.web.users import Users

_LONGEST_BACKOFF = 60.0
_TICK = 1.0
_AT_ONCE = 32  # connections that are taken before those that are there are looked at


class Web:
    """Serves while it is entered."""

    def __init__(self, config: Config, say: Callable[[str], None], wishes: Wishes) -> None:
        self._config = config
        self._say = say
        self._wishes = wishes
        self._leaving = threading.Event()
        self._server: _Server | None = None
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        if self._server is not None:
            self._server.leave()
        self._thread.join(5)

    def _run(self) -> None:
        backoff = 1.0
        while not self._leaving.is_set():
            began = time.monotonic()
            try:
                with listen(self._config) as listening:
                    asyncio.run(self._serve(listening))
            except (SvcqError, OSError) as error:
                self._say(f"The page and the API are not served: {error}")
            except (Exception, SystemExit) as error:  # noqa: BLE001  the service goes on
                self._say(f"The page and the API ended with {error!r}; they are started anew.")
            backoff = 1.0 if time.monotonic() - began > 60 else min(2 * backoff, _LONGEST_BACKOFF)
            self._leaving.wait(backoff)

    async def _serve(self, listening: Listening) -> None:
        home = self._config.home
        owner = peers.account_name(peers.own_uid())
        users = Users(home)
        sites = [listening.site, *([listening.beyond.site] if listening.beyond else [])]
        access = Access(sites, tokens.Tokens(home), Sessions(), owner, users.caller_of)
        desk = Desk(self._config)
        hub = Hub(self._config, self._say)
        offering: asyncio.Future[None] | None = None
        try:
            app = build(desk, hub, access, self._wishes, self._say)
            self._server = _Server(app, listening, access)
            if self._leaving.is_set():
                return
            for site in sites:
                self._say(f"The page is at {site.origin}: svcq open opens it.")
            for trouble in listening.troubles:
                self._say(trouble)
            if self._config.store_is_shared:
                offering = asyncio.ensure_future(
                    keep_offering(desk, self._config, listening.beyond)
                )
            await self._server.serve(listening.sockets)
        finally:
            self._server = None
            if offering is not None:
                offering.cancel()
            hub.close()
            desk.close()


class _Server(uvicorn.Server):
    """uvicorn, which sleeps until there is something to do."""

    def __init__(self, app: Any, listening: Listening, access: Access) -> None:
        logging.getLogger("uvicorn").disabled = True
        for name in ("uvicorn.error", "uvicorn.access"):
            # What strangers send must not fill the service's log; our own errors are said.
            logging.getLogger(name).disabled = True
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=60,
            backlog=_AT_ONCE,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)
        config.load()
        self._beyond = listening.beyond
        self._access = access
        self._asleep: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._asleep = asyncio.Event()
        self.lifespan.state["strangers"] = Strangers()
        await super().startup(sockets)
        if self._beyond is not None:
            server = await self._loop.create_server(
                self._new_connection, sock=self._beyond.socket, ssl=self._beyond.tls
            )
            self.servers.append(server)
        for server in self.servers:
            for one in server.sockets:
                listen_on(one)

    def _new_connection(self) -> Connection:
        return Connection(self.config, self.server_state, self.lifespan.state)

    async def main_loop(self) -> None:
        counter = 0
        assert self._asleep is not None
        while not await self.on_tick(counter):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asleep.wait(), _TICK)
            if self._access.refresh():
                self._put_out()

    def _put_out(self) -> None:
        """Whoever was let in by a token, or by a cookie that came of one."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection) and connection.peer is None:
                connection.drop()

    def leave(self) -> None:
        self.should_exit = True
        if self._loop is not None and self._asleep is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._asleep.set)
