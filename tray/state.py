"""What the tray remembers from one start to the next: how far it has told of ends, and which
failures nobody has seen yet. A file of the user's own."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from contextlib import suppress
from pathlib import Path

from svcq import host
from svcq.errors import SvcqError

from .door import Door
from .model import MOST_UNSEEN

_MOST_COMMANDS = 20


class State:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._saved = ""
        said = _read(file)
        cursor = said.get("cursor")
        self.cursor: int | None = cursor if isinstance(cursor, int) else None
        at = said.get("at")
        self.at = at if isinstance(at, float) else time.time()
        """When that was."""
        self.unseen: set[int] = {job for job in _list(said, "unseen") if isinstance(job, int)}
        self.paused: list[str] = [one for one in _list(said, "paused") if isinstance(one, str)]
        """The queues that `Pause all` has paused, for `Resume all`."""

    def reach(self, cursor: int) -> None:
        """All until there was told."""
        self.cursor, self.at = cursor, time.time()

    def failed(self, job: int) -> None:
        if len(self.unseen) < MOST_UNSEEN:
            self.unseen.add(job)

    def save(self) -> None:
        """It is no loss when this cannot be written: something may be told twice."""
        with self._lock:
            said = {"cursor": self.cursor, "at": self.at, "paused": self.paused}
            text = json.dumps({**said, "unseen": sorted(self.unseen)})
            if text != self._saved:
                with suppress(OSError, SvcqError):
                    host.private_directory(self._file.parent)
                    host.write_private(self._file, text)
                    self._saved = text


def state_of(door: Door) -> State:
    """For each service one of its own."""
    which = hashlib.blake2b(str(door.socket).encode(), digest_size=4).hexdigest()
    return State(door.own / f"tray-{which}.json")


# The commands that were queued with the dialog


def last_commands(own: Path) -> list[str]:
    return [one for one in _list(_read(own / _COMMANDS), "commands") if isinstance(one, str)]


def remember(own: Path, command: str) -> None:
    kept = [command, *(one for one in last_commands(own) if one != command)][:_MOST_COMMANDS]
    with suppress(OSError, SvcqError):
        host.private_directory(own)
        host.write_private(own / _COMMANDS, json.dumps({"commands": kept}))


_COMMANDS = "tray-commands.json"


def _read(file: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        said = json.loads(file.read_text("utf-8"))
        if isinstance(said, dict):
            return said
    return {}


def _list(said: dict[str, object], name: str) -> list[object]:
    value = said.get(name)
    return value if isinstance(value, list) else []
