"""Linux: the doorbell. A worker sleeps on a named pipe, and whoever has work for it writes a byte.

A pipe and no socket: Python's socket module takes longer to import than `svcq add` to add a job.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from pathlib import Path


class Bell:
    """Where a worker hears that there is something to do: a pipe in a private directory."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.bell"
        draft = folder / f"{name}.new"
        for path in (draft, self._path):
            path.unlink(missing_ok=True)
        os.mkfifo(draft, 0o600)
        # Open at both ends, or it would be at its end whenever nobody rings.
        self._descriptor = os.open(draft, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        # Named when it can be heard: until then it would be taken for a dead worker's.
        draft.rename(self._path)

    def watch(self, loop: asyncio.AbstractEventLoop, rung: Callable[[], None]) -> None:
        """Call `rung` in the loop whenever it is rung, until `unwatch`."""
        self._loop = loop
        loop.add_reader(self._descriptor, rung)

    def unwatch(self) -> None:
        self._loop.remove_reader(self._descriptor)

    def heard(self) -> None:
        """Empty the pipe: however often it was rung, one look will do."""
        with suppress(BlockingIOError):
            while True:
                os.read(self._descriptor, 1 << 16)

    def wait(self, seconds: float) -> bool:
        """Sleep until it is rung, or for so long; whether it was."""
        import select  # whoever rings does not wait for it

        return bool(select.select([self._descriptor], [], [], seconds)[0])

    def ring(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._descriptor, b".")

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1  # who rings it now must not reach another file


_known: dict[str, tuple[int, list[str]]] = {}


# A burst of writes looks once: a worker that comes in between looks for itself when it begins.
_LATELY = 0.002
_lately: dict[str, tuple[float, list[str]]] = {}


def ring(folder: str | os.PathLike[str]) -> None:
    """Wake every listening worker; one that is awake already, or gone, counts as rung."""
    folder = os.fspath(folder)
    now = time.monotonic()
    looked, names = _lately.get(folder, (-1.0, []))
    if now - looked > _LATELY:
        names = _bells(folder)
        _lately[folder] = now, names
    if names:
        # What was written is written: that nobody could be told must not look like a failure.
        with suppress(OSError):
            _ring(folder, names)


def listening(folder: str | os.PathLike[str]) -> list[str]:
    """Who can be rung here: the names of their bells."""
    found = []
    for name in _bells(os.fspath(folder)):
        with suppress(OSError):
            os.close(_pipe_to(os.path.join(folder, name)))
            found.append(name.removesuffix(".bell"))
    return sorted(found)


def _bells(folder: str) -> list[str]:
    """Who listens; read anew only when the folder has changed, since this follows every write."""
    try:
        changed = os.stat(folder).st_mtime_ns
        seen, names = _known.get(folder, (0, []))
        # A change within the clock's own step might not show: a young folder is always read.
        if seen != changed or time.time_ns() - changed < 50_000_000:
            names = [name for name in os.listdir(folder) if name.endswith(".bell")]
            _known[folder] = changed, names
    except OSError:
        return []
    return names


def _ring(folder: str, names: Sequence[str]) -> None:
    for name in names:
        path = os.path.join(folder, name)
        try:
            pipe = _pipe_to(path)
        except OSError as error:
            if error.errno == errno.ENXIO:  # its worker died without closing it
                with suppress(FileNotFoundError):
                    os.unlink(path)
            continue
        try:
            with suppress(BlockingIOError):
                os.write(pipe, b".")
        finally:
            os.close(pipe)


def _pipe_to(path: str) -> int:
    """Where to ring; an OSError if nobody hears it."""
    return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
