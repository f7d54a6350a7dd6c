"""Where a worker keeps things in the home: locks, runs, logs, what could not be reported yet."""

from __future__ import annotations

import glob
import itertools
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from svcq import host


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

    def worker_lock(self, pid: int, born: str) -> Path:
        """Held as long as the worker lives: no pid can be mistaken for another's."""
        return self.workers / f"{pid}-{born}.lock"

    def seats(self, pid: int, born: str) -> Seats:
        return Seats(f"{self.home}/runs/{pid}-{born}")

    def prepare(self) -> None:
        for folder in (self.home, self.workers, self.spool, self.home / "runs", self.home / "logs"):
            host.private_directory(folder)


class Seat(NamedTuple):
    """The files of one run of a command: the lock its processes inherit, and what it says."""

    lock: str  # holds the pid and start time of the first process, once it has run for a while

    @property
    def progress(self) -> str:
        return f"{self.lock}.progress"

    @property
    def result(self) -> str:
        return f"{self.lock}.result"

    def clear(self) -> None:
        if any([_remove(self.progress), _remove(self.result)]):
            # Who writes with care writes a file beside it first, and may not have come to the end.
            for path in glob.iglob(f"{glob.escape(self.lock)}.*"):
                _remove(path)


class Seats:
    """The seats of a worker, used again and again: to make files anew for each run would cost as
    much as a short command."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._free: list[Seat] = []
        self._numbers = itertools.count(1)

    def take(self) -> Seat:
        return self._free.pop() if self._free else Seat(f"{self._stem}.{next(self._numbers)}")

    def give_back(self, seat: Seat) -> None:
        seat.clear()
        self._free.append(seat)

    def used(self) -> list[Seat]:
        """Those there are, whoever took them."""
        paths = glob.glob(f"{glob.escape(self._stem)}.*")
        return [Seat(path) for path in paths if path.rpartition(".")[2].isdigit()]

    def remove(self) -> None:
        for path in glob.glob(f"{glob.escape(self._stem)}.*"):
            _remove(path)


def _remove(path: str) -> bool:
    """Whether it was there; a job may have put anything there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
    return True


def marker_of(store_id: str, job: int, run: int) -> str:
    """Stands in the environment of every process of a run; no two runs on a machine share one."""
    return f"{job}.{run}.{store_id}"


def runners_marker(store_id: str, worker: int) -> str:
    """What the markers of all runners of a worker begin with."""
    return f"{store_id}.{worker}."
