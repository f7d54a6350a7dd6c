"""Windows: files that others may have a hand in, and logs that many write to the end of."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from svcq.host import windows_handles as handles

_APPENDING = handles.GENERIC_READ | handles.APPEND_DATA | handles.SYNCHRONIZE


def open_log(path: str | Path) -> int:
    """Open for appending and reading, made with its folder if need be.

    Without the right to write anywhere else than at the end, Windows appends whatever the programs
    that inherit it do; Python's own way of appending is a habit of one process. Its folder hands
    down that it is its owner's alone. It may be given another name while it is open.
    """
    try:
        handle = _open_log(path)
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        handle = _open_log(path)
    return handles.descriptor_of(handle, os.O_RDWR | os.O_APPEND)


def _open_log(path: str | Path) -> int:
    return handles.open_handle(path, _APPENDING, handles.SHARE_ALL, handles.OPEN_ALWAYS)


def open_plain_file(path: str | os.PathLike[str], *, to_write: bool = False) -> int:
    """What a job has put in the place of its file must not make us wait, or read for ever."""
    access = handles.GENERIC_READ | (handles.GENERIC_WRITE if to_write else 0)
    handle = handles.open_handle(path, access, handles.SHARE_ALL)
    descriptor = handles.descriptor_of(handle, os.O_RDWR if to_write else os.O_RDONLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return descriptor


def open_anew(path: str, flags: int) -> int:
    """For `open`, as its opener: its folder hands down whose it is."""
    return os.open(path, flags | handles.BINARY, 0o600)


def read_at(descriptor: int, size: int, position: int) -> bytes:
    os.lseek(descriptor, position, os.SEEK_SET)
    return os.read(descriptor, size)


def write_at(descriptor: int, data: bytes, position: int) -> None:
    os.lseek(descriptor, position, os.SEEK_SET)
    os.write(descriptor, data)


def text_of(data: bytes) -> str:
    """What a program has written, as text: many still write in the code page of the console."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character that the end or the start has cut in two is no sign of another encoding.
        if len(data) - error.start < 4 or error.start < 4:
            text = data.decode("utf-8", "replace")
            if text.count("\ufffd") <= 4:
                return text
        return data.decode("oem", "replace")
