"""Linux: whether the kernel has lately killed processes because there was no memory left."""

from __future__ import annotations

import os
import time

LATELY = 2.0  # seconds


class Kills:
    """The kernel's count of them, on the whole machine: who was killed, it does not say."""

    def __init__(self) -> None:
        self._seen: int | None = None
        self._grew_at = float("-inf")

    def lately(self) -> bool:
        """To be asked now and then, so that it is seen when there are more."""
        kills = _count()
        if self._seen is not None and kills > self._seen:
            self._grew_at = time.monotonic()
        self._seen = kills
        return time.monotonic() - self._grew_at < LATELY


killed_for_memory_lately = Kills().lately


def _count() -> int:
    try:
        descriptor = os.open("/proc/vmstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        text = os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
    _, _, rest = text.partition(b"\noom_kill ")
    return int(rest.split(None, 1)[0]) if rest else 0
