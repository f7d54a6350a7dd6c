"""Where a worker keeps things in the home: locks, runs, logs, what could not be reported yet."""

from __future__ import annotations

import glob
import itertools
import os
import shutil
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from svcq import host
from svcq.host import processes
from svcq.host.files import open_anew, write_at
from svcq.logs import log_file, name_log

if TYPE_CHECKING:
    from svcq.store import Worker


# What the lock of a worker says: that the service keeps it, or that it is a program by itself. One
# inside another program says nothing.
KEPT, BY_ITSELF = "kept", "by itself"
MAY_BE_KILLED = (KEPT, BY_ITSELF)


class Places(NamedTuple):
    home: Path

    @property
    def workers(self) -> Path:
        return self.home / "workers"

    @property
    def spool(self) -> Path:
        return self.home / "spool"

    @property
    def service_lock(self) -> Path:
        """Held as long as the service lives."""
        return self.home / "service.lock"

    @property
    def attendants(self) -> Path:
        """A lock for each process that sees a job through, held as long as it lives."""
        return self.home / "attendants"

    def worker_lock(self, pid: int, born: str) -> Path:
        """Held as long as the worker lives: no pid can be mistaken for another's."""
        return self.workers / f"{pid}-{born}.lock"

    def dead_locks(self) -> list[str]:
        """The names of those whose worker is gone, with or without what it forked."""
        return [
            file.name for file in self.workers.glob("*-*.lock")
            if not processes.lock_is_held(file) or not _is_alive(file.name)
        ]  # fmt: skip

    def awake_note(self, pid: int, born: str) -> Path:
        """There while the worker keeps the machine awake, or would and cannot: why, then."""
        return self.workers / f"{pid}-{born}.awake"

    def seats(self, pid: int, born: str) -> Seats:
        return Seats(f"{self.home}/runs/{pid}-{born}", f"{self.home}/logs/new/{pid}-{born}")

    def prepare(self) -> None:
        for folder in (self.home, self.workers, self.spool, self.home / "runs", self.home / "logs"):
            host.private_directory(folder)


def _is_alive(lock: str) -> bool:
    pid, born, *_ = lock.removesuffix(".lock").split("-")
    return pid.isdigit() and processes.process_born(int(pid)) == born


class Note(NamedTuple):
    """What the lock of a seat says: whose it is, and, of a run that has come to stay, which its
    first process is."""

    job: int
    run: int
    pid: int | None = None
    born: str = ""

    def write(self, lock: int) -> None:
        words = f"{self.job} {self.run}"
        if self.pid is not None:
            words += f" {self.pid} {self.born}"
        # Always as long, so that it covers what was there before.
        write_at(lock, words.ljust(_NOTE).encode(), 0)

    @classmethod
    def read(cls, path: str) -> Note | None:
        try:
            job, run, *process = Path(path).read_text().split()
            pid, born = process or (0, "")
            return cls(int(job), int(run), int(pid) or None, born)
        except (OSError, ValueError):
            return None


_NOTE = 80  # no four numbers take more


class Seat(NamedTuple):
    """The files of one run of a command: the lock its processes inherit, and what it says."""

    lock: str  # holds a note
    output: str  # what it writes, until that gets a name

    @property
    def progress(self) -> str:
        return f"{self.lock}.progress"

    @property
    def result(self) -> str:
        return f"{self.lock}.result"

    def is_silent(self) -> bool:
        """Whether nothing is said there."""
        return not (_is_there(self.progress) or _is_there(self.result))

    def clear(self) -> None:
        if any([_remove(self.progress), _remove(self.result)]):
            # Who writes with care writes a file beside it first, and may not have come to the end.
            for path in glob.iglob(f"{glob.escape(self.lock)}.*"):
                _remove(path)


class Seats:
    """The seats of a worker, used again and again: to make files anew for each run would cost as
    much as a short command."""

    def __init__(self, stem: str, outputs: str) -> None:
        self._stem = stem
        self._outputs = outputs
        self._free: list[Seat] = []
        self._numbers = itertools.count(1)

    def take(self) -> Seat:
        return self._free.pop() if self._free else self._seat(next(self._numbers))

    def _seat(self, number: int | str) -> Seat:
        return Seat(f"{self._stem}.{number}", f"{self._outputs}.{number}")

    def give_back(self, seat: Seat, *, silent: bool) -> None:
        if not silent:
            seat.clear()
        self._free.append(seat)

    def note_pens(self, pens: processes.Pens) -> None:
        """Where they are, for whoever must end what is in them should we be gone."""
        with open(f"{self._stem}.pens", "w", opener=open_anew) as file:
            file.write(str(pens.folder))

    def pens(self) -> list[processes.Pen]:
        """Those that were noted; none where there were none, or they have gone with their unit."""
        try:
            folder = Path(f"{self._stem}.pens").read_text()
        except OSError:
            return []
        return processes.Pens.of(Path(folder))

    def used(self) -> list[Seat]:
        """Those there are, whoever took them."""
        paths = glob.glob(f"{glob.escape(self._stem)}.*")
        numbers = (path.rpartition(".")[2] for path in paths)
        return [self._seat(number) for number in numbers if number.isdigit()]

    def name_outputs(self, home: Path) -> None:
        """Of runs that nobody will see through, those that have written something."""
        for seat in self.used():
            note = Note.read(seat.lock)
            with suppress(OSError):  # it has written nothing, or has been named
                if note is not None and os.stat(seat.output).st_size:
                    name_log(seat.output, log_file(home, note.job, note.run))

    def remove(self) -> None:
        for stem in (self._stem, self._outputs):
            for path in glob.glob(f"{glob.escape(stem)}.*"):
                _remove(path)


# Links count, wherever they lead; where the system cannot tell, they are as what they lead to.
_TO_LINKS = {"follow_symlinks": os.access not in os.supports_follow_symlinks}


def _is_there(path: str) -> bool:
    # Without an exception for what most of them do not write.
    return os.access(path, os.F_OK, **_TO_LINKS)


def _remove(path: str) -> bool:
    """Whether it was there; a job may have put anything there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
    return True


def awake_notes(home: Path, workers: Iterable[Worker]) -> list[str]:
    """What keeps the workers of this machine, of those that would, from keeping it awake: nothing,
    or a part of a sentence."""
    here, places, notes = socket.gethostname(), Places(home), []
    for one in workers:
        if one.host == here:
            with suppress(OSError):  # it does not ask for it
                notes.append(places.awake_note(one.pid, one.born or "").read_text())
    return notes


def marker_of(store_id: str, job: int, run: int) -> str:
    """Stands in the environment of every process of a run; no two runs on a machine share one."""
    return f"{job}.{run}.{store_id}"


def runners_marker(store_id: str, worker: int) -> str:
    """What the markers of all runners of a worker begin with."""
    return f"{store_id}.{worker}."
