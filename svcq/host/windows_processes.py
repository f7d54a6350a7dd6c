"""Windows: processes. Starting them, with what they inherit: handles, limits, locked files."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from svcq.host import windows_handles as handles
from svcq.host import windows_jobs as jobs
from svcq.host import windows_kernel as kernel
from svcq.host.windows_trees import KILL, MARKER, process_born, signal_tree, tree_of
from svcq.host.windows_words import program_of

if TYPE_CHECKING:
    import asyncio

    from svcq.host.windows_lines import Line

_DETACHED, _NEW_GROUP, _SUSPENDED = 0x8, 0x200, 0x4
_NO_WINDOW, _BREAK_AWAY = 0x08000000, 0x01000000
_NORMAL, _BELOW_NORMAL, _ABOVE_NORMAL, _IDLE, _HIGH = 0x20, 0x4000, 0x8000, 0x40, 0x80
_ACCESS_DENIED, _NO_PROGRAM = 5, 193
_SHARING = 32
_TRIES, _NAP = 5, 0.004  # whoever asks for a lock has its file open for an instant
_BOOT_ID = 0x7FFE02C4  # where Windows shows every process how often it was started
# Without these, programs of Windows do not run, or do not find what they need.
_NEEDED = (
    "SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE",
    "USERNAME", "USERDOMAIN", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "ALLUSERSPROFILE",
    "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES", "PUBLIC",
    "HOMEDRIVE", "HOMEPATH", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS", "PATH",
)  # fmt: skip


# Ctrl-C and Ctrl-Break, where there is a console; what else ends a process cannot be heard.
END_SIGNALS = (signal.SIGINT, getattr(signal, "SIGBREAK", signal.SIGTERM))
CHILD_SIGNALS: tuple[signal.Signals, ...] = ()


class Exit(NamedTuple):
    """How a process ended: its exit code; what it and all in its pen used."""

    code: int
    cpu_ms: int
    peak_bytes: int | None


def boot_id() -> str:
    """Counted by Windows at every start; a clock that is set does not change it."""
    return f"boot-{ctypes.c_uint32.from_address(_BOOT_ID).value}"


def process_age(pid: int) -> float | None:
    """For how many seconds a process has been there, those asleep counted; None when it is gone."""
    born = process_born(pid)
    return None if born is None else time.time() - kernel.unix_seconds(int(born))


def hold_lock(path: str | Path) -> int | None:
    """Lock a file for as long as the returned descriptor, or a copy of it, is open anywhere.

    It is opened so that nobody else may open it to write. What Windows calls locking ends with the
    process that locked, whoever has inherited the file.
    """
    access = handles.GENERIC_READ | handles.GENERIC_WRITE
    share = handles.SHARE_READ | handles.SHARE_DELETE
    for left in reversed(range(_TRIES)):
        try:
            handle = handles.open_handle(path, access, share, handles.OPEN_ALWAYS)
        except OSError as error:
            if getattr(error, "winerror", 0) != _SHARING:
                raise
            if left:
                time.sleep(_NAP)
            continue
        return handles.descriptor_of(handle, os.O_RDWR)
    return None


def lock_is_held(path: str | Path) -> bool:
    try:
        handle = handles.open_handle(path, handles.APPEND_DATA, handles.SHARE_ALL)
    except FileNotFoundError:
        return False
    except OSError as error:
        if getattr(error, "winerror", 0) == _SHARING:
            return True
        raise
    handles.close_handle(handle)
    return False


def ignore_for_ourselves_alone() -> None:
    """Nothing to do: jobs have a console of their own, and hear what is said there."""


def adopt_orphans() -> None:
    """Nothing to do: what is left behind is in the pen of its run."""


def left_behind(brand: int) -> bool:  # noqa: ARG001 (as above)
    return False


def bury_orphans() -> list[int]:
    return []


def killed_for_memory_lately() -> bool:
    """Windows ends nobody for want of memory."""
    return False


class Child:
    """A process of ours, in a pen. `ended` tells of its end."""

    def __init__(self, handle: int, pid: int, pen: jobs.Pen) -> None:
        from asyncio import get_running_loop

        self.pid = pid
        self._handle = handle
        self._pen = pen
        self._loop = get_running_loop()
        self.ended: asyncio.Future[Exit] = self._loop.create_future()
        threading.Thread(target=self._wait, name=f"process {pid}", daemon=True).start()

    def step_back(self) -> None:
        """Whoever sits at the machine goes first: it was started below the usual priority."""

    def _wait(self) -> None:
        winapi = kernel.winapi()
        winapi.WaitForSingleObject(self._handle, winapi.INFINITE)
        with suppress(RuntimeError):  # the loop has ended before it
            self._loop.call_soon_threadsafe(self._has_ended)

    def _has_ended(self) -> None:
        winapi = kernel.winapi()
        code = winapi.GetExitCodeProcess(self._handle)
        times = kernel.spent(self._handle)
        winapi.CloseHandle(self._handle)
        of_its_own = 0 if times is None else round(times.cpu / 10_000)
        cpu_ms = max(self._pen.cpu_ms(), of_its_own)
        if not self.ended.done():
            self.ended.set_result(Exit(code, cpu_ms, self._pen.peak_bytes()))


def start_child(
    argv: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str],
    output: int,
    stdin: int | None = None,
    terminal: bool = False,  # noqa: ARG001 (there is none here)
    inherit: Sequence[int] = (),
    nice: int | None = None,
    cpus: int | None = None,
    brand: int | None = None,  # noqa: ARG001 (a pen needs none)
) -> Child:
    """Start a process whose output goes straight into a file, held in a pen from its first
    instruction on."""
    if cwd is not None and not os.path.isdir(cwd):
        raise FileNotFoundError(2, "there is no such folder", cwd)
    env = complete(env)
    program = program_of(argv, env, cwd)
    pen = jobs.next_pen()
    inherited = [handles.handle_of(one) for one in inherit]
    flags = _NO_WINDOW | _NEW_GROUP | _SUSPENDED | _priority(nice)
    with _streams(output, stdin) as streams:
        process, thread, pid = _create(program, flags, env, cwd, streams, inherited, argv[0])
    winapi = kernel.winapi()
    try:
        pen.take(process)
        # Said once more: not every Windows minds it at the start of a process.
        kernel.library("kernel32").SetPriorityClass(ctypes.c_void_p(process), _priority(nice))
        if cpus is not None:
            _limit_processors(process, cpus)
        jobs.mark(env.get(MARKER, ""), pen)
        kernel.library("kernel32").ResumeThread(ctypes.c_void_p(thread))
    except BaseException as error:
        # Nobody would hear of it, and it has not begun.
        winapi.TerminateProcess(process, 1)
        winapi.CloseHandle(process)
        if isinstance(error, OSError):
            raise
        raise OSError(0, f"it could not be held in a Job Object: {error}", argv[0]) from error
    finally:
        winapi.CloseHandle(thread)
    return Child(process, pid, pen)


class _streams:  # noqa: N801 (used as a function is)
    """Nothing to read, and where to write, as handles that can be inherited."""

    def __init__(self, output: int, stdin: int | None = None) -> None:
        self._output = output
        self._stdin = stdin

    def __enter__(self) -> tuple[int, int]:
        self._null = os.open(os.devnull, os.O_RDONLY)
        read = self._null if self._stdin is None else self._stdin
        self._both = [_inheritable(handles.handle_of(one)) for one in (read, self._output)]
        return self._both[0], self._both[1]

    def __exit__(self, *_: object) -> None:
        os.close(self._null)
        for one in self._both:
            kernel.winapi().CloseHandle(one)


def _inheritable(handle: int) -> int:
    winapi = kernel.winapi()
    us = winapi.GetCurrentProcess()
    return int(winapi.DuplicateHandle(us, handle, us, 0, True, winapi.DUPLICATE_SAME_ACCESS))


def _create(
    program: Any,
    flags: int,
    env: Mapping[str, str],
    cwd: str | None,
    streams: tuple[int, int],
    inherited: Sequence[int],
    name: str,
) -> tuple[int, int, int]:
    """CreateProcess; the process inherits what is named and nothing else."""
    nothing, output = streams
    for one in inherited:
        os.set_handle_inheritable(one, True)  # type: ignore[attr-defined, unused-ignore]
    startup = _startup(nothing, output, inherited)
    winapi = kernel.winapi()
    try:
        process, thread, pid, _ = winapi.CreateProcess(
            program.executable, program.line, None, None, True, flags, dict(env), cwd, startup
        )
    except OSError as error:
        if getattr(error, "winerror", 0) == _NO_PROGRAM:
            raise PermissionError(13, "it is no program", name) from None
        error.filename = name
        raise
    return process, thread, pid


def _startup(nothing: int, output: int, inherited: Sequence[int] = ()) -> Any:
    made: Any = subprocess.STARTUPINFO  # type: ignore[attr-defined, unused-ignore]
    startup = made(
        dwFlags=0x100, hStdInput=nothing, hStdOutput=output, hStdError=output,
        lpAttributeList={"handle_list": list(dict.fromkeys([nothing, output, *inherited]))},
    )  # fmt: skip
    # No box on the screen of whoever sits there, and no hour-glass.
    startup.dwFlags |= 0x80 | 0x1
    startup.wShowWindow = 0
    return startup


def complete(env: Mapping[str, str]) -> dict[str, str]:
    """Names mean the same in capitals, and some have to be there."""
    needed = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    return {**needed, **{name.upper(): value for name, value in env.items()}}


def _priority(nice: int | None) -> int:
    """Of five classes, the one that a nice value means."""
    if nice is None:
        return _BELOW_NORMAL
    if nice >= 15:
        return _IDLE
    if nice > 0:
        return _BELOW_NORMAL
    if nice == 0:
        return _NORMAL
    return _ABOVE_NORMAL if nice > -15 else _HIGH


def _limit_processors(process: int, cpus: int) -> None:
    """To the first of those that we may use; what it starts has no more."""
    library = kernel.library("kernel32")
    ours, all_of_them = ctypes.c_size_t(), ctypes.c_size_t()
    us = ctypes.c_void_p(library.GetCurrentProcess())
    library.GetProcessAffinityMask(us, ctypes.byref(ours), ctypes.byref(all_of_them))
    bits = [1 << n for n in range(ours.value.bit_length()) if ours.value >> n & 1]
    mask = ctypes.c_size_t(sum(bits[:cpus]))
    if mask.value:
        library.SetProcessAffinityMask(ctypes.c_void_p(process), mask)


def spawn_detached(
    argv: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: str | None = None
) -> int:
    """Start a process that outlives us, our console and, where that lets it go, the Job Object we
    are in; its pid.

    Where it does not, Windows ends the process with that Job Object: its jobs then go back, and
    nobody is told less than the truth, since it is no service's worker that is started so.
    """
    from svcq.host.windows_files import open_log

    output = open_log(log)
    words, env = interpreter(argv, env)
    flags = _DETACHED | _NEW_GROUP | _BREAK_AWAY
    try:
        with _streams(output) as (nothing, out):
            startup = _startup(nothing, out)
            for attempt in (flags, flags & ~_BREAK_AWAY):
                try:
                    process, thread, pid, _ = kernel.winapi().CreateProcess(
                        words[0], subprocess.list2cmdline(words), None, None, True, attempt,
                        complete(env), cwd or os.environ.get("SYSTEMDRIVE", "C:") + "\\", startup,
                    )  # fmt: skip
                    break
                except PermissionError as error:
                    if getattr(error, "winerror", 0) != _ACCESS_DENIED or attempt != flags:
                        raise
    finally:
        os.close(output)
    kernel.winapi().CloseHandle(process)
    kernel.winapi().CloseHandle(thread)
    return int(pid)


def interpreter(argv: Sequence[str], env: Mapping[str, str]) -> tuple[list[str], Mapping[str, str]]:
    """In a virtual environment, python.exe only starts the real one, whose pid is another: so the
    real one is started, and told for whom, as multiprocessing does."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    if argv[0] != sys.executable or os.path.normcase(base) == os.path.normcase(sys.executable):
        return list(argv), env
    return [base, *argv[1:]], {**env, "__PYVENV_LAUNCHER__": sys.executable}


