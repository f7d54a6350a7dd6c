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

from svcq.host.linux_children import Child
from svcq.host.linux_trees import branding, process_born


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
    from svcq.host.linux_spawn import spawn  # it needs ctypes, and `svcq log` does not

    streams = (output if terminal else _nothing(), output, output)

    def start(program: str | None = None) -> int:
        with _inherited(inherit):
            process = subprocess.Popen(
                argv,
                executable=program,
                cwd=cwd,
                env=env,
                stdin=streams[0],
                stdout=output,
                stderr=output,
                # To look for files to close takes the child longer than most of the rest, and us as
                # long, for we stand still meanwhile.
                close_fds=False,
                start_new_session=True,
            )
        process.returncode = 0  # others wait for it
        return process.pid

    def find_and_start() -> int:
        found = _program(argv[0], env.get("PATH"), int(time.monotonic()))
        if found is not None:
            pid = spawn(found, argv, cwd=cwd, env=env, streams=streams, inherit=inherit)
            if pid is not None:
                return pid
            with suppress(FileNotFoundError, PermissionError):  # whatever it was, it tells below
                return start(found)
        return start()

    _close_what_we_were_given()
    with nullcontext() if brand is None else branding(brand):
        if nice is not None or cpus is not None:
            return Child(_start_limited(find_and_start, nice, cpus))
        return Child(find_and_start())


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
    if "/" in name:
        return name if os.path.isabs(name) else None
    if not path or not all(map(os.path.isabs, path.split(":"))):
        return None
    return shutil.which(name, path=path)


@cache
def _nothing() -> int:
    """/dev/null, opened once: thousands of short commands want it."""
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _start_limited(start: Callable[[], int], nice: int | None, cpus: int | None) -> int:
    """Both limits belong to a thread and are inherited: set in one that ends with the start, they
    hold from the first instruction and for every child."""

    def limited() -> int:
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
