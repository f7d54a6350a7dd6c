"""Windows: the processes of a run, told apart from all others, found and ended.

Pids are reused, so a process is known by its pid and when it was started. The tree of a run is what
is in its Job Object, which nothing leaves; and, where there is none, who descends from its first
process.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from svcq.host import windows_jobs as jobs
from svcq.host import windows_kernel as kernel

MARKER = "SVCQ_RUN"
# What can be said to a process: Windows has no numbers for it.
ASK_TO_END, KILL, STOP, GO_ON = 15, 9, 19, 18
KILLED_BY_SYSTEM = range(1, 2**32)
"""Exit codes of what a limit may have ended: who gets no more memory ends as it likes."""

_CLOSE = 0x0010  # WM_CLOSE
_NO_WINDOW = 0x08000000
_BREAKER = Path(__file__).with_name("windows_break.py")
_PATIENCE = 10.0  # seconds for a break to be sent


class Seen(NamedTuple):
    """A process as one look at the system found it."""

    pid: int
    born: str
    session: int
    parent: int


def brand_of(marker: str) -> int:  # noqa: ARG001 (a Job Object needs none)
    """Processes are not branded here: what is in a Job Object stays there."""
    return 0


def process_born(pid: int) -> str | None:
    """When a process was started, in the system's own count; None when it is gone."""
    with kernel.opened(pid, kernel.QUERY | kernel.SYNCHRONIZE) as handle:
        if handle is None or kernel.has_ended(handle):
            return None
        times = kernel.spent(handle)
        return None if times is None else str(times.born)


def look_at(pid: int) -> Seen | None:
    born = process_born(pid)
    return None if born is None else Seen(pid, born, 0, 0)


def tree_of(
    marker: str,
    *,
    session: int | None = None,
    lock: str | Path | None = None,  # noqa: ARG001 (who has a file open is not told)
    known: Sequence[Seen] = (),
    spared: Collection[int] = (),
) -> list[Seen]:
    """The living processes of a run: of the Job Objects whose marker begins so, from its first
    process, `session`, on, and of descent from those known."""
    found = {pid for pen in jobs.pens_of(marker) for pid in pen.pids()}
    found |= {one.pid for one in known if process_born(one.pid) == one.born}
    if session is not None:
        found.add(session)
    return sorted(_living(found - set(spared), spared).values())


def _living(roots: set[int], spared: Collection[int]) -> dict[int, Seen]:
    """Those of them that live, with all who descend from them."""
    if not roots:
        return {}
    above = kernel.parents()
    below: dict[int, list[int]] = {}
    for pid, parent in above.items():
        below.setdefault(parent, []).append(pid)
    living: dict[int, Seen] = {}
    new = list(roots)
    while new:
        pid = new.pop()
        born = process_born(pid) if pid not in living and pid not in spared else None
        if born is None:
            continue
        living[pid] = Seen(pid, born, 0, above.get(pid, 0))
        # Who is older than a parent has it from another process that had the pid before.
        new += [
            child for child in below.get(pid, ())
            if (other := process_born(child)) is not None and int(other) >= int(born)
        ]  # fmt: skip
    return living


def signal_tree(processes: Sequence[Seen], number: int) -> None:
    """Say it to each that is still the process that was seen."""
    if number == ASK_TO_END:
        ask_to_end(processes)
        return
    access = kernel.TERMINATE if number == KILL else kernel.SUSPEND
    for process in processes:
        with kernel.opened(process.pid, kernel.QUERY | access) as handle:
            times = None if handle is None else kernel.spent(handle)
            if handle is None or times is None or str(times.born) != process.born:
                continue
            where = ctypes.c_void_p(handle)
            if number == KILL:
                kernel.library("kernel32").TerminateProcess(where, 1)
            elif number == STOP:
                kernel.library("ntdll").NtSuspendProcess(where)
            elif number == GO_ON:
                kernel.library("ntdll").NtResumeProcess(where)


def ask_to_end(processes: Sequence[Seen]) -> None:
    """Close its windows, as its user would, and press Ctrl-Break on its consoles.

    Who presses it has to be at that console, so a program of its own does.
    """
    pids = [process.pid for process in processes]
    if not pids:
        return
    _close_windows(set(pids))
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [sys.executable, "-I", "-S", str(_BREAKER), *map(str, pids)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=_PATIENCE, check=False, creationflags=_NO_WINDOW,
        )  # fmt: skip


def _close_windows(pids: set[int]) -> None:
    import pywintypes
    import win32gui
    import win32process

    def close(window: int, _: object) -> bool:
        with suppress(pywintypes.error):
            if win32process.GetWindowThreadProcessId(window)[1] in pids:
                win32gui.PostMessage(window, _CLOSE, 0, 0)
        return True

    with suppress(pywintypes.error):  # there is no desktop
        win32gui.EnumWindows(close, None)


def resident_bytes(processes: Sequence[Seen]) -> int:
    """The memory a tree has in use now."""
    return sum(_resident(process.pid) for process in processes)


def _resident(pid: int) -> int:
    import pywintypes
    import win32process

    with kernel.opened(pid, kernel.QUERY) as handle:
        if handle is None:
            return 0
        try:
            return int(win32process.GetProcessMemoryInfo(handle)["WorkingSetSize"])
        except pywintypes.error:
            return 0
