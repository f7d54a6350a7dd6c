"""Linux: processes. Starting them, with what they inherit: a session, limits, locked files."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from svcq.host.linux_trees import branding, has_brand, process_born

if TYPE_CHECKING:
    import asyncio

# Jobs are work in the background.
BELOW_NORMAL = 5


class Exit(NamedTuple):
    """How a process ended: an exit code, negative for a signal; what it and its children used.

    The peak counts from the fork on, when it still was a copy of us: None where it is no higher
    than our own, and so may not be its.
    """

    code: int
    cpu_ms: int
    peak_bytes: int | None


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def process_age(pid: int) -> float | None:
    """For how many seconds a process has been there, those asleep counted; None when it is gone."""
    born = process_born(pid)
    if born is None:
        return None
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(born) / os.sysconf("SC_CLK_TCK")


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

    known: ClassVar[set[int]] = set()  # the pids of those that have not been waited for

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        # Whoever starts processes has it by now; `svcq why`, which starts none, need not wait.
        from asyncio import get_running_loop

        self._process = process
        self.pid = process.pid
        self._loop = get_running_loop()
        self.ended: asyncio.Future[Exit] = self._loop.create_future()
        try:
            self._descriptor = os.pidfd_open(process.pid)
        except OSError:
            # No handle is left for it: a process that nobody hears of must not go on.
            process.kill()
            process.wait()
            raise
        Child.known.add(self.pid)
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
        Child.known.discard(self.pid)
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code  # it must not wait a second time
        cpu_ms = round((used.ru_utime + used.ru_stime) * 1000)
        if not self.ended.done():
            self.ended.set_result(Exit(code, cpu_ms, _peak_of_child(used.ru_maxrss)))


def adopt_orphans() -> None:
    """From now on, what our children leave behind when they end is a child of ours, not init's."""
    import ctypes

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def left_behind(brand: int) -> bool:
    """Whether one of those is branded so: a sign that costs little, where a look at all processes
    costs more than most commands."""
    return any(has_brand(pid, brand) for pid in bury_orphans())


def bury_orphans() -> list[int]:
    """Wait for those that have ended; the pids of the others."""
    return [pid for pid in _orphans() if not _has_been_buried(pid)]


def _orphans() -> list[int]:
    """Our children that we did not start: what a thread of ours may run is of our own session."""
    try:
        descriptor = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # not every kernel tells
        return []
    try:
        children = os.read(descriptor, 1 << 16).split()
    finally:
        os.close(descriptor)
    unknown = {int(pid) for pid in children}.difference(Child.known)
    return [pid for pid in unknown if _session_of(pid) not in (None, os.getsid(0))]


def _session_of(pid: int) -> int | None:
    with suppress(ProcessLookupError):
        return os.getsid(pid)
    return None


def _has_been_buried(pid: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return True


def _peak_of_child(peak: int) -> int | None:
    """In bytes, of what the kernel says in KiB; None where it may be what the child had of us."""
    if peak <= _own_peak(int(time.monotonic())) + _INEXACT:
        return None
    # We may have grown since we looked.
    return peak * 1024 if peak > own_peak() + _INEXACT else None


_INEXACT = 512  # KiB: the kernel counts by processor, and adds up now and then


def own_peak() -> int:
    """In KiB. What getrusage says would count our own parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


@lru_cache(1)
def _own_peak(_: int) -> int:
    """Looked up once a second."""
    return own_peak()


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
    brand: int | None = None,
) -> Child:
    """Start a process whose output goes straight into a file, or to a terminal."""

    def start(program: str | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            executable=program,
            cwd=cwd,
            env=env,
            stdin=output if terminal else _nothing(),
            stdout=output,
            stderr=output,
            # To look for files to close takes the child longer than most of the rest, and us as
            # long, for we stand still meanwhile.
            close_fds=False,
            start_new_session=True,
        )

    def find_and_start() -> subprocess.Popen[bytes]:
        found = _program(argv[0], env.get("PATH"), int(time.monotonic()))
        if found is not None:
            with suppress(FileNotFoundError, PermissionError):  # whatever it was, it tells below
                return start(found)
        return start()

    _close_what_we_were_given()
    with nullcontext() if brand is None else branding(brand), _inherited(inherit):
        if nice is not None or cpus is not None:
            process = _start_limited(find_and_start, nice, cpus)
        else:
            process = find_and_start()
    return Child(process)


@cache
def _close_what_we_were_given() -> None:
    """Files that were open when we began are none of our children's; ours never are."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with suppress(OSError):  # that of the list itself
                os.set_inheritable(int(name), False)


@contextmanager
def _inherited(descriptors: Sequence[int]) -> Iterator[None]:
    """By what is started meanwhile. Whoever starts something else in another thread closes all that
    is not meant for it, as subprocess does unless told otherwise."""
    for one in descriptors:
        os.set_inheritable(one, True)
    try:
        yield
    finally:
        for one in descriptors:
            os.set_inheritable(one, False)


@lru_cache(64)
def _program(name: str, path: str | None, _: int) -> str | None:
    """Where a program is, looked up once a second: many commands are one program again and again.
    None where that is for the child to find out, in the directory it runs in."""
    if "/" in name or not path or not all(map(os.path.isabs, path.split(":"))):
        return None
    return shutil.which(name, path=path)


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

    from concurrent.futures import ThreadPoolExecutor  # as above

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
