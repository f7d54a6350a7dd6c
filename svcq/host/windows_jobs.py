"""Windows: pens. Each run is in a Job Object of its own, which holds all that it ever starts, and
which ends all of it with one call, or by itself when the worker that holds it is gone.

A process is put into it before its first instruction, so nobody has to stand anywhere first, as on
Linux: `here` is the pen of the next process.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Self

_KILL_ON_CLOSE, _JOB_MEMORY, _QUIET = 0x2000, 0x200, 0x400
_KILLED = 1  # the exit code of what is killed, as taskkill has it


class Pen:
    """One Job Object, and all that was ever started in it."""

    def __init__(self) -> None:
        import win32job

        make: Any = win32job.CreateJobObject
        self._job: Any = make(None, "")
        self._memory: int | None = None
        self._set_limits()

    def _set_limits(self) -> None:
        import win32job

        kind = win32job.JobObjectExtendedLimitInformation
        limits = win32job.QueryInformationJobObject(self._job, kind)
        # No box that asks someone who is not there what to do about a crash.
        flags = _KILL_ON_CLOSE | _QUIET
        if self._memory is not None:
            flags |= _JOB_MEMORY
            limits["JobMemoryLimit"] = self._memory
        limits["BasicLimitInformation"]["LimitFlags"] = flags
        win32job.SetInformationJobObject(self._job, kind, limits)

    def take(self, process: int) -> None:
        """Hold a process, and whatever it will start."""
        import win32job

        win32job.AssignProcessToJobObject(self._job, process)

    def pids(self) -> list[int]:
        import pywintypes
        import win32job

        if self._job is None:
            return []
        with suppress(pywintypes.error):
            kind = win32job.JobObjectBasicProcessIdList
            return list(win32job.QueryInformationJobObject(self._job, kind))
        return []

    def is_empty(self) -> bool:
        import win32job

        if self._job is None:
            return True
        kind = win32job.JobObjectBasicAccountingInformation
        return not win32job.QueryInformationJobObject(self._job, kind)["ActiveProcesses"]

    def kill(self) -> None:
        """All of it at once, those too that are being born."""
        import pywintypes
        import win32job

        if self._job is not None:
            with suppress(pywintypes.error):
                win32job.TerminateJobObject(self._job, _KILLED)

    def limit_memory(self, limit: int | None) -> bool:
        """Whether Windows sees to it that no more is used. Who asks for more gets none."""
        import pywintypes
        import win32job

        if limit is None and self._memory is None:
            return False
        self._memory = limit
        try:
            self._set_limits()
            kind = win32job.JobObjectExtendedLimitInformation
            said = win32job.QueryInformationJobObject(self._job, kind)
        except pywintypes.error:
            return False
        return bool(limit is not None and said["JobMemoryLimit"] == limit)

    def killed_for_memory(self) -> bool | None:
        """Whether it has come to its limit; Windows kills nobody for want of memory."""
        peak = self.peak_bytes()
        return self._memory is not None and peak is not None and peak >= 0.95 * self._memory

    def peak_bytes(self) -> int | None:
        """The most that it has used at a time; None where Windows does not tell."""
        import win32job

        kind = win32job.JobObjectExtendedLimitInformation
        said = win32job.QueryInformationJobObject(self._job, kind)
        return int(said["PeakJobMemoryUsed"]) or None

    def cpu_ms(self) -> int:
        import win32job

        kind = win32job.JobObjectBasicAccountingInformation
        said = win32job.QueryInformationJobObject(self._job, kind)
        return int((said["TotalUserTime"] + said["TotalKernelTime"]) // 10_000)

    def tidy(self) -> None:
        """Nothing is used again."""

    def remove(self) -> None:
        """Let it go, and with it whoever is still inside."""
        if self._job is not None:
            self._job.Close()
            self._job = None
        for marker in [marker for marker, pen in _marked.items() if pen is self]:
            del _marked[marker]


class Pens:
    """The pens of one worker."""

    folder = Path()  # they have no place where others could find them, and end with us

    def __init__(self) -> None:
        global _given  # noqa: PLW0603 (a process is one worker, as it is in one cgroup on Linux)
        self.here = Pen()
        _given = self

    @classmethod
    def given(cls) -> Self | None:
        """Those we may make: every process may."""
        return cls()

    @classmethod
    def of(cls, folder: Path) -> list[Pen]:  # noqa: ARG003 (as above)
        return []

    def move_on(self) -> bool:
        """The next process gets a pen of its own."""
        self.here = Pen()
        return True

    def give_back(self, pen: Pen) -> None:
        pen.remove()

    def remove(self) -> None:
        global _given  # noqa: PLW0603
        self.here.remove()
        if _given is self:
            _given = None


_given: Pens | None = None
_marked: dict[str, Pen] = {}


def next_pen() -> Pen:
    """Where the next process goes: that of the worker, or one of its own."""
    return Pen() if _given is None else _given.here


def mark(marker: str, pen: Pen) -> None:
    _marked[marker] = pen


def pens_of(marker: str) -> list[Pen]:
    """Those of the runs whose markers begin so, of this very process."""
    return [pen for known, pen in list(_marked.items()) if known.startswith(marker)]
