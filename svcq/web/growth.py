"""Files that grow, looked at together: one look at each, however many wait for it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

_LOOK = 0.1  # seconds


class Growth:
    def __init__(self) -> None:
        self._waiting: dict[Path, list[tuple[int, asyncio.Future[None]]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def wait(self, file: Path, size: int) -> None:
        """Until the file has another size than the caller knows of."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(file, []).append((size, future))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())
        await future

    async def _look(self) -> None:
        while self._waiting:
            await asyncio.sleep(_LOOK)
            for file, waiting in list(self._waiting.items()):
                now = _size(file)
                for known, future in waiting:
                    if known != now and not future.done():
                        future.set_result(None)
                left = [one for one in waiting if not one[1].done()]
                if left:
                    self._waiting[file] = left
                else:
                    del self._waiting[file]


def _size(file: Path) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        return 0
