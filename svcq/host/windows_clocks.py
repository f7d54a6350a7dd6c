"""Windows: clocks that nobody can set.

Reaches its libraries inside its functions, so that the file can be imported anywhere.
"""

from __future__ import annotations

import ctypes

_TICKS = 10_000_000  # in a second


def awake() -> float:
    """Stands still while the machine sleeps."""
    ticks = ctypes.c_ulonglong()
    _kernel().QueryUnbiasedInterruptTime(ctypes.byref(ticks))
    return ticks.value / _TICKS


def since_boot() -> float:
    """Goes on while the machine sleeps."""
    count = _kernel().GetTickCount64
    count.restype = ctypes.c_ulonglong
    return float(count()) / 1000


def _kernel() -> ctypes.CDLL:
    return ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, no-any-return]
