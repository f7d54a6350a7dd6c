"""What every request goes through, before its body is read: who sends it, and from where; and
what every answer has: headers that keep a browser from doing more than it should with it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable

from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svcq.client.verbs import PREFIX
from svcq.errors import SvcqError
from svcq.web import problems
from svcq.web.access import Access, no_token
from svcq.web.callers import Caller
from svcq.web.connections import Connection
from svcq.web.problems import Problem

# They say nothing about jobs, and a browser needs them before anyone can log in.
_OPEN_PATHS = ("/login", "/health", "/health/live", "/health/ready", "/favicon.ico")
_OPEN_FOLDER = "/static/"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_DROPPED = 64 << 20  # bytes of a body that nobody wants
_DROPPED_OF_STRANGERS = 1 << 20
_DROP_PATIENCE = 5.0  # seconds
_NOT_KEPT = (b"cache-control", b"no-store")


class Guard:
    def __init__(self, app: ASGIApp, access: Access, say: Callable[[str], None]) -> None:
        self._app = app
        self._access = access
        self._say = say

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started, body = False, _Body(receive)

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [*message.get("headers", ()), *_HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(_NOT_KEPT)
                message = {**message, "headers": headers}
            await send(message)

        try:
            scope["caller"] = await self._let_in(scope)
            if scope["caller"] is None and _is_view(scope):
                await RedirectResponse("/login", 303)(scope, body, send_with_headers)
                return
            await self._app(scope, body, send_with_headers)
        except (SvcqError, Problem) as error:
            await self._end(scope, problems.answer(error), started, body, send_with_headers)
        except ClientDisconnect:
            return  # nobody is there to be told
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001  whatever it is, the service goes on
            self._say(f"A request failed ({scope['method']}): {traceback.format_exc()}")
            await self._end(scope, problems.unexpected(), started, body, send_with_headers)

    async def _let_in(self, scope: Scope) -> Caller | None:
        """Who it is; None where nobody need be known."""
        connection: Connection = scope["connection"]
        if connection.peer is not None:
            caller = self._access.of_peer(connection.peer)
        else:
            headers = headers_of(scope)
            site = self._access.site(secure=connection.scheme == "https")
            found = self._access.of_request(site, scope["method"], headers)
            if found is None:
                if _is_open(scope["path"]) or _is_view(scope):
                    return None
                if "authorization" in headers or "cookie" in headers:
                    await self._access.failures.count()
                raise no_token()
            caller = found
        connection.trust()
        return caller

    async def _end(
        self, scope: Scope, response: Response, started: bool, body: _Body, send: Send
    ) -> None:
        if started:
            # What was said so far cannot be taken back: the caller sees that it breaks off.
            scope["connection"].drop()
            return
        if not await body.read_to_the_end(trusted=scope["connection"].trusted):
            response.headers["connection"] = "close"
        await response(scope, body, send)


class _Body:
    """What arrives, and whether that was all of it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._whole = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self._whole = not message.get("more_body", False)
        return message

    async def read_to_the_end(self, *, trusted: bool) -> bool:
        """Drop what is left, if that is not too much: who is still sending would not hear the
        answer."""
        left = _DROPPED if trusted else _DROPPED_OF_STRANGERS
        try:
            async with asyncio.timeout(_DROP_PATIENCE):
                while left > 0 and not self._whole:
                    left -= len((await self()).get("body", b""))
        except TimeoutError:
            pass
        return self._whole


def _is_open(path: str) -> bool:
    return path in _OPEN_PATHS or path.startswith(_OPEN_FOLDER)


def _is_view(scope: Scope) -> bool:
    """Whether a browser asks for a view of the page: who is not let in is told how, as a page."""
    path = scope["path"]
    accepts = headers_of(scope).get("accept", "")
    reads = scope["method"] in ("GET", "HEAD") and "text/html" in accepts
    return reads and not (_is_open(path) or path.startswith(f"{PREFIX}/"))


def headers_of(scope: Scope) -> dict[str, str]:
    """By name; of one that is sent twice, all of it: nothing that is checked may hide behind."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
