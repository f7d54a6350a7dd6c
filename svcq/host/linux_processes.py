"""Linux: processes. Starting them, telling them apart, and ending a whole tree for certain.

Pids are reused, so a process is known by its pid and its start time. A run's tree is found by what
every process of it has unless it takes pains to lose it: the session it was started in, the marker
in its environment, a locked file that it inherited, and a parent that is one of them.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

MARKER = "SVCQ_RUN"
# Jobs are work in the background.
BELOW_NORMAL = 5
_MOST_LISTS = 100  # a machine where processes are always born must not keep us looking


class Exit(NamedTuple):
    """How a process ended: an exit code, negative for a signal; what it and its children used.

    The peak counts from the fork on, when it still was a copy of us: None where it is no higher
    than our own, and so may not be its.
    """

    code: int
    cpu_ms: int
    peak_bytes: int | None


class Seen(NamedTuple):
    """A process as one look at the system found it."""

    pid: int
    born: str
    session: int
    parent: int


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def process_born(pid: int) -> str | None:
    """When a process was started, in the system's own count; None when it is gone."""
    seen = _look_at(pid)
    return None if seen is None else seen.born


def hold_lock(path: str | Path) -> int | None:
    """Lock a file for as long as the returned descriptor, or a copy of it, is open anywhere."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def lock_is_held(path: str | Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        # Shared: two who ask at the same time must not take each other for the holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def ignore_for_ourselves_alone() -> None:
    """What a shell or nohup told us to ignore: jobs would inherit it, but for a handler of ours."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def shell(line: str) -> list[str]:
    return ["/bin/sh", "-c", line]


class Child:
    """A process of ours in a session of its own. `ended` tells of its end, without a thread and
    without asking."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Exit] = self._loop.create_future()
        try:
            self._descriptor = os.pidfd_open(process.pid)
        except OSError:
            # No handle is left for it: a process that nobody hears of must not go on.
            process.kill()
            process.wait()
            raise
        self._loop.add_reader(self._descriptor, self._has_ended)

    def step_back(self) -> None:
        """Whoever sits at the machine goes first: below the usual priority, with its group."""
        with suppress(OSError):  # it may have ended already
            if os.getpriority(os.PRIO_PROCESS, self.pid) < BELOW_NORMAL:
                os.setpriority(os.PRIO_PGRP, self.pid, BELOW_NORMAL)

    def _has_ended(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        _, status, used = os.wait4(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code  # it must not wait a second time
        cpu_ms = round((used.ru_utime + used.ru_stime) * 1000)
        peak = used.ru_maxrss * 1024 if used.ru_maxrss > _own_peak(int(time.monotonic())) else None
        if not self.ended.done():
            self.ended.set_result(Exit(code, cpu_ms, peak))


@lru_cache(1)
def _own_peak(_: int) -> int:
    """In KiB, looked up once a second. What getrusage says would count our own parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def start_child(
    argv: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str],
    output: int,
    terminal: bool = False,
    inherit: Sequence[int] = (),
    nice: int | None = None,
    cpus: int | None = None,
) -> Child:
    """Start a process whose output goes straight into a file, or to a terminal."""

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=output if terminal else _nothing(),
            stdout=output,
            stderr=output,
            pass_fds=tuple(inherit),
            start_new_session=True,
        )

    if nice is not None or cpus is not None:
        return Child(_start_limited(start, nice, cpus))
    return Child(start())


@cache
def _nothing() -> int:
    """/dev/null, opened once: thousands of short commands want it."""
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _start_limited(
    start: Callable[[], subprocess.Popen[bytes]], nice: int | None, cpus: int | None
) -> subprocess.Popen[bytes]:
    """Both limits belong to a thread and are inherited: set in one that ends with the start, they
    hold from the first instruction and for every child."""

    def limited() -> subprocess.Popen[bytes]:
        with suppress(PermissionError):  # a lower nice value is not ours to give
            if nice is not None:
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
        if cpus is not None:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cpus])
        return start()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(limited).result()


