"""Linux: letting others go first. Whoever waits in front holds a shared lock on a file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Turn:
    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Be seen to wait, for as long as this lasts."""
        descriptor = self._open()
        if descriptor is None:
            yield
            return
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def someone_waits(self) -> bool:
        descriptor = self._open()
        if descriptor is None:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int | None:
        if self._descriptor is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            # Where the file cannot be made, nobody waits in front: the lock itself still holds.
            with suppress(OSError):
                self._descriptor = os.open(self._path, flags, 0o600)
        return self._descriptor
