"""Sessions of the page: a code that is good once and for a moment becomes a cookie.

They live in memory alone: whoever may have listened on our port while the service was away gets
cookies that mean nothing to the next one.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import NamedTuple

from svcq.web.callers import Caller

COOKIE = "svcq"
CODE_LIFE = 30.0  # seconds
SESSION_LIFE = 14 * 86400.0  # since it was last used
_MOST = 200


class _Entry(NamedTuple):
    caller: Caller
    until: float


class Sessions:
    def __init__(self) -> None:
        self._codes: dict[bytes, _Entry] = {}
        self._cookies: dict[bytes, _Entry] = {}

    def new_code(self, caller: Caller) -> str:
        """For someone who is let in already, in a browser as they are here."""
        return self._put(self._codes, caller._replace(by="cookie"), CODE_LIFE)

    def log_in(self, code: str) -> str | None:
        """The cookie for a code, which is then used up; None for one that is not good."""
        entry = self._codes.pop(_digest(code), None)
        if entry is None or entry.until < time.monotonic():
            return None
        return self._put(self._cookies, entry.caller, SESSION_LIFE)

    def caller_of(self, cookie: str) -> Caller | None:
        digest, now = _digest(cookie), time.monotonic()
        entry = self._cookies.get(digest)
        if entry is None or entry.until < now:
            return None
        self._cookies[digest] = entry._replace(until=now + SESSION_LIFE)
        return entry.caller

    def log_out(self, cookie: str) -> None:
        self._cookies.pop(_digest(cookie), None)

    def end_all(self) -> None:
        self._codes.clear()
        self._cookies.clear()

    def _put(self, entries: dict[bytes, _Entry], caller: Caller, life: float) -> str:
        now = time.monotonic()
        for digest in [one for one, entry in entries.items() if entry.until < now]:
            del entries[digest]
        while len(entries) >= _MOST:
            del entries[min(entries, key=lambda one: entries[one].until)]
        secret = secrets.token_urlsafe(32)
        entries[_digest(secret)] = _Entry(caller, now + life)
        return secret


def _digest(secret: str) -> bytes:
    """What is looked up is a hash: how long that takes tells nothing about the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
