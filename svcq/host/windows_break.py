"""Presses Ctrl-Break on the consoles of these processes; a program of its own, of the standard
library alone, since it has to leave its console and must not hear what it sends."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Sequence

_BREAK = 1
_MOST = 1024


def press(pids: Sequence[int]) -> None:
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    signal.signal(signal.SIGBREAK, signal.SIG_IGN)  # type: ignore[attr-defined]
    served: set[int] = set()
    there = (ctypes.c_uint32 * _MOST)()
    kernel.FreeConsole()
    for pid in pids:
        if pid in served or not kernel.AttachConsole(pid):
            continue
        count = kernel.GetConsoleProcessList(there, _MOST)
        served |= {pid, *there[: min(count, _MOST)]}
        kernel.GenerateConsoleCtrlEvent(_BREAK, 0)  # to all who are at that console
        kernel.FreeConsole()


if __name__ == "__main__":
    press([int(word) for word in sys.argv[1:]])
