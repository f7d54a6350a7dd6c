"""Which handler a request is for. Names in a path may hold anything, a slash too, so paths are
taken apart before they are decoded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svcq.errors import NotFound
from svcq.web.callers import Caller
from svcq.web.problems import Problem

Handler = Callable[["Asked"], Awaitable[Response]]


class Asked(NamedTuple):
    """A request, with whoever sends it and what its path names."""

    request: Request
    caller: Caller
    path: dict[str, str]


class Route(NamedTuple):
    method: str
    path: str
    handle: Handler


class Routes:
    def __init__(self, routes: list[Route]) -> None:
        self._by_size: dict[int, list[tuple[list[str], Route]]] = {}
        for route in routes:
            parts = route.path.split("/")
            self._by_size.setdefault(len(parts), []).append((parts, route))
        for same_size in self._by_size.values():
            # A word that stands there comes before a place for any: /jobs/purge, /jobs/{job}.
            same_size.sort(key=lambda one: [part.startswith("{") for part in one[0]])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route, named = self._find(scope)
        response = await route.handle(Asked(Request(scope, receive), scope["caller"], named))
        await response(scope, receive, send)

    def _find(self, scope: Scope) -> tuple[Route, dict[str, str]]:
        given = [_decoded(part) for part in scope["raw_path"].split(b"/")]
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        allowed: list[tuple[list[str], str]] = []
        for parts, route in self._by_size.get(len(given), ()):
            named = _named(parts, given)
            if named is None:
                continue
            if route.method == method:
                return route, named
            if not allowed or parts == allowed[0][0]:
                allowed.append((parts, route.method))
        if allowed:
            methods = ", ".join(sorted({method for _, method in allowed}))
            raise Problem(
                405, f"{scope['path'][:100]!r} does not take {scope['method']}: use {methods}.",
                headers={"allow": methods},
            )  # fmt: skip
        raise NotFound(
            f"There is nothing at {scope['path'][:100]!r}: /api/v1/openapi.json lists it."
        )


def _named(parts: list[str], given: list[str]) -> dict[str, str] | None:
    named = {}
    for part, value in zip(parts, given, strict=True):
        if part.startswith("{") and value:
            named[part[1:-1]] = value
        elif part != value:
            return None
    return named


def _decoded(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise Problem(400, "The path is not UTF-8: encode it so.") from None