def start_apart(
    argv: Sequence[str], env: Mapping[str, str] | None = None, **streams: Any
) -> subprocess.Popen[bytes]:
    """Start a child that does not hear what is typed at our console."""
    words, env = interpreter(argv, os.environ if env is None else env)
    return subprocess.Popen(words, env=complete(env), creationflags=_NEW_GROUP, **streams)


def punch_hole(descriptor: int, start: int, length: int) -> bool:
    """Give back the disk space of a part of a file that others go on appending to."""
    import pywintypes
    import win32file

    path = _path_of(descriptor)
    if length <= 0 or path is None:
        return False
    # To append is all that the descriptor may.
    try:
        handle = handles.open_handle(path, handles.GENERIC_WRITE, handles.SHARE_ALL)
    except OSError:
        return False
    try:
        win32file.DeviceIoControl(handle, _SET_SPARSE, None, 0)
        span = start.to_bytes(8, "little") + (start + length).to_bytes(8, "little")
        win32file.DeviceIoControl(handle, _SET_ZERO_DATA, span, 0)
    except pywintypes.error:
        return False
    finally:
        handles.close_handle(handle)
    return True


_SET_SPARSE, _SET_ZERO_DATA, _QUERY_ALLOCATED = 0x900C4, 0x980C8, 0x940CF


