"""Linux: clocks that nobody can set."""

from __future__ import annotations

import time


def awake() -> float:
    """Stands still while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def since_boot() -> float:
    """Goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
