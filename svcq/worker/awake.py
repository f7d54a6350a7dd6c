"""Keeping the machine awake while jobs run that ask for it (keep_awake).

A job that stands still does not ask, nor does one that is over before anyone has looked twice: to
tell the system of each short command would cost more than the command.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from svcq.host.facts import fact
from svcq.host.power import Inhibitor

LOOK = 0.5  # seconds
STEADY = 2  # looks in a row that must agree
ASK_AGAIN = 300.0  # seconds: who was refused may since have logged in


async def keep_awake(
    wishes: Callable[[], Collection[str]], note: Path, say: Callable[[str], None]
) -> None:
    """For as long as the worker lives. `wishes` says what its running jobs ask for."""
    awake = Awake(note, say)
    try:
        while True:
            await asyncio.sleep(LOOK)
            awake.look(wishes())
    finally:
        awake.end()


class Awake:
    def __init__(
        self,
        note: Path,
        say: Callable[[str], None],
        on_mains: Callable[[], bool] = lambda: fact("mains") is True,
    ) -> None:
        self._note = note
        self._say = say
        self._on_mains = on_mains
        self._inhibitor = Inhibitor()
        self._wanted = False
        self._looks = 0
        self._noted: str | None = None
        self._said = ""
        self._ask_again = 0.0

    def look(self, wishes: Collection[str]) -> None:
        wanted = "always" in wishes or ("mains" in wishes and self._on_mains())
        self._looks = self._looks + 1 if wanted is self._wanted else 1
        self._wanted = wanted
        if self._looks < STEADY:
            return
        state = self._inhibitor.state()
        if not wanted:
            self._let_go(state)
        elif state == "held":
            self._write("")
        elif state == "refused":
            self._tell(self._inhibitor.trouble)
        if wanted and state in ("free", "refused") and time.monotonic() >= self._ask_again:
            self._ask_again = time.monotonic() + ASK_AGAIN
            self._inhibitor.hold("jobs run")

    def _let_go(self, state: str) -> None:
        if state in ("asked", "held"):
            self._inhibitor.release()
            self._ask_again = 0.0
        if self._noted is not None:
            self._noted = None
            self._note.unlink(missing_ok=True)

    def _tell(self, trouble: str) -> None:
        self._write(trouble)
        if trouble != self._said:
            self._said = trouble
            self._say(
                f"The machine may go to sleep while jobs run; it was not kept awake ({trouble})."
            )

    def _write(self, trouble: str) -> None:
        """For whoever asks how things are."""
        if trouble != self._noted:
            self._noted = trouble
            with suppress(OSError):  # nothing hangs on it
                self._note.write_text(trouble)

    def end(self) -> None:
        self._let_go(self._inhibitor.state())
        self._inhibitor.close()