def _path_of(descriptor: int) -> str | None:
    import pywintypes
    import win32file

    try:
        return str(win32file.GetFinalPathNameByHandle(handles.handle_of(descriptor), 0))
    except (pywintypes.error, OSError):
        return None


def parts_with_data(descriptor: int, start: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that still have their data, as (from, to)."""
    import pywintypes
    import win32file

    if start >= size:
        return
    span = start.to_bytes(8, "little") + (size - start).to_bytes(8, "little")
    try:
        said = win32file.DeviceIoControl(
            handles.handle_of(descriptor), _QUERY_ALLOCATED, span, 1 << 16
        )
    except pywintypes.error:  # this file system has no holes
        said = span
    for at in range(0, len(said), 16):
        begin = int.from_bytes(said[at : at + 8], "little")
        length = int.from_bytes(said[at + 8 : at + 16], "little")
        yield max(begin, start), min(begin + length, size)


# Being asked to end


def hear_end(asked: Callable[[], None]) -> Callable[[], None]:
    """Call `asked`, in a thread, when someone of this account asks this process to end; what undoes
    that is returned."""
    import win32event

    event: Any = win32event.CreateEvent(None, True, False, _end_event(os.getpid()))
    done: Any = win32event.CreateEvent(None, True, False, None)

    def wait() -> None:
        if win32event.WaitForMultipleObjects([event, done], False, -1) == 0:
            asked()

    thread = threading.Thread(target=wait, name="end", daemon=True)
    thread.start()

    def stop() -> None:
        win32event.SetEvent(done)
        thread.join()
        event.Close()
        done.Close()

    return stop


def hear_end_in(
    loop: asyncio.AbstractEventLoop, asked: Callable[[str], None]
) -> Callable[[], None]:
    """Call `asked`, in the loop, with the reason why this process is to end; what undoes that is
    returned."""

    def ask(reason: str) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(asked, reason)

    for number in END_SIGNALS:
        signal.signal(number, lambda number, _: ask(f"the worker got signal {number}"))
    return hear_end(lambda: ask("the worker was asked to end"))


def ask_process_to_end(pid: int) -> bool:
    """Whether there is such a process, and it listens."""
    import pywintypes
    import win32event

    try:
        event: Any = win32event.OpenEvent(2, False, _end_event(pid))
    except pywintypes.error:
        return False
    win32event.SetEvent(event)
    event.Close()
    return True


def start_with_line(argv: Sequence[str], cwd: str | None, line: Line) -> subprocess.Popen[bytes]:
    """Start a child that says nothing but over the line it inherits."""
    return start_apart(
        argv, cwd=cwd, stdin=line.stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def kill_with_its_own(child: subprocess.Popen[bytes]) -> int:
    """End such a child with what it has started; how it ended."""
    born = process_born(child.pid)
    found = [] if born is None else tree_of("-", session=child.pid)
    signal_tree(found, KILL)
    child.kill()
    return child.wait()


def ask_child_to_end(child: subprocess.Popen[bytes]) -> None:
    """One that does not listen yet has nothing to lose."""
    if not ask_process_to_end(child.pid):
        child.terminate()


def _end_event(pid: int) -> str:
    return f"Global\\svcq-end-{pid}-{process_born(pid)}"
