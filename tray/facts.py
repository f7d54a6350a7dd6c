"""Telling the service what only a session knows, for jobs that wait for it (`--when idle>10m`), and
ending with the session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from svcq.errors import NotFound, NotPermitted

from .desktop import Session
from .door import WRONG, Door

_LOOK = 5.0
"""How soon a touch is told of."""
_EVERY = 30.0
_METERED_EVERY = 120.0
_IN_USE = 10.0  # seconds
_GONE = 2
"""Looks in a row that find no display, after which the session is over."""


class Facts:
    def __init__(self, door: Door, leave: Callable[[], None]) -> None:
        self._door = door
        self._leave = leave
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="facts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._leaving.set()

    def _run(self) -> None:
        session = Session()
        told, was_idle = -_EVERY, False
        looked, metered = -_METERED_EVERY, None
        gone, telling = 0, True
        while not self._leaving.is_set():
            gone = gone + 1 if session.is_over() else 0
            if gone >= _GONE:
                self._leave()
                break
            now, idle = time.monotonic(), session.idle_seconds()
            if now - looked >= _METERED_EVERY:
                looked, metered = now, session.metered()
            is_idle = idle is not None and idle > _IN_USE
            known = idle is not None or metered is not None
            if telling and known and (now - told >= _EVERY or (was_idle and not is_idle)):
                told, telling = now, self._tell(idle, metered)
            was_idle = is_idle
            self._leaving.wait(_LOOK)
        session.close()

    def _tell(self, idle: float | None, metered: bool | None) -> bool:
        """Whether it makes sense to go on."""
        connection = self._door.connect()
        try:
            connection.ask("POST", "/session", body={"idle": idle, "metered": metered})
        except (NotPermitted, NotFound):
            return False
        except WRONG:
            pass  # it is away, and told again soon
        finally:
            connection.close()
        return True
