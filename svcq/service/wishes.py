"""What callers have asked of the one who looks after the workers. It looks when it comes to it."""

from __future__ import annotations

import threading
from typing import Literal


class Wishes:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._anew = False
        self.rest: Literal["", "drain", "now"] = ""
        """Whether workers are to end when they are done, or now, and no new ones to come."""

    def ask_anew(self) -> None:
        """All workers are to be replaced by new ones, when they are done."""
        with self._lock:
            self._anew = True

    def take_anew(self) -> bool:
        """Whether that was asked since the last time."""
        with self._lock:
            asked, self._anew = self._anew, False
            return asked
