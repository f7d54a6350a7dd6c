"""Linux: files that others may have a hand in, and logs that many write to the end of."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OURS = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def open_log(path: str | Path) -> int:
    """Open for appending and reading, made with its folder if need be, its owner's alone."""
    flags = os.O_RDWR | os.O_APPEND | _OURS
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def open_plain_file(path: str | os.PathLike[str], *, to_write: bool = False) -> int:
    """What a job has put in the place of its file must not make us wait, or read for ever."""
    access = os.O_RDWR if to_write else os.O_RDONLY
    descriptor = os.open(path, access | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return descriptor


def open_anew(path: str, flags: int) -> int:
    """For `open`, as its opener: the owner's alone, and never by way of a link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def read_at(descriptor: int, size: int, position: int) -> bytes:
    return os.pread(descriptor, size, position)


def write_at(descriptor: int, data: bytes, position: int) -> None:
    os.pwrite(descriptor, data, position)


def text_of(data: bytes) -> str:
    """What a program has written, as text."""
    return data.decode("utf-8", "replace")
