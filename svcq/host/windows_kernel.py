"""Windows: the functions of its kernel that pywin32 leaves out, and its processes as numbers.

Reaches its libraries inside its functions, so that the file can be imported anywhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

QUERY, TERMINATE, SUSPEND, SYNCHRONIZE = 0x1000, 0x0001, 0x0800, 0x100000
_SNAPSHOT_PROCESSES = 2
_WAITED = 0
_EPOCH = 116_444_736_000_000_000  # 1970 in the ticks of Windows, of 100 ns since 1601


class _Entry(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32),
        ("usage", ctypes.c_uint32),
        ("pid", ctypes.c_uint32),
        ("heap", ctypes.c_void_p),
        ("module", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("parent", ctypes.c_uint32),
        ("priority", ctypes.c_long),
        ("flags", ctypes.c_uint32),
        ("name", ctypes.c_wchar * 260),
    )


class Spent(NamedTuple):
    """The times of a process, in ticks of 100 ns."""

    born: int
    cpu: int


@cache
def library(name: str) -> Any:
    found = ctypes.WinDLL(name, use_last_error=True)  # type: ignore[attr-defined]
    if name == "kernel32":
        found.CreateToolhelp32Snapshot.restype = ctypes.c_void_p
        found.OpenProcess.restype = ctypes.c_void_p
        found.GetCurrentProcess.restype = ctypes.c_void_p
    return found


def winapi() -> Any:
    """What the standard library itself starts processes with."""
    return import_module("_winapi")


def registry() -> Any:
    return import_module("winreg")


@contextmanager
def opened(pid: int, access: int) -> Iterator[int | None]:
    """A handle of a process; None when it is gone or not ours to have."""
    kernel = library("kernel32")
    handle = kernel.OpenProcess(access, False, pid)
    try:
        yield handle or None
    finally:
        if handle:
            kernel.CloseHandle(ctypes.c_void_p(handle))


def spent(handle: int) -> Spent | None:
    times = [ctypes.c_uint64() for _ in range(4)]
    pointers = [ctypes.byref(one) for one in times]
    if not library("kernel32").GetProcessTimes(ctypes.c_void_p(handle), *pointers):
        return None
    born, _, in_kernel, in_program = (one.value for one in times)
    return Spent(born, in_kernel + in_program)


def has_ended(handle: int) -> bool:
    waited = library("kernel32").WaitForSingleObject(ctypes.c_void_p(handle), 0)
    return bool(waited == _WAITED)


def parents() -> dict[int, int]:
    """Every process there is, with the pid of whoever started it, who may be gone."""
    kernel = library("kernel32")
    list_of_all = ctypes.c_void_p(kernel.CreateToolhelp32Snapshot(_SNAPSHOT_PROCESSES, 0))
    entry = _Entry(size=ctypes.sizeof(_Entry))
    found = {}
    try:
        more = kernel.Process32FirstW(list_of_all, ctypes.byref(entry))
        while more:
            found[int(entry.pid)] = int(entry.parent)
            more = kernel.Process32NextW(list_of_all, ctypes.byref(entry))
    finally:
        kernel.CloseHandle(list_of_all)
    return found


def unix_seconds(ticks: int) -> float:
    return (ticks - _EPOCH) / 10_000_000
