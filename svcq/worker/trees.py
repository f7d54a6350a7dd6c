"""Ending a tree of processes: asked first, then killed, and gone for certain before we go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from pathlib import Path

from svcq.host import processes

_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.2


class Tree:
    """The processes of one run, found anew at each look: they come and go.

    Those in its pen are certain to be its own, and certain to be all, unless one was moved out of
    it by someone who may. `spared` are pids of none of them, whatever they look like.
    """

    def __init__(
        self,
        marker: str,
        session: int | None,
        lock: str | Path | None,
        pen: processes.Pen | None = None,
        spared: Collection[int] = (),
    ) -> None:
        self._marker = marker
        self._session = session
        self._lock = lock
        self.pen = pen
        self._spared = spared
        self._known: list[processes.Seen] = []

    def look(self) -> list[processes.Seen]:
        penned = [] if self.pen is None else map(processes.look_at, self.pen.pids())
        self._known = processes.tree_of(
            self._marker,
            session=self._session,
            lock=self._lock,
            known=[*self._known, *(one for one in penned if one is not None)],
            spared=self._spared,
        )
        return self._known

    def signal(self, number: int) -> int:
        """Send a signal to all of it; how many there were."""
        found = self.look()
        processes.signal_tree(found, number)
        return len(found)

    def kill(self, patience: float = 10.0) -> list[processes.Seen]:
        """Kill until two looks in a row find nothing; who is left when patience runs out."""
        deadline = time.monotonic() + patience
        clean = 0
        while clean < 2:
            if self.pen is not None:
                self.pen.kill()
            found = self.look()
            clean = 0 if found or self._someone_is_there() else clean + 1
            if clean:
                continue
            if time.monotonic() > deadline:
                return found
            processes.signal_tree(found, processes.KILL)
            time.sleep(_FIRST_LOOK)
        return []

    def _someone_is_there(self) -> bool:
        """Even if a look has missed it."""
        if self.pen is not None and not self.pen.is_empty():
            return True
        return self._lock is not None and processes.lock_is_held(self._lock)

    async def end(self, grace: float) -> list[processes.Seen]:
        """Ask it to end, wait for `grace` seconds, then kill; who could not be killed."""
        deadline = time.monotonic() + grace
        found = await asyncio.to_thread(self.look)
        processes.signal_tree(found, processes.GO_ON)  # a stopped process would not hear it
        await asyncio.to_thread(processes.signal_tree, found, processes.ASK_TO_END)
        nap = _FIRST_LOOK
        while found and time.monotonic() < deadline:
            await asyncio.sleep(min(nap, max(deadline - time.monotonic(), 0)))
            nap = min(nap * 1.5, _LONGEST_LOOK)
            found = await asyncio.to_thread(self.look)
        return await asyncio.to_thread(self.kill)
