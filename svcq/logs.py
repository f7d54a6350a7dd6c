"""Where the output of a run is: one file each, written by the process itself."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from svcq.host import processes

TAIL_LINES = 20
TAIL_BYTES = 8 << 10
_BLOCK = 1 << 16
# A file system keeps some of its last blocks for itself, and a write needs more than one.
_NO_ROOM = 64 << 10


def log_file(home: Path, job: int, run: int) -> Path:
    """A folder holds a thousand jobs, so that none grows too large to list."""
    return Path(f"{home}/logs/{job // 1000}/{job}.{run}.log")


def open_log(path: str | Path) -> int:
    """Open for appending and reading, made with its folder if need be, its owner's alone."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        _make_folder(path)
        return os.open(path, flags, 0o600)


def name_log(unnamed: str, path: Path) -> Path:
    """Give a log its name, whoever is writing to it; or, where there is no place for that, one
    beside the one it has. Where it is now."""
    try:
        try:
            os.rename(unnamed, path)
        except FileNotFoundError:
            _make_folder(path)
            os.rename(unnamed, path)
    except OSError:
        path = Path(unnamed).with_name(path.name)
        os.rename(unnamed, path)
    return path


def _make_folder(path: str | Path) -> None:
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def tail(path: Path, lines: int = TAIL_LINES) -> str | None:
    """The last lines of a log, for the history; None when there is nothing."""
    try:
        if not os.stat(path).st_size:
            return None
        descriptor = open_plain_file(path)
    except OSError:
        return None
    try:
        return tail_of(descriptor, lines)
    finally:
        os.close(descriptor)


def tail_of(descriptor: int, lines: int = TAIL_LINES) -> str | None:
    """The same of a log that is open, wherever it is by now."""
    start = max(os.fstat(descriptor).st_size - TAIL_BYTES, 0)
    data = os.pread(descriptor, TAIL_BYTES, start)
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    found = text.splitlines()[-lines:]
    return "\n".join(found) or None


def read_start(path: str | Path, limit: int) -> bytes | None:
    """The first bytes of a file that a job wrote; None where there is none."""
    try:
        with open(open_plain_file(path), "rb") as file:
            return file.read(limit)
    except OSError:
        return None


def open_plain_file(path: str | Path) -> int:
    """What a job has put in the place of its file must not make us wait, or read for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return descriptor


def drop_middle(descriptor: int, limit: int) -> int:
    """Keep the first and last half of a log's limit; the size of all that was written."""
    size = os.fstat(descriptor).st_size
    if size > limit:
        processes.punch_hole(descriptor, limit // 2, size - limit)
    return size


def full_disk(log: Path) -> str | None:
    """What there is to say of the disk under a log when it has no room left."""
    folder = log.parents[1]
    try:
        left = shutil.disk_usage(folder).free
    except OSError:
        return None
    return f"the disk under {folder} is full: free some space" if left < _NO_ROOM else None


def read_log(path: Path, start: int = 0, until: int | None = None) -> Iterator[bytes]:
    """The bytes of a log from `start`, to where it ends now or at `until`; a part that was dropped
    is told as a line of its own."""
    with open(open_plain_file(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size if until is None else until
        position = start
        for begin, end in processes.parts_with_data(file.fileno(), start, size):
            if begin > position:
                yield dropped(begin - position)
            file.seek(begin)
            position = begin
            while position < end and (chunk := file.read(min(end - position, _BLOCK))):
                position += len(chunk)
                yield chunk


def dropped(size: int) -> bytes:
    return f"\n[... {size:,} bytes dropped: the output was over its limit ...]\n".encode()


class Log:
    """The output of a run, wherever the reader is: here it is a file."""

    def __init__(self, path: Path) -> None:
        self.path: Path | None = path

    def size(self) -> int | None:
        """How long it is now; None when it is not here."""
        assert self.path is not None
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return None

    def start_of_tail(self, lines: int) -> int:
        assert self.path is not None
        return start_of_tail(self.path, lines)

    def reader(self, position: int = 0) -> LogReader:
        assert self.path is not None
        return LogReader(self.path, position)

    def read(self, start: int = 0) -> Iterator[bytes]:
        """As read_log: all that is there now."""
        return self.reader(start).read()


class LogReader:
    """What was written to a log since the last look."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self.path = path
        self.position = position

    def read(self) -> Iterator[bytes]:
        """As read_log, from where it stopped the last time; nothing when there is no file."""
        try:
            file = open(open_plain_file(self.path), "rb")  # noqa: SIM115  closed below
        except FileNotFoundError:
            return
        with file:
            size = os.fstat(file.fileno()).st_size
            if size == self.position:
                return
            for begin, end in processes.parts_with_data(file.fileno(), self.position, size):
                if begin > self.position:
                    yield dropped(begin - self.position)
                file.seek(begin)
                self.position = begin
                while self.position < end and (
                    chunk := file.read(min(end - self.position, _BLOCK))
                ):
                    self.position += len(chunk)
                    yield chunk


def start_of_tail(path: Path, lines: int) -> int:
    """Where the last lines of a file begin, found from its end."""
    with open(open_plain_file(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        parts = list(processes.parts_with_data(file.fileno(), 0, size))
        if not lines:
            return size
        wanted = lines + 1  # the end of the line before them
        if size:
            file.seek(size - 1)
            wanted -= file.read(1) != b"\n"
        for begin, end in reversed(parts):
            position = end
            while position > begin:
                start = max(position - _BLOCK, begin)
                file.seek(start)
                block = file.read(position - start)
                found = block.count(b"\n")
                if found >= wanted:
                    return start + _nth_last(block, wanted) + 1
                wanted -= found
                position = start
    return 0


def _nth_last(block: bytes, n: int) -> int:
    at = len(block)
    for _ in range(n):
        at = block.rindex(b"\n", 0, at)
    return at
