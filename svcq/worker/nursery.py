"""Where the first process of a run is born: in a pen of its own, where the worker was given some.

The worker stands in the pen itself until the process is there, and then moves on. That takes the
kernel a moment when nobody has moved for a while: then it is done in a thread, other runs go on,
and only the next birth waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from svcq.host import processes

OUT_OF_MEMORY = "the system was out of memory and killed it"
SOON = 0.004  # seconds after a move within which the next one is quick


class Nursery:
    def __init__(self, pens: processes.Pens | None) -> None:
        self._pens = pens
        self._moving: asyncio.Future[bool] | None = None
        self._moved_at = 0.0
        self._thread = ThreadPoolExecutor(1, "pens")

    async def free(self) -> None:
        """Until the next process may be born; nothing else must be awaited between the two."""
        while self._moving is not None and not self._moving.done():
            await asyncio.wait((self._moving,))

    def born(self) -> Place:
        """A process is there: its place, from which the worker goes."""
        if self._pens is None:
            return NOWHERE
        pen = self._pens.here
        if time.monotonic() - self._moved_at < SOON:
            return Place(pen, moved=self._move_on(self._pens))
        loop = asyncio.get_running_loop()
        self._moving = loop.run_in_executor(self._thread, self._move_on, self._pens)
        return Place(pen, moving=self._moving)

    def _move_on(self, pens: processes.Pens) -> bool:
        moved = pens.move_on()
        self._moved_at = time.monotonic()
        return moved

    def give_back(self, place: Place) -> None:
        """Of a run whose processes are gone; it may be so soon that the worker still is there."""
        if self._pens is not None:
            place.when_alone(partial(self._take_back, self._pens, place))

    def _take_back(self, pens: processes.Pens, place: Place) -> None:
        if place.pen is not None and place.pen.is_empty():
            pens.give_back(place.pen)

    def close(self) -> None:
        self._thread.shutdown()
        if self._pens is not None:
            self._pens.remove()


class Place:
    """The pen of one run, once its processes are alone in it."""

    def __init__(
        self,
        pen: processes.Pen | None,
        *,
        moved: bool = False,
        moving: asyncio.Future[bool] | None = None,
    ) -> None:
        self._pen = pen
        self._moved = moved
        self._moving = moving

    @property
    def pen(self) -> processes.Pen | None:
        """None where there are none, as long as the worker is in it, or if it had to stay there."""
        if self._moving is not None and self._moving.done():
            self._moved = self._moving.result()
        return self._pen if self._moved else None

    async def settled(self) -> processes.Pen | None:
        """Its pen, once it is known whether it has one."""
        if self._moving is not None:
            await asyncio.wait((self._moving,))
        return self.pen

    def when_alone(self, then: Callable[[], None]) -> None:
        """Call, now or when the worker has gone from it, or cannot."""
        if self._moving is None or self._moving.done():
            then()
        else:
            self._moving.add_done_callback(lambda _: then())

    def killed_for_memory(self) -> bool:
        """Whether the kernel has killed there because memory was short; or else, lately, anywhere,
        which is as much as it tells without a pen."""
        told = None if self.pen is None else self.pen.killed_for_memory()
        return processes.killed_for_memory_lately() if told is None else told

    def someone_is_left(self) -> bool:
        """Whether a process is in it; what is no pen tells nothing."""
        return self._pen is not None and not self._pen.is_empty()


NOWHERE = Place(None)
