"""Letting callers in: by the peer of a local socket, by a token, or by the page's cookie.

Browsers run the pages of strangers, who may send us requests with the reader's own cookies and
from the reader's own machine. So a request must name our host, come from our origin where it says
where it comes from, and the cookie lives at a name that no other local server has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple

from svcq.errors import NotPermitted, Refused
from svcq.host.peers import account_name
from svcq.web.callers import Caller
from svcq.web.problems import Problem
from svcq.web.sessions import COOKIE, Sessions
from svcq.web.tokens import Tokens

_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_SAFE_METHODS = ("GET", "HEAD")


class Site(NamedTuple):
    """Where the page lives: a name of its own, since cookies do not tell ports apart."""

    name: str
    port: int
    secure: bool = False  # for others than this machine, which there is with TLS alone

    @property
    def origin(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self._shown}"

    @property
    def own_hosts(self) -> frozenset[str]:
        return frozenset({self._shown, f"{self.name}:{self.port}"})

    @property
    def hosts(self) -> frozenset[str]:
        """Those under which programs with a token may ask, too."""
        others = () if self.secure else _LOCAL_NAMES
        return self.own_hosts | {f"{name}:{self.port}" for name in others}

    @property
    def _shown(self) -> str:
        """As browsers write it: without the usual port."""
        usual = 443 if self.secure else 80
        return self.name if self.port == usual else f"{self.name}:{self.port}"


class Access:
    def __init__(
        self,
        sites: Sequence[Site],
        tokens: Tokens,
        sessions: Sessions,
        owner: str | None,
        peer: Callable[[int], Caller | None],
    ) -> None:
        self._sites = {site.secure: site for site in sites}
        self._tokens = tokens
        self.sessions = sessions
        self._owner = owner
        self._peer = peer
        self.failures = Failures()

    def of_peer(self, uid: int) -> Caller:
        caller = self._peer(uid)
        if caller is None:
            raise Problem(
                403,
                f"{account_name(uid)} may not use this svcq: "
                f"its owner can allow it, with svcq user add {account_name(uid)}.",
                kind=NotPermitted,
            )
        return caller

    def site(self, *, secure: bool = False) -> Site:
        """The one for this machine, or the one for others."""
        if secure not in self._sites:
            raise Refused("svcq is not served beyond this machine: set web.address for that.")
        return self._sites[secure]

    def of_request(self, site: Site, method: str, headers: Mapping[str, str]) -> Caller | None:
        """Who sends it over the network; None for nobody we know."""
        self._check_host(site, headers)
        self._check_origin(site, headers)
        if "authorization" in headers:
            return self._of_token(headers["authorization"])
        if headers["host"].lower() not in site.own_hosts:
            return None  # a cookie that came to another name was not meant for us
        return self._of_cookie(site, method, headers)

    def _check_host(self, site: Site, headers: Mapping[str, str]) -> None:
        if headers.get("host", "").lower() not in site.hosts:
            raise Problem(
                421,
                f"This is not the server of {headers.get('host', '')[:100]!r}: "
                "ask it by the name that svcq open shows.",
                kind=NotPermitted,
            )

    def _check_origin(self, site: Site, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin")
        foreign = origin is not None and origin != site.origin
        if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise Problem(
                403, "The request comes from a page of another site: use svcq's own.",
                kind=NotPermitted,
            )  # fmt: skip

    def _of_token(self, header: str) -> Caller | None:
        scheme, _, token = header.partition(" ")
        role = self._tokens.role_of(token.strip()) if scheme.lower() == "bearer" else None
        return None if role is None else Caller(self._owner, role, "token")

    def _of_cookie(self, site: Site, method: str, headers: Mapping[str, str]) -> Caller | None:
        caller = self.sessions.caller_of(cookie_of(headers))
        if caller is None:
            return None
        if method not in _SAFE_METHODS and headers.get("origin") != site.origin:
            # Every browser says so when it changes something; what does not is no page of ours.
            raise Problem(
                403, "A change made with a cookie must say that it comes from svcq's own page.",
                kind=NotPermitted,
            )  # fmt: skip
        return caller

    def refresh(self) -> bool:
        """Whether the tokens were changed; all sessions have then ended."""
        if not self._tokens.refresh():
            return False
        self.sessions.end_all()
        return True


def cookie_of(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def cookie_header(value: str, site: Site, *, life: int | None = None) -> str:
    """Host-only (no Domain), unseen by scripts, sent by our own pages alone."""
    parts = [f"{COOKIE}={value}", "Path=/", "HttpOnly", "SameSite=Strict"]
    if life is not None:
        parts.append(f"Max-Age={life}")
    if site.secure:
        parts.append("Secure")
    return "; ".join(parts)


class Failures:
    """Guesses are answered ever more slowly; who knows the secret never waits."""

    _FORGET = 10.0
    _LONGEST = 5.0
    _MOST_WAITING = 50

    def __init__(self) -> None:
        self._count = 0.0
        self._last = time.monotonic()
        self._waiting = 0

    async def count(self) -> None:
        now = time.monotonic()
        self._count *= max(0.0, 1 - (now - self._last) / self._FORGET)
        self._count += 1
        self._last = now
        if self._waiting >= self._MOST_WAITING:
            raise Problem(
                429, "Too many were turned away just now: wait a while.", kind=NotPermitted,
                headers={"retry-after": "5"},
            )  # fmt: skip
        self._waiting += 1
        try:
            await asyncio.sleep(min(self._LONGEST, 0.02 * 1.5 ** min(self._count, 20)))
        finally:
            self._waiting -= 1


def no_token() -> Problem:
    return Problem(
        401,
        "Nobody is let in without a token: send Authorization: Bearer with the one in the file "
        "token of svcq's home, or open the page with svcq open.",
        kind=NotPermitted,
        headers={"www-authenticate": 'Bearer realm="svcq"'},
    )
