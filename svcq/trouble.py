"""What goes wrong for a while is said once, and so is its end."""

from __future__ import annotations

import time
from collections.abc import Callable

from svcq.times import SECOND, format_duration


class Trouble:
    """`over` is what there is to say when all is well again."""

    def __init__(self, say: Callable[[str], None], over: str = "The store answers again") -> None:
        self._say = say
        self._over = over
        self._kinds: set[str] = set()
        self._since = 0.0

    def met(self, error: Exception) -> None:
        """Said, unless something of its kind was: the words of a server that goes down change."""
        if not self._kinds:
            self._since = time.monotonic()
        kind = type(error).__name__
        if kind not in self._kinds:
            self._kinds.add(kind)
            self._say(str(error))

    def over(self) -> None:
        if self._kinds:
            self._kinds.clear()
            lasted = format_duration(round((time.monotonic() - self._since) * SECOND))
            self._say(f"{self._over}, after {lasted}.")
