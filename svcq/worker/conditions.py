"""Which conditions hold where a worker runs: the claim asks, and a thread beside it finds out.

Nobody waits for an answer, since some take a process and its time. A condition that a claim asked
for is looked at soon, and again every few seconds for as long as it is asked for; when one holds,
the worker is woken and claims anew. Without jobs that wait for a condition, nothing is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from threading import Thread

from svcq.conditions import Fact, judge
from svcq.host.facts import fact

EVERY = 5.0  # seconds between looks, and for which an answer is good


class Conditions:
    """As a container: those that are known to hold now."""

    def __init__(self, fact: Fact = fact, every: float = EVERY) -> None:
        self._fact = fact
        self._every = every
        self._asked: set[str] = set()
        self._seen: dict[str, tuple[float, bool]] = {}  # when it was looked at, whether it held
        self._thread: Thread | None = None

    def __contains__(self, condition: object) -> bool:
        self._asked.add(str(condition))
        at, held = self._seen.get(str(condition), (0.0, False))
        return held and time.monotonic() - at < self._every

    def forget(self) -> None:
        """What the next claim does not ask for is of no interest any more."""
        self._asked = set()

    def look(self, wake: Callable[[], None]) -> None:
        """Begin to find out what was asked for and is not known; `wake` is called if any holds."""
        now = time.monotonic()
        old = [
            one
            for one in self._asked
            if one not in self._seen or now - self._seen[one][0] >= self._every
        ]
        if old and (self._thread is None or not self._thread.is_alive()):
            self._thread = Thread(target=self._find_out, args=(old, wake), daemon=True)
            self._thread.start()

    def _find_out(self, conditions: list[str], wake: Callable[[], None]) -> None:
        known = cache(self._fact)  # several conditions may need the same fact
        seen = {one: (time.monotonic(), judge(one, known).holds is True) for one in conditions}
        # Those nobody asks for any more go, so that it does not grow for ever.
        kept = {one: answer for one, answer in self._seen.items() if one in self._asked}
        self._seen = {**kept, **seen}
        if any(held for _, held in seen.values()):
            wake()
