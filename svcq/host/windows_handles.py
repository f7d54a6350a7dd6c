"""Windows: files opened as only its own functions can, and its errors as Python's.

Imports pywin32 inside its functions, so that the file can be read by every system's tools.
"""

from __future__ import annotations

import os
from typing import Any

GENERIC_READ, GENERIC_WRITE = 0x80000000, 0x40000000
READ_DATA, APPEND_DATA, READ_ATTRIBUTES, WRITE_ATTRIBUTES = 0x1, 0x4, 0x80, 0x100
READ_CONTROL, SYNCHRONIZE = 0x20000, 0x100000
SHARE_READ, SHARE_WRITE, SHARE_DELETE = 1, 2, 4
SHARE_ALL = SHARE_READ | SHARE_WRITE | SHARE_DELETE
CREATE_NEW, OPEN_EXISTING, OPEN_ALWAYS = 1, 3, 4
# A link is opened itself, and then refused, instead of what someone has pointed it at.
OPEN_LINK_ITSELF = 0x00200000
_IS_LINK = 0x400
_FOLDER_FLAGS = 0x02000000

BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)


def open_handle(
    path: str | os.PathLike[str],
    access: int,
    share: int,
    how: int = OPEN_EXISTING,
    security: Any = None,
    flags: int = 0,
) -> int:
    """A handle, which is the caller's to close; never that of a link."""
    import pywintypes
    import win32file

    name = os.fspath(path)
    try:
        handle: Any = win32file.CreateFile(
            name, access, share, security, how, flags | OPEN_LINK_ITSELF, None
        )
    except pywintypes.error as error:
        raise as_os_error(error, name) from None
    if how != CREATE_NEW and win32file.GetFileInformationByHandle(handle)[0] & _IS_LINK:
        handle.Close()
        raise PermissionError(13, "it is a link", name)
    return int(handle.Detach())


def descriptor_of(handle: int, flags: int) -> int:
    """A descriptor for it, as Python's own functions want one: it closes the handle."""
    import msvcrt

    return int(msvcrt.open_osfhandle(handle, flags | BINARY))  # type: ignore[attr-defined, unused-ignore]


def handle_of(descriptor: int) -> int:
    import msvcrt

    return int(msvcrt.get_osfhandle(descriptor))  # type: ignore[attr-defined, unused-ignore]


def close_handle(handle: int) -> None:
    import win32api

    win32api.CloseHandle(handle)


def as_os_error(error: Exception, path: str | os.PathLike[str]) -> OSError:
    """pywin32's error as the OSError that Python's own functions would raise."""
    code, _, message = error.args
    return OSError(0, message.rstrip("."), os.fspath(path), code)