def spawn_detached(
    argv: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: str = "/"
) -> int:
    """Start a process that outlives us, and the session we are in; its pid."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)
    process.returncode = 0  # we will not wait for it
    return process.pid


def tree_of(
    marker: str,
    *,
    session: int | None = None,
    lock: str | Path | None = None,
    known: Sequence[Seen] = (),
) -> list[Seen]:
    """The living processes of a run, by session, marker, inherited lock, and descent from these.

    A marker fits those that begin with it. `known` are those an earlier look has found: one that
    has lost its parent since is found no other way.
    """
    wanted = f"{MARKER}={marker}".encode()
    held = None if lock is None else _inode(lock)
    living: dict[int, Seen] = {}
    found = set()
    for pid in _all_pids():
        seen = None if pid == os.getpid() else _look_at(pid)
        if seen is None:
            continue
        living[pid] = seen
        if seen.session == session or _has_marker(pid, wanted) or _has_open(pid, held):
            found.add(pid)
    found |= {one.pid for one in known if one.pid in living and living[one.pid].born == one.born}
    grown = True
    while grown:
        children = {pid for pid, seen in living.items() if seen.parent in found} - found
        found |= children
        grown = bool(children)
    return [living[pid] for pid in sorted(found)]


def signal_tree(processes: Sequence[Seen], number: int) -> None:
    """Send a signal to each that is still the process that was seen."""
    for process in processes:
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:
            continue
        try:
            # The descriptor is of whoever has the pid now; it keeps that pid from being reused.
            if process_born(process.pid) == process.born:
                signal.pidfd_send_signal(descriptor, number)
        except (ProcessLookupError, PermissionError):
            pass
        finally:
            os.close(descriptor)


def resident_bytes(processes: Sequence[Seen]) -> int:
    """The memory a tree has in use now."""
    return sum(_resident(process.pid) for process in processes)


def _all_pids() -> Iterator[int]:
    """Every process, those too that are born while we look.

    One that lives on by forking and ending is always in one of two lists in a row: it has its
    child before it ends.
    """
    looked_at: set[int] = set()
    for _ in range(_MOST_LISTS):
        new = {int(name) for name in os.listdir("/proc") if name.isdigit()} - looked_at
        if not new:
            return
        yield from sorted(new)
        looked_at |= new


def _look_at(pid: int) -> Seen | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name, in parentheses, may hold anything; what follows its last one does not.
    fields = text[text.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    return Seen(pid, fields[19].decode(), session=int(fields[3]), parent=int(fields[1]))


def _has_marker(pid: int, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(wanted) for entry in file.read().split(b"\0"))
    except OSError:
        return False


def _inode(path: str | Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has_open(pid: int, wanted: tuple[int, int] | None) -> bool:
    if wanted is None:
        return False
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for name in names:
        with suppress(OSError):  # closed since
            status = os.stat(f"/proc/{pid}/fd/{name}")
            if (status.st_dev, status.st_ino) == wanted:
                return True
    return False


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def punch_hole(descriptor: int, start: int, length: int) -> bool:
    """Give back the disk space of a part of a file that others go on appending to.

    Whole blocks alone: the rest would stay as zeros among the text.
    """
    import ctypes

    block = os.fstat(descriptor).st_blksize
    end = (start + length) // block * block
    start = -(-start // block) * block
    length = end - start
    if length <= 0:
        return False

    keep_size, punch = 1, 2
    libc = ctypes.CDLL(None, use_errno=True)
    off = ctypes.c_longlong
    return bool(libc.fallocate64(descriptor, keep_size | punch, off(start), off(length)) == 0)


def parts_with_data(descriptor: int, start: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that still have their data, as (from, to)."""
    while start < size:
        try:
            begin = os.lseek(descriptor, start, os.SEEK_DATA)
        except OSError:
            return
        start = os.lseek(descriptor, begin, os.SEEK_HOLE)
        yield begin, min(start, size)
