"""Windows: the doorbell. A worker sleeps on an event, and whoever has work for it sets that.

The event's name is drawn by lot and stands in a file of a private folder: others can neither ring
nor take the name before us. It is of the whole machine's, since a service and its user's programs
live in sessions of their own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

_MODIFY = 0x0002
_SET = 0  # what WaitForMultipleObjects answers for the first of them


class Bell:
    """Where a worker hears that there is something to do."""

    def __init__(self, folder: Path, name: str) -> None:
        from secrets import token_hex

        import win32event

        self._path = folder / f"{name}.bell"
        event = f"Global\\svcq-bell-{token_hex(16)}"
        self._event: Any = win32event.CreateEvent(None, False, False, event)
        self._closed: Any = win32event.CreateEvent(None, True, False, None)
        self._watcher: threading.Thread | None = None
        draft = folder / f"{name}.new"
        draft.write_text(event)
        # Named when it can be heard: until then it would be taken for a dead worker's.
        os.replace(draft, self._path)

    def watch(self, loop: asyncio.AbstractEventLoop, rung: Callable[[], None]) -> None:
        """Call `rung` in the loop whenever it is rung, until `unwatch`."""

        def wait() -> None:
            while self._waited(-1):
                with suppress(RuntimeError):  # the loop has ended meanwhile
                    loop.call_soon_threadsafe(rung)

        self._watcher = threading.Thread(target=wait, name="bell", daemon=True)
        self._watcher.start()

    def unwatch(self) -> None:
        import win32event

        win32event.SetEvent(self._closed)
        if self._watcher is not None:
            self._watcher.join()
            self._watcher = None

    def heard(self) -> None:
        """Nothing to do: whoever hears it lets it be still again."""

    def wait(self, seconds: float) -> bool:
        """Sleep until it is rung, or for so long; whether it was."""
        return self._waited(max(round(seconds * 1000), 0))

    def _waited(self, milliseconds: int) -> bool:
        import win32event

        found = win32event.WaitForMultipleObjects([self._event, self._closed], False, milliseconds)
        return bool(found == _SET)

    def ring(self) -> None:
        import win32event

        win32event.SetEvent(self._event)

    def close(self) -> None:
        self.unwatch()
        self._path.unlink(missing_ok=True)
        self._event.Close()
        self._closed.Close()


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
    # What was written is written: that nobody could be told must not look like a failure.
    with suppress(OSError):
        for name in names:
            _ring(os.path.join(folder, name))


def listening(folder: str | os.PathLike[str]) -> list[str]:
    """Who can be rung here: the names of their bells."""
    found = []
    for name in _bells(os.fspath(folder)):
        event = _event_of(os.path.join(os.fspath(folder), name))
        if event is not None:
            event.Close()
            found.append(name.removesuffix(".bell"))
    return sorted(found)


def _bells(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".bell")]
    except OSError:
        return []


def _ring(path: str) -> None:
    import win32event

    event = _event_of(path)
    if event is None:  # its worker died without closing it
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    win32event.SetEvent(event)
    event.Close()


def _event_of(path: str) -> Any:
    """Where to ring; None if nobody hears it."""
    import pywintypes
    import win32event

    try:
        with open(path, encoding="ascii") as file:
            name = file.read()
        return win32event.OpenEvent(_MODIFY, False, name)
    except (OSError, ValueError, pywintypes.error):
        return None
