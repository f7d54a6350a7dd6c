"""Windows: letting others go first. Whoever waits in front holds a shared lock on a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from svcq.host import windows_handles as handles

_EXCLUSIVE, _AT_ONCE = 2, 1


class Turn:
    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Be seen to wait, for as long as this lasts."""
        handle = self._open()
        if handle is None or not _lock(handle, 0):
            yield
            return
        try:
            yield
        finally:
            _unlock(handle)

    def someone_waits(self) -> bool:
        handle = self._open()
        if handle is None:
            return False
        if not _lock(handle, _EXCLUSIVE | _AT_ONCE):
            return True
        _unlock(handle)
        return False

    def close(self) -> None:
        if self._handle is not None:
            handles.close_handle(self._handle)
            self._handle = None

    def _open(self) -> int | None:
        if self._handle is None:
            # Where the file cannot be made, nobody waits in front: the lock itself still holds.
            with suppress(OSError):
                self._handle = handles.open_handle(
                    self._path, handles.GENERIC_READ | handles.GENERIC_WRITE, handles.SHARE_ALL,
                    handles.OPEN_ALWAYS,
                )  # fmt: skip
        return self._handle


def _lock(handle: int, flags: int) -> bool:
    import pywintypes
    import win32file

    try:
        win32file.LockFileEx(handle, flags, 1, 0, _where())
    except pywintypes.error:
        return False
    return True


def _unlock(handle: int) -> None:
    import win32file

    win32file.UnlockFileEx(handle, 1, 0, _where())


def _where() -> Any:
    import pywintypes

    return pywintypes.OVERLAPPED()
