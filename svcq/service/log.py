"""The service's own log, for people: a file in the home, and the journal where there is one."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from svcq.host.files import open_log

LARGEST = 1 << 20  # bytes, after which a file is put aside
KEPT = 3  # files that were put aside


def service_log(home: Path) -> Path:
    return home / "logs" / "service.log"


class Log:
    """Called with a sentence, notes it with the time. What cannot be written is still printed."""

    def __init__(self, home: Path) -> None:
        self._path = service_log(home)
        self._turn = threading.Lock()

    def __call__(self, message: str) -> None:
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}\n"
        # The journal has a clock of its own.
        shown = f"{message}\n" if "JOURNAL_STREAM" in os.environ else line
        with self._turn, suppress(OSError):
            sys.stderr.write(shown)
            sys.stderr.flush()
        with self._turn, suppress(OSError):
            self._append(line)

    def _append(self, line: str) -> None:
        descriptor = open_log(self._path)
        try:
            os.write(descriptor, line.encode("utf-8", "replace"))
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if size > LARGEST:
            put_aside(self._path)


def put_aside(path: Path) -> None:
    """Begin a new file; the oldest of those kept goes."""
    for n in range(KEPT - 1, 0, -1):
        with suppress(FileNotFoundError):
            os.replace(_older(path, n), _older(path, n + 1))
    os.replace(path, _older(path, 1))


def shorten(path: Path) -> None:
    """The same for a file that others go on writing to: it is copied and emptied."""
    with suppress(FileNotFoundError):
        if path.stat().st_size > LARGEST:
            text = path.read_bytes()
            with open(open_log(_older(path, 1)), "wb") as copy:
                copy.truncate()
                copy.write(text[-LARGEST:])
            os.truncate(path, 0)


def _older(path: Path, n: int) -> Path:
    return path.with_name(f"{path.name}.{n}")


def log_files(path: Path) -> list[Path]:
    """A log with what was put aside of it, oldest first."""
    found = [_older(path, n) for n in range(KEPT, 0, -1)]
    return [file for file in (*found, path) if file.exists()]
