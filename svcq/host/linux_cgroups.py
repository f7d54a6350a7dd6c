"""Linux: pens. A run in a cgroup of its own cannot lose a process, whatever that does to itself,
and one write kills all that is in it.

A child is born where its parent is. To move it later takes longer than most commands (the kernel
waits for each processor), and what it has started by then stays behind. So the worker itself stands
in the pen of the next run, starts its first process there, and then moves on to another.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

# By this we are told which cgroup is ours to divide: the name of the unit, which is that of the
# cgroup, too. What someone else was told, and we have inherited, does not fit where we are.
DELEGATED = "SVCQ_DELEGATED"
_PEN = "svcq-"


class Pen:
    """One cgroup, and all that was ever started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._limited = False
        self._oom_kills = 0  # when its last run had ended

    def enter(self) -> None:
        """Move to it, with all of our threads."""
        self._write("cgroup.procs", "0")

    def pids(self) -> list[int]:
        """All processes in it, and in what they may have divided it into; never ourselves."""
        own = os.getpid()
        return [pid for folder in self._folders() for pid in _pids(folder) if pid != own]

    def is_empty(self) -> bool:
        """Whether nobody is in it but ourselves."""
        try:
            empty = b"populated 0" in _read(f"{self.folder}/cgroup.events")
        except OSError:
            return True
        return empty or not self.pids()

    def kill(self) -> None:
        """All of it at once, those too that are being born."""
        if os.getpid() not in _pids(self.folder):
            with suppress(OSError):  # it is gone, with all that was in it
                self._write("cgroup.kill", "1")

    def limit_memory(self, limit: int | None) -> bool:
        """Whether the kernel sees to it that no more is used. Who needs more is killed."""
        if limit is None and not self._limited:
            return False
        try:
            self._write("memory.oom.group", "1")
            self._write("memory.max", "max" if limit is None else str(limit))
        except OSError:
            return False
        with suppress(OSError):  # a kernel without swap has no such file
            self._write("memory.swap.max", "max" if limit is None else "0")
        self._limited = limit is not None
        return self._limited

    def killed_for_memory(self) -> bool | None:
        """Whether the kernel has killed one of its processes for want of memory, in this run; None
        where it does not tell."""
        kills = self._count_oom_kills()
        return None if kills is None else kills > self._oom_kills

    def _count_oom_kills(self) -> int | None:
        try:
            lines = _read(f"{self.folder}/memory.events").splitlines()
        except OSError:
            return None
        return next((int(line.split()[1]) for line in lines if line.startswith(b"oom_kill ")), None)

    def tidy(self) -> None:
        """For the next run: undo what one that has ended has divided it into, and its limits."""
        if os.stat(self.folder).st_nlink > 2:
            self._remove(itertools.islice(self._folders(), 1, None))
        self.limit_memory(None)
        self._oom_kills = self._count_oom_kills() or 0

    def remove(self) -> None:
        self._remove(self._folders())

    def _remove(self, folders: Iterable[Path]) -> None:
        for folder in reversed(list(folders)):
            with suppress(OSError):  # someone is still in it
                folder.rmdir()

    def _folders(self) -> Iterator[Path]:
        """It, and what a job may have divided it into."""
        return (Path(folder) for folder, _, _ in os.walk(self.folder))

    def _write(self, name: str, text: str) -> None:
        # Not by way of a file object, which costs more than the move itself.
        descriptor = os.open(f"{self.folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)


class Pens:
    """The pens of one worker, used again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)
        self._free: list[Pen] = []
        self.here = self._another()
        self.here.enter()
        with suppress(OSError):  # not given to us, or there is no such limit
            (folder / "cgroup.subtree_control").write_text("+memory")

    @classmethod
    def given(cls) -> Self | None:
        """Those we may make; None where nobody has left us a cgroup to divide."""
        folder = _delegated()
        try:
            return None if folder is None else cls(folder)
        except OSError:
            return None

    @classmethod
    def of(cls, folder: Path) -> list[Pen]:
        """Those that a worker has made in its cgroup and may have left behind."""
        return [Pen(one) for one in folder.glob(f"{_PEN}*") if one.is_dir()]

    def move_on(self) -> bool:
        """Leave the pen in which a process was born; whether that has succeeded. It takes a few
        milliseconds when nobody has moved for a while."""
        try:
            pen = self._free.pop() if self._free else self._another()
            pen.enter()
        except OSError:
            return False
        self.here = pen
        return True

    def give_back(self, pen: Pen) -> None:
        """A pen in which nobody is left."""
        pen.tidy()
        self._free.append(pen)

    def remove(self) -> None:
        """All but the one in which we stand, which goes with the unit."""
        for pen in self.of(self.folder):
            pen.remove()

    def _another(self) -> Pen:
        while True:
            folder = self.folder / f"{_PEN}{next(self._numbers)}"
            with suppress(FileExistsError):  # of one that died here before us
                folder.mkdir()
                return Pen(folder)


def _delegated() -> Path | None:
    unit = os.environ.pop(DELEGATED, None)  # for us alone: jobs get the rest of our environment
    if not unit:
        return None
    try:
        cgroups = Path("/proc/self/cgroup").read_text().splitlines()
        path = next(line.removeprefix("0::/") for line in cgroups if line.startswith("0::/"))
        mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
        places = [words[4] for words in mounts if words[3] == "/" and "cgroup2" in words[6:]]
    except (OSError, StopIteration):
        return None
    folder = Path(places[-1], path) if places else Path()
    is_ours = folder.name == unit and os.getpid() in _pids(folder)
    return folder if is_ours and (folder / "cgroup.kill").exists() else None


def _pids(folder: Path) -> list[int]:
    try:
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
