"""Tasks of a project, as a user would write them; workers of these tests import it."""

from __future__ import annotations

import ast
import asyncio
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import svcq
from tests.lifecycle.recorder import record


@svcq.task
def add(a: int, b: int) -> int:
    return a + b


@svcq.task
async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0.01)
    return a + b


@svcq.task
def which_process() -> int:
    return os.getpid()


@svcq.task
async def which_process_async() -> int:
    return os.getpid()


@svcq.task
def surroundings() -> dict[str, str]:
    return dict(os.environ)


@svcq.task
def speak() -> None:
    print("from print")
    print("from stderr", file=sys.stderr)
    os.write(1, b"from the descriptor\n")
    subprocess.run(["echo", "from a subprocess"], check=True)


@svcq.task
async def speak_async(word: str) -> None:
    for number in range(3):
        print(word, number)
        await asyncio.sleep(0.01)


@svcq.task
def speak_then_wait(file: str) -> None:
    print("before the wait")
    wait_for(file)
    print("after it")


@svcq.task
async def speak_then_wait_async(file: str) -> None:
    print("before the wait")
    while not os.path.exists(file):  # noqa: ASYNC110, ASYNC240 (another process makes it)
        await asyncio.sleep(0.01)
    print("after it")


@svcq.task
def tell(fraction: float, note: str, file: str) -> dict[str, Any]:
    job = svcq.current_job()
    job.progress(fraction, note)
    wait_for(file)
    return {"id": job.id, "run": job.run, "attempt": job.attempt}


@svcq.task
def chatter(times: int) -> None:
    for number in range(times):
        svcq.current_job().progress(number / times, f"{number}")


@svcq.task
def until_cancelled() -> str:
    while not svcq.current_job().cancelled:
        time.sleep(0.01)
    raise RuntimeError("stopped cleanly")


@svcq.task
def until_file(file: str) -> int:
    wait_for(file)
    return os.getpid()


@svcq.task
async def until_file_async(file: str) -> int:
    while not os.path.exists(file):  # noqa: ASYNC110, ASYNC240 (another process makes it)
        await asyncio.sleep(0.01)
    return os.getpid()


@svcq.task
def retry_twice() -> int:
    job = svcq.current_job()
    if job.attempt < 3:
        raise svcq.Retry("not yet", delay=0.01)
    return job.attempt


@svcq.task
def reject(reason: str) -> None:
    raise svcq.Reject(reason)


@svcq.task
def snooze_once(file: str) -> str:
    if not Path(file).exists():
        Path(file).touch()
        raise svcq.Snooze(0.01)
    return "awake"


@svcq.task
def fail(message: str) -> None:
    raise ValueError(message)


@svcq.task
async def fail_async(message: str) -> None:
    raise ValueError(message)


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot be shown")


@svcq.task
def fail_unshowably() -> None:
    raise Unshowable


@svcq.task
def give(kind: str) -> Any:
    return {
        "object": object(),
        "nan": float("nan"),
        "surrogate": "\ud800",
        "nul": "a\0b",
        "large": "x" * (2 << 20),
        "text": "grüße €",
    }[kind]


@svcq.task
def misbehave(how: str) -> None:
    print(f"about to {how}")
    MISDEEDS[how]()


def interrupt() -> None:
    raise KeyboardInterrupt


def fork_and_die() -> None:
    if os.fork() == 0:
        time.sleep(600)
    os._exit(9)


def close_stdout() -> None:
    sys.stdout.close()


MISDEEDS: dict[str, Callable[[], object]] = {
    "exit": lambda: sys.exit(3),
    "interrupt": interrupt,
    "os exit": lambda: os._exit(7),
    "segfault": lambda: ctypes.string_at(0),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "fork and die": fork_and_die,
    "close all": lambda: os.closerange(3, 256),
    "close stdout": close_stdout,
    "replace stdout": lambda: setattr(sys, "stdout", None),
    "remove its log": lambda: os.unlink(os.readlink("/proc/self/fd/1")),
    "surrogate progress": lambda: svcq.current_job().progress(0.5, "\ud800 and \0"),
}


