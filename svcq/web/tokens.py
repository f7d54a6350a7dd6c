"""The tokens of a home: who has read one of the two files may ask the service in its owner's name.

`token` is for everything, `token-read` for looking alone. They are files, so that no secret stands
in an argument or a variable: curl -H @file and Prometheus' credentials_file read them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from svcq import host
from svcq.client.verbs import Role
from svcq.errors import NotPermitted

READER = "token-read"
FILES = {"token": Role.ADMIN, READER: Role.READER}


def make_missing(home: Path) -> None:
    for name in FILES:
        if not os.path.lexists(home / name):
            rotate(home, [name])


def rotate(home: Path, names: Iterable[str] = tuple(FILES)) -> list[Path]:
    """New tokens in the place of the old ones, which are worth nothing from then on."""
    files = [home / name for name in names]
    for file in files:
        host.write_private(file, f"svcq-{secrets.token_urlsafe(32)}\n")
    return files


def read_token(file: Path) -> str:
    host.check_private(file)
    if file.stat().st_mode & 0o077:
        raise NotPermitted(f"{file} can be read by others: svcq token rotate makes a new one.")
    return file.read_text().strip()


class Tokens:
    """The tokens as the files have them now; only what they hash to is kept in memory."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._seen: list[tuple[int, int, int] | None] = []
        self._digests: list[tuple[bytes, Role]] = []
        self.refresh()

    def refresh(self) -> bool:
        """Whether they have changed."""
        seen = [_stamp(self._home / name) for name in FILES]
        if seen == self._seen:
            return False
        self._digests = []
        for name, role in FILES.items():
            try:
                self._digests.append((_digest(read_token(self._home / name)), role))
            except (OSError, NotPermitted, ValueError):
                continue  # one that cannot be trusted lets nobody in
        self._seen = seen
        return True

    def role_of(self, token: str) -> Role | None:
        given, found = _digest(token), None
        for digest, role in self._digests:
            if hmac.compare_digest(given, digest):
                found = role
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_mode
