"""Where a worker keeps things in the home: locks, runs, logs, what could not be reported yet."""

from __future__ import annotations

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

    def worker_lock(self, pid: int, born: str) -> Path:
        """Held as long as the worker lives: no pid can be mistaken for another's."""
        return self.workers / f"{pid}-{born}.lock"

    def run(self, job: int, run: int) -> Run:
        return Run(self.home / "runs" / f"{job}.{run}")

    def prepare(self) -> None:
        for folder in (self.home, self.workers, self.spool, self.home / "runs", self.home / "logs"):
            host.private_directory(folder)


class Run(NamedTuple):
    """The folder of one run of a command: the lock its processes inherit, and what it says."""

    folder: Path

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def progress(self) -> Path:
        return self.folder / "progress"

    @property
    def result(self) -> Path:
        return self.folder / "result"

    @property
    def leader(self) -> Path:
        """The pid and start time of its first process."""
        return self.folder / "leader"

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def marker_of(store_id: str, job: int, run: int) -> str:
    """Stands in the environment of every process of a run; no two runs on a machine share one."""
    return f"{job}.{run}.{store_id}"


def runners_marker(store_id: str, worker: int) -> str:
    """What the markers of all runners of a worker begin with."""
    return f"{store_id}.{worker}."