@svcq.task
async def misbehave_async(how: str) -> None:
    match how:
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "cancel itself":
            raise asyncio.CancelledError
        case "os exit":
            os._exit(7)
        case _:
            raise AssertionError(how)


@svcq.task
def loop_forever() -> None:
    while True:
        pass


@svcq.task
def use_memory(megabytes: int) -> None:
    kept = bytearray(megabytes << 20)
    for position in range(0, len(kept), 4096):
        kept[position] = 1
    time.sleep(600)


@svcq.task
def use_memory_in(cgroup: str, megabytes: int) -> None:
    Path(cgroup, "cgroup.procs").write_text("0")
    use_memory.function(megabytes)


@svcq.task
async def use_memory_async(megabytes: int) -> None:
    kept = bytearray(megabytes << 20)
    for position in range(0, len(kept), 4096):
        kept[position] = 1
    await asyncio.sleep(600)


@svcq.task
def usage() -> dict[str, Any]:
    look = "import os; print(os.nice(0), len(os.sched_getaffinity(0)))"
    child = subprocess.run([sys.executable, "-S", "-c", look], capture_output=True, check=True)
    return {
        "process": os.getpid(),
        "nice": os.nice(0),
        "cpus": len(os.sched_getaffinity(0)),
        "child": [int(number) for number in child.stdout.split()],
    }


@svcq.task
async def usage_async() -> dict[str, Any]:
    found: dict[str, Any] = usage.function()
    return found


@svcq.task
async def block(file: str) -> None:
    append(file, "blocks")
    time.sleep(600)  # noqa: ASYNC251 (what a coroutine must never do)


@svcq.task
def print_much(lines: int) -> None:
    for _ in range(lines):
        print("x" * 99)


@svcq.task
def print_for_ever() -> None:
    while True:
        print("x" * 9999)


@svcq.task
def short(file: str) -> None:
    append(file, f"{svcq.current_job().id} {os.getppid()}")


@svcq.task
def leave_children(file: str, how: str) -> None:
    """Start processes that would outlive this one, and wait."""
    if how == "fork":
        if os.fork() == 0:
            os.setsid()
            append(file, str(os.getpid()))
            time.sleep(600)
            os._exit(0)
    else:
        child = subprocess.Popen(["setsid", "sleep", "600"])
        append(file, str(child.pid))
    time.sleep(600)


@svcq.task
def run_and_wait(line: str, file: str) -> None:
    append(file, str(os.getpid()))
    subprocess.run(["sh", "-c", line], check=True)
    time.sleep(600)


@svcq.task
def leave_a_child_and_fail(file: str) -> None:
    child = subprocess.Popen(["setsid", "sleep", "600"])
    append(file, str(child.pid))
    raise ValueError("failed beside its child")


@svcq.task
def leave_a_process(file: str, how: str, end: str) -> None:
    STARTS[how](file)
    while not (os.path.exists(file) and Path(file).read_text().endswith("\n")):
        time.sleep(0.01)
    while end == "when asked" and not svcq.current_job().cancelled:
        time.sleep(0.01)
    if end != "completed":
        raise RuntimeError("ended beside a process of its own")


def start(*argv: str, **options: Any) -> Callable[[str], None]:
    return lambda file: append(file, str(subprocess.Popen(argv, **options).pid))


