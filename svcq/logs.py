"""Where the output of a run is: one file each, written by the process itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from svcq.host import processes

TAIL_LINES = 20
TAIL_BYTES = 8 << 10


def log_file(home: Path, job: int, run: int) -> Path:
    """A folder holds a thousand jobs, so that none grows too large to list."""
    return home / "logs" / str(job // 1000) / f"{job}.{run}.log"


def open_log(path: Path) -> int:
    """Open for appending, made with its folder if need be, readable by its owner alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def tail(path: Path, lines: int = TAIL_LINES) -> str | None:
    """The last lines of a log, for the history; None when there is nothing."""
    try:
        if not os.stat(path).st_size:
            return None
        with open(_open_plain_file(path), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - TAIL_BYTES, 0))
            data = file.read(TAIL_BYTES)
    except OSError:
        return None
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    found = text.splitlines()[-lines:]
    return "\n".join(found) or None


def read_start(path: str | Path, limit: int) -> bytes | None:
    """The first bytes of a file that a job wrote; None where there is none."""
    try:
        with open(_open_plain_file(path), "rb") as file:
            return file.read(limit)
    except OSError:
        return None


def _open_plain_file(path: str | Path) -> int:
    """What a job has put in the place of its file must not make us wait, or read for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return descriptor


def drop_middle(path: Path, limit: int) -> int:
    """Keep the first and last half of a log's limit; the size of all that was written, or 0."""
    try:
        size = path.stat().st_size
        if size > limit:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                processes.punch_hole(descriptor, limit // 2, size - limit)
            finally:
                os.close(descriptor)
    except OSError:
        return 0
    return size


def read_log(path: Path, start: int = 0) -> Iterator[bytes]:
    """The bytes of a log from `start`; a part that was dropped is told as a line of its own."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        position = start
        for begin, end in processes.parts_with_data(file.fileno(), start, size):
            if begin > position:
                yield dropped(begin - position)
            file.seek(begin)
            position = begin
            while position < end and (chunk := file.read(min(end - position, 1 << 20))):
                position += len(chunk)
                yield chunk


def dropped(size: int) -> bytes:
    return f"\n[... {size:,} bytes dropped: the output was over its limit ...]\n".encode()
