"""Following the service: its stream of changes, for as long as the tray runs.

A stream that breaks off is resumed where it was; one that is silent for longer than the service's
signs of life are apart counts as broken, since a service that hangs closes nothing.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from typing import Any, NamedTuple

from svcq.client.connection import Connection
from svcq.errors import Unreachable
from svcq.jobs import FINISHED

from .door import WRONG

SILENCE = 40.0  # seconds; signs of life come every 15
_FIRST_WAIT = 0.2
_LONGEST_WAIT = 5.0


class Ended(NamedTuple):
    """A job has ended, as a change says it."""

    job: int
    kind: str
    at: str


class News(NamedTuple):
    """What came in one piece."""

    ended: tuple[Ended, ...]
    went_on: frozenset[int]
    """Jobs that are no longer at their end: someone has retried them."""
    cursor: int
    missed: bool = False
    """There was more than could be told one by one."""


class Feed:
    """Calls `hear` with what happened and `changed` when it is time to look again."""

    def __init__(
        self,
        connect: Callable[[float], Connection],
        cursor: int | None,
        hear: Callable[[News], None],
        changed: Callable[[], None],
        silence: float = SILENCE,
    ) -> None:
        self._connect = connect
        self.cursor = cursor
        self._hear = hear
        self._changed = changed
        self._silence = silence
        self._leaving = threading.Event()
        self._again = threading.Event()
        self._connection: Connection | None = None
        self.trouble = ""
        """Why nobody is told of anything just now; empty when all is well."""
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._leaving.set()
        self._again.set()

    def hurry(self) -> None:
        """The service is there again: do not wait any longer."""
        self._again.set()

    def _run(self) -> None:
        wait = _FIRST_WAIT
        while not self._leaving.is_set():
            try:
                for kind, data in self._events():
                    self._take(kind, data)
                    wait, self.trouble = _FIRST_WAIT, ""
                raise Unreachable("The service has closed the stream of what happens.")
            except WRONG as error:
                self.trouble = str(error) or type(error).__name__
                self._changed()
            self._again.clear()
            # Not all trays of a machine at once.
            if not self._leaving.is_set():
                self._again.wait(wait * random.uniform(0.8, 1.2))
            wait = min(2 * wait, _LONGEST_WAIT)

    def _events(self) -> Iterator[tuple[str, Any]]:
        connection = self._connect(self._silence)
        try:
            resume = {} if self.cursor is None else {"Last-Event-ID": str(self.cursor)}
            response, _ = connection.read("/stream", {}, resume)
            for kind, text in events(response):
                if self._leaving.is_set():
                    return
                yield kind, json.loads(text)
        finally:
            connection.close()

    def _take(self, kind: str, data: Any) -> None:
        if kind == "changes":
            self.cursor = data[-1]["seq"] if data else self.cursor
            self._hear(_news(data))
        elif kind == "reset":
            self.cursor = data["cursor"]
            self._hear(News((), frozenset(), data["cursor"], missed=True))
        elif kind == "ready" and self.cursor is None:
            self.cursor = data["cursor"]
            self._hear(News((), frozenset(), data["cursor"]))
        self._changed()


def _news(changes: list[dict[str, Any]]) -> News:
    """The last that happened to each job counts."""
    last = {one["job"]: one for one in changes if one["kind"] not in ("progress", "edited")}
    ended = [one for one in last.values() if one["kind"] in FINISHED]
    return News(
        tuple(Ended(one["job"], one["kind"], one["at"]) for one in ended),
        frozenset(job for job, one in last.items() if one["kind"] not in FINISHED),
        changes[-1]["seq"],
    )


def events(response: HTTPResponse) -> Iterator[tuple[str, str]]:
    """Server-sent events, as they come; signs of life are left out."""
    kind, data = "", ""
    while line := response.readline():
        name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            data = value.strip()
        elif not name and not value:
            if data:
                yield kind, data
            kind, data = "", ""