def double_fork(file: str) -> None:
    first = os.fork()
    if first == 0:
        if os.fork() == 0:
            os.setsid()
            append(file, str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    os.waitpid(first, 0)


def start_in_thread(file: str) -> None:
    thread = threading.Thread(target=start("sleep", "600"), args=(file,))
    thread.start()
    thread.join()


def start_by_server(file: str) -> None:
    written = len(Path(file).read_text()) if os.path.exists(file) else 0
    context = multiprocessing.get_context("forkserver")
    context.Process(target=append_and_sleep, args=(file,)).start()
    while not os.path.exists(file) or len(Path(file).read_text()) <= written:
        time.sleep(0.01)


def append_and_sleep(file: str) -> None:
    append(file, str(os.getpid()))
    time.sleep(600)


def start_tidy(file: str) -> None:
    start("sh", "-c", TIDY.format(file))(file)
    while not os.path.exists(f"{file}-up"):
        time.sleep(0.01)


STARTS: dict[str, Callable[[str], None]] = {
    "popen": start("sleep", "600"),
    "setsid": start("setsid", "sleep", "600"),
    "double fork": double_fork,
    "bare environment": start("/usr/bin/sleep", "600", env={}, start_new_session=True),
    "deaf": start("sh", "-c", "trap '' TERM; while :; do sleep 1; done"),
    "thread": start_in_thread,
    "forkserver": start_by_server,
    "tidy": start_tidy,
}
# Ready once its trap is set, and slow to end when it is asked to.
TIDY = (
    "trap 'sleep 1; echo tidied > {0}-tidied; exit' TERM; touch {0}-up; while :; do sleep 0.1; done"
)


@svcq.task
async def leave_a_process_async(file: str, go: str, how: str = "exec") -> None:
    await STARTS_ASYNC.get(how, in_loop(STARTS.get(how)))(file)
    while not (os.path.exists(go) and os.path.exists(file)):  # noqa: ASYNC110, ASYNC240 (others do)
        await asyncio.sleep(0.01)


def in_loop(begin: Callable[[str], None] | None) -> Callable[[str], Awaitable[None]]:
    async def start_it(file: str) -> None:
        assert begin is not None
        begin(file)

    return start_it


async def start_exec(file: str) -> None:
    child = await asyncio.create_subprocess_exec("setsid", "sleep", "600")
    append(file, str(child.pid))


async def start_in_another_thread(file: str) -> None:
    await asyncio.to_thread(start("sleep", "600", env={}, start_new_session=True), file)


def start_by_posix_spawn(file: str) -> None:
    append(file, str(os.posix_spawn("/usr/bin/sleep", ["sleep", "600"], {})))


def start_by_multiprocessing(way: str) -> Callable[[str], None]:
    def start_it(file: str) -> None:
        process = multiprocessing.get_context(way).Process(target=append_and_sleep, args=(file,))
        process.start()

    return start_it


def start_by_foreign_code(file: str) -> None:
    """As an extension module may do it: nobody hears of it."""
    pid = ctypes.c_int()
    argv = (ctypes.c_char_p * 3)(b"sleep", b"600", None)
    libc = ctypes.CDLL(None)
    assert libc.posix_spawn(ctypes.byref(pid), b"/usr/bin/sleep", None, None, argv, None) == 0
    append(file, str(pid.value))


STARTS_ASYNC: dict[str, Callable[[str], Awaitable[None]]] = {
    "exec": start_exec,
    "thread": start_in_another_thread,
    "popen": in_loop(start("/usr/bin/sleep", "600", env={}, start_new_session=True)),
    "fork": in_loop(double_fork),
    "posix_spawn": in_loop(start_by_posix_spawn),
    "multiprocessing fork": in_loop(start_by_multiprocessing("fork")),
    "multiprocessing spawn": in_loop(start_by_multiprocessing("spawn")),
}
STARTS["foreign"] = start_by_foreign_code


@svcq.task
async def leave_children_async(file: str) -> None:
    child = await asyncio.create_subprocess_exec("setsid", "sleep", "600")
    append(file, str(child.pid))
    await asyncio.sleep(600)


def wait_for(file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.01)


def append(file: str, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{text}\n".encode())
    os.fsync(descriptor)
    os.close(descriptor)


def fail_with(start: str, length: int) -> None:
    """A plain function, found by its path. `start` is Python's own way to write what follows."""
    text = ast.literal_eval(start)
    raise ValueError(text if length < 1000 else text[0] * length)


@svcq.task
def recorded(folder: str, seconds: float) -> None:
    record(folder, str(svcq.current_job().id), seconds)
