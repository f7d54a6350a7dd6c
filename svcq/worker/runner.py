"""Runs Python functions for a worker, in the interpreter of the project they belong to.

One file of standard library code, started by its path, so that any Python from 3.9 on can run it.
It speaks JSON, a line a batch, over a socket it inherits:

    worker -> runner    {"hello": {...}}                       once, with what to import
                        {"run": [[key, task, args, attempt, log, marker, job, run, grace, brand],
                                 ...]}
                        {"cancel": [key, ...]}                 ends a coroutine; a function may look
                        {"give_back": true}                    what has not been started yet
    runner -> worker    {"ready": {"protocol", "python", "tasks": {name: is_async},
                                   "declared": {name: [options, policy]}}}
                        {"failed": "why the project cannot be imported"}
                        {"done": [[key, how, result, error, delay_ms, wrote, left], ...]}
                        {"progress": [key, fraction, note]}
                        {"returned": [key, ...]}               never started, as asked

A plain runner holds one function at a time, whose output goes to its log by the file descriptors
themselves; an async runner holds many coroutines, whose prints are told apart by their context.

A call ends with the processes it has started: they are asked to end, have the job's grace to do so,
and are killed. Those of a function are all that were born while it ran. Those of a coroutine are
told by a brand (a limit that every child inherits), which they get when they are started by way of
the standard library; those started in other ways end when the runner has no call left. What was
there before (started by an import) stays, as do the helpers of multiprocessing and the workers of
pools that the project still holds. `left` says that some would not end.

When the worker is gone, the socket closes and the runner ends at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import errno
import functools
import importlib
import inspect
import io
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TextIO

try:
    import resource
except ImportError:  # on Windows, where a job object does what the brand is for
    usual_brand = None
else:
    usual_brand = resource.getrlimit(10)  # BRAND

PROTOCOL = 1
FLUSH_AFTER = 0.002
LONGEST_ERROR = 10_000
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
TRY_AGAIN = 10_000  # milliseconds after which a full disk may have room again
GRACE = 0.5  # seconds, where the worker is older than this file and does not say
PATIENCE = 4.5  # seconds after which those that cannot be killed are left to the worker
BRAND = 10  # RLIMIT_LOCKS, which Linux has long ceased to look at

current: contextvars.ContextVar[Any] = contextvars.ContextVar("svcq_runner_job")
current_brand: contextvars.ContextVar[int | None] = contextvars.ContextVar(
    "svcq_runner_brand", default=None
)


class Call(NamedTuple):
    """One call, as the worker tells it."""

    key: str
    name: str
    text: str | None
    attempt: int
    log: str
    marker: str
    job: int
    run: int
    grace: float = GRACE  # seconds between SIGTERM and SIGKILL
    brand: int | None = None


class Line:
    """The socket to the worker: batches out, batches in."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self._lock = threading.Lock()
        self._done: list[list[Any]] = []
        self._flushed = time.monotonic()

    def read(self) -> Iterator[dict[str, Any]]:
        with self.socket.makefile("rb", buffering=1 << 16) as file:
            for line in file:
                yield json.loads(line)

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        with self._lock:
            self.socket.sendall(data)

    def done(self, item: list[Any], *, more_to_come: bool) -> None:
        """Tell how a call ended; with others, when many end at once."""
        self._done.append(item)
        if not more_to_come or time.monotonic() - self._flushed > FLUSH_AFTER:
            self.flush()

    def flush(self) -> None:
        if self._done:
            done, self._done = self._done, []
            self.send({"done": done})
            self._flushed = time.monotonic()


class RunningJob:
    """What `svcq.current_job()` gives to a task."""

    def __init__(self, line: Line, call: Call) -> None:
        self._line = line
        self._call = call
        self.id = call.job
        self.run = call.run
        self.attempt = call.attempt
        self.cancelled = False
        self.can_hear = False  # there is a coroutine to cancel
        self._asked_at: float | None = None

    def ask_to_end(self) -> None:
        self.cancelled = True
        self._asked_at = time.monotonic()

    def grace(self) -> float:
        """What is left of it; some is kept for the end itself, for which the worker waits, too."""
        if self._asked_at is None:
            return self._call.grace
        return max(0.8 * self._call.grace - (time.monotonic() - self._asked_at), 0)

    def progress(self, fraction: float, note: str | None = None) -> None:
        self._line.send({"progress": [self._call.key, min(max(float(fraction), 0.0), 1.0), note]})


class Unfit(Exception):
    """A call that can never succeed here, however often it is tried."""


class Project:
    """The tasks that can be called here."""

    def __init__(self, hello: dict[str, Any]) -> None:
        sys.path[:0] = [path for path in hello["path"] if path not in sys.path]
        self._max_result = hello["max_payload"]
        self._found: dict[str, Callable[..., Any]] = {}
        self._signatures: dict[str, inspect.Signature] = {}
        for module in hello["import"]:
            importlib.import_module(module)

    def tasks(self) -> dict[str, bool]:
        """The tasks known by name, and whether each is a coroutine function."""
        known = {name: task.function for name, task in self._registry().items()}
        return {name: inspect.iscoroutinefunction(function) for name, function in known.items()}

    def declared(self) -> dict[str, tuple[str, str]]:
        """What those tasks say of themselves, as JSON; an older svcq does not tell."""
        return {
            name: (getattr(task, "words", "{}"), getattr(task, "policy", "{}"))
            for name, task in self._registry().items()
        }

    def _registry(self) -> dict[str, Any]:
        module = sys.modules.get("svcq.tasks")
        return {} if module is None else module.known_tasks()

    def find(self, name: str) -> Callable[..., Any]:
        found = self._found.get(name)
        if found is None:
            task = self._registry().get(name)
            found = self._found[name] = self._by_path(name) if task is None else task.function
        return found

    def _by_path(self, name: str) -> Callable[..., Any]:
        """A function that is no declared task, by its path."""
        module, _, attribute = name.rpartition(".")
        while module:
            try:
                found: Any = importlib.import_module(module)
            except ModuleNotFoundError as error:
                if error.name is None or not (module + ".").startswith(error.name + "."):
                    raise
                module, _, head = module.rpartition(".")
                attribute = head + "." + attribute
                continue
            for part in attribute.split("."):
                found = getattr(found, part)
            function: Callable[..., Any] = getattr(found, "function", found)
            return function
        raise LookupError(name)

    def bound(
        self, name: str, text: str | None
    ) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        """The function and its arguments; Unfit where they do not fit."""
        try:
            function = self.find(name)
        except (LookupError, AttributeError, ImportError) as error:
            raise Unfit(
                f"No task is named {name!r} in this project ({error}): "
                "import the module that defines it."
            ) from None
        args, kwargs = json.loads(text) if text else ([], {})
        signature = self._signatures.get(name)
        if signature is None:
            signature = self._signatures[name] = inspect.signature(function)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise Unfit(f"The arguments do not fit {name}{signature} ({error}).") from None
        return function, args, kwargs

    def result(self, value: Any) -> str | None:
        if value is None:
            return None
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        if len(text) > self._max_result:
            raise ValueError(
                f"The result takes {len(text):,} bytes, over the limit of {self._max_result:,}: "
                "write it to a file."
            )
        return text


def outcome(error: Any) -> tuple[str, str | None, int | None]:
    """How a call that raised ended: how, error, delay."""
    kind = getattr(error, "svcq_outcome", None)
    if isinstance(error, Unfit):
        return "rejected", describe(error), None
    if kind == "retry":
        return "failed", describe(error), error.delay_ms
    if kind == "reject":
        return "rejected", describe(error.reason), None
    if kind == "snooze":
        return "snoozed", None, error.delay_ms
    with contextlib.suppress(Exception):  # a full disk, or an error that cannot be shown
        traceback.print_exception(type(error), error, error.__traceback__)
    said = describe(error)
    return "failed", f"{type(error).__name__}: {said}" if said else type(error).__name__, None


def describe(error: Any) -> str:
    try:
        return str(error)[:LONGEST_ERROR]
    except Exception:  # noqa: BLE001 (it is the task's own code that says how to show it)
        return "an error that cannot be shown"


def announce(job: RunningJob) -> None:
    """Let svcq.current_job() find the job, where svcq is installed."""
    current.set(job)
    tasks = sys.modules.get("svcq.tasks")
    if tasks is not None:
        tasks.running_job.set(job)


class PlainRunner:
    """One function at a time, in the main thread; the socket is read in another."""

    def __init__(self, line: Line, project: Project) -> None:
        self._line = line
        self._project = project
        self._waiting: queue.SimpleQueue[Call] = queue.SimpleQueue()
        self._job: tuple[str, RunningJob] | None = None
        self._quiet = os.dup(1), os.dup(2)

    def serve(self, messages: Iterator[dict[str, Any]]) -> None:
        threading.Thread(target=self._read, args=(messages,), daemon=True).start()
        while True:
            done = self._run(self._waiting.get())
            self._line.done(done, more_to_come=not self._waiting.empty())

    def _read(self, messages: Iterator[dict[str, Any]]) -> None:
        try:
            for message in messages:
                for item in message.get("run", ()):
                    self._waiting.put(Call(*item))
                if "cancel" in message:
                    self._cancel(set(message["cancel"]))
                if "give_back" in message:
                    self._give_back(lambda _: True)
        finally:
            os._exit(1)  # the worker is gone: so is whoever would want the result

    def _cancel(self, keys: set[str]) -> None:
        job = self._job
        if job is not None and job[0] in keys:
            job[1].ask_to_end()
        self._give_back(keys.__contains__)

    def _give_back(self, wanted: Callable[[str], bool]) -> None:
        returned, kept = [], []
        try:
            while True:
                call = self._waiting.get_nowait()
                if wanted(call.key):
                    returned.append(call.key)
                else:
                    kept.append(call)
        except queue.Empty:
            pass
        for call in kept:  # nobody else puts any in: they stay in order
            self._waiting.put(call)
        self._line.send({"returned": returned})

    def _run(self, call: Call) -> list[Any]:
        try:
            output = open_log(call.log)
        except OSError as wrong:
            # It has not run, and it is no fault of its own.
            why = f"its output has no place ({wrong.strerror}: {wrong.filename})"
            if wrong.errno in NO_ROOM:
                why = f"the disk has no room for {call.log}: free some space"
            why = f"could not start: {why}"
            return [call.key, "snoozed", None, why, TRY_AGAIN, False, False]
        os.environ["SVCQ_JOB"], os.environ["SVCQ_RUN"] = str(call.job), call.marker
        running = RunningJob(self._line, call)
        before = descendants()
        self._job = (call.key, running)
        announce(running)
        set_brand(call.brand)
        os.dup2(output, 1)
        os.dup2(output, 2)
        how, result, error, delay = "completed", None, None, None
        try:
            function, args, kwargs = self._project.bound(call.name, call.text)
            value = function(*args, **kwargs)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
            result = self._project.result(value)
        except BaseException as raised:  # noqa: BLE001 (whatever a task raises is its failure)
            how, error, delay = outcome(raised)
        settle_output()
        left = not end_all(lambda: born_since(before), running.grace)
        self._job = None
        set_brand(None)
        wrote = put_back(output, call.log)
        os.dup2(self._quiet[0], 1)
        os.dup2(self._quiet[1], 2)
        os.close(output)
        if not wrote:
            forget_log(call.log)
        return [call.key, how, result, error, delay, wrote, left]


def has_children() -> bool:
    """Whether any process that this one started still runs, or was not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, AttributeError):  # there is no such question on Windows
        return False
    return True


def descendants(not_below: Collection[int] = ()) -> set[int]:
    """All processes below this one; those that lost their parent are its own children."""
    found: set[int] = set()
    parents = [os.getpid()] if has_children() else []
    while parents:
        new = set(children_of(parents.pop())) - found
        found |= new
        parents += new.difference(not_below)
    return found


def children_of(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                yield from map(int, file.read().split())


def born_since(before: set[int]) -> set[int]:
    """What was started since then and is still there, but for what is kept on purpose."""
    helpers, pools = kept_by_multiprocessing(), held_pools()
    # What a process kept since before starts is its own, but a helper forks for the call.
    born = descendants(not_below=(before - helpers) | pools)
    return born - before - helpers - pools


def end_all(find: Callable[[], set[int]], grace: Callable[[], float]) -> bool:
    """End the processes that are found; whether all of them are gone."""
    asked: set[int] = set()
    kill_at: float | None = None
    clean = 0  # a thread that ends hands its children to another: one look may miss them
    while has_children() and clean < 2:
        found = {pid for pid in find() if not has_been_waited_for(pid)}
        clean = 0 if found else clean + 1
        now = time.monotonic()
        if found and kill_at is None:
            kill_at = now + grace()
        late = kill_at is not None and now >= kill_at
        if kill_at is not None and now > kill_at + PATIENCE:
            return not found
        for pid in found if late else found - asked:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)  # a stopped process would not hear it
        asked |= found
        if found:
            time.sleep(0.005)
    return True


def has_been_waited_for(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):  # not ours to wait for
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return False


def kept_by_multiprocessing() -> set[int]:
    """Its helpers, which it starts when first needed and keeps for later calls."""
    tracker = sys.modules.get("multiprocessing.resource_tracker")
    server = sys.modules.get("multiprocessing.forkserver")
    return {
        getattr(getattr(tracker, "_resource_tracker", None), "_pid", None) or 0,
        getattr(getattr(server, "_forkserver", None), "_forkserver_pid", None) or 0,
    }


def held_pools() -> set[int]:
    """The workers of pools that someone still holds: made by a call, and meant for later ones, too.

    Of those whose inner parts are not as we know them, the workers end with the call.
    """
    found: set[int] = set()
    with contextlib.suppress(Exception):
        executors = sys.modules.get("concurrent.futures.process")
        for manager in list(getattr(executors, "_threads_wakeups", ())):
            if manager.executor_reference() is not None:
                found.update(manager.processes or ())
    with contextlib.suppress(Exception):
        util = sys.modules.get("multiprocessing.util")
        for end in list(getattr(util, "_finalizer_registry", {}).values()):
            inside = vars(end)
            if inside["_callback"].__name__ == "_terminate_pool" and inside["_weakref"]():
                lists = (one for one in inside["_args"] if isinstance(one, list))
                found.update(process.pid for one in lists for process in one)
    return found


def set_brand(brand: int | None) -> None:
    """What is started from now on has it, and all that it starts; None for our own."""
    if usual_brand is not None:
        soft, hard = usual_brand
        with contextlib.suppress(ValueError, OSError):  # someone has set a lower limit
            resource.setrlimit(BRAND, (soft if brand is None else brand, hard))


def branded(pids: set[int], brand: int) -> set[int]:
    """Those of them that have it."""
    return {pid for pid in pids if brand_of(pid) == brand}


def brand_of(pid: int) -> int | None:
    try:
        return resource.prlimit(pid, BRAND)[0]
    except (OSError, AttributeError):
        return None


class Branding:
    """Lets whatever the standard library starts have the brand of the call that it is for."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the limit is the whole process's: one birth at a time
        for module, name in STARTERS:
            found = importlib.import_module(module)
            if hasattr(found, name):
                setattr(found, name, self._around(getattr(found, name)))
        os.register_at_fork(
            before=self._begin, after_in_parent=self._end, after_in_child=self._end_in_child
        )

    def _around(self, start: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(start)
        def start_it(*args: Any, **kwargs: Any) -> Any:
            self._begin()
            try:
                return start(*args, **kwargs)
            finally:
                self._end()

        return start_it

    def _begin(self) -> None:
        if current_brand.get() is not None:
            self._lock.acquire()
            set_brand(current_brand.get())

    def _end(self) -> None:
        if current_brand.get() is not None:
            set_brand(None)
            self._lock.release()

    def _end_in_child(self) -> None:
        if current_brand.get() is not None:  # which it keeps
            self._lock.release()


# Where the standard library starts processes, beside os.fork, which has hooks of its own. The name
# in subprocess is there since Python 3.11. (os.system returns only when its command has ended.)
STARTERS = (
    ("_posixsubprocess", "fork_exec"),
    ("subprocess", "_fork_exec"),
    ("os", "posix_spawn"),
    ("os", "posix_spawnp"),
)


def settle_output() -> None:
    """Put the streams in order for the next task; this one may have closed or replaced them."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        with contextlib.suppress(Exception):  # a full disk, or what is no stream at all
            getattr(sys, name).flush()
        usual = getattr(sys, f"__{name}__")
        if usual is None or usual.closed:
            usual = io.TextIOWrapper(
                io.FileIO(descriptor, "w", closefd=False),
                errors="backslashreplace",
                line_buffering=True,
            )
            setattr(sys, f"__{name}__", usual)
        setattr(sys, name, usual)


def put_back(output: int, path: str) -> bool:
    """Whether anything was written; a log that was deleted meanwhile gets its name again."""
    status = os.fstat(output)
    if status.st_size and not status.st_nlink:
        with contextlib.suppress(OSError):
            copy = open_log(path)
            try:
                position = 0
                while chunk := os.pread(output, 1 << 20, position):
                    position += os.write(copy, chunk)
            finally:
                os.close(copy)
    return status.st_size > 0


def forget_log(path: str) -> None:
    with contextlib.suppress(OSError):  # its folder may be gone
        os.unlink(path)


class AsyncRunner:
    """Many coroutines at once, in one event loop."""

    def __init__(self, line: Line, project: Project) -> None:
        self._line = line
        self._project = project
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, RunningJob] = {}
        self._ended: list[list[Any]] = []
        self._before: set[int] = set()  # processes that were there when the first call began
        self._threads = ThreadPoolExecutor(4, "svcq-end")

    def serve(self, messages: Iterator[dict[str, Any]]) -> None:
        if usual_brand is not None:
            Branding()
        asyncio.run(self._serve(messages))

    async def _serve(self, messages: Iterator[dict[str, Any]]) -> None:
        self._loop = asyncio.get_running_loop()
        sys.stdout = ByContext(sys.stdout)
        sys.stderr = ByContext(sys.stderr)
        threading.Thread(target=self._read, args=(messages,), daemon=True).start()
        await self._loop.create_future()

    def _read(self, messages: Iterator[dict[str, Any]]) -> None:
        try:
            for message in messages:
                self._loop.call_soon_threadsafe(self._take, message)
        finally:
            os._exit(1)

    def _take(self, message: dict[str, Any]) -> None:
        if not self._jobs:
            self._before = descendants()
        for item in message.get("run", ()):
            call = Call(*item)
            running = self._running[call.key] = RunningJob(self._line, call)
            self._jobs[call.key] = self._loop.create_task(self._run(call, running))
        for key in message.get("cancel", ()):
            self._cancel(key)
        if "give_back" in message:
            self._line.send({"returned": []})

    def _cancel(self, key: str) -> None:
        running = self._running.get(key)
        if running is not None:
            running.ask_to_end()
            if running.can_hear:
                self._jobs[key].cancel()

    async def _run(self, call: Call, running: RunningJob) -> None:
        how, result, error, delay = "completed", None, None, None
        output = LazyLog(call.log)
        current_output.set(output)
        current_brand.set(call.brand)
        announce(running)
        running.can_hear = True
        try:
            if running.cancelled:
                raise asyncio.CancelledError  # noqa: TRY301 (as if it had been heard)
            function, args, kwargs = self._project.bound(call.name, call.text)
            value = function(*args, **kwargs)
            if inspect.iscoroutine(value):
                value = await value
            result = self._project.result(value)
        except BaseException as raised:  # noqa: BLE001 (whatever a task raises is its failure)
            if running.cancelled and isinstance(raised, asyncio.CancelledError):
                how = "cancelled"
            else:
                how, error, delay = outcome(raised)
        running.can_hear = False
        left = has_children() and not await self._end_processes(call, running)
        del self._jobs[call.key], self._running[call.key]
        wrote = output.close()
        if not self._ended:
            self._loop.call_soon(self._flush)
        self._ended.append([call.key, how, result, error, delay, wrote, left])

    async def _end_processes(self, call: Call, running: RunningJob) -> bool:
        """Whether those are gone that the call has started; the last one sees to the others', too.

        In a thread, as it may take a while, in which other calls go on.
        """
        brand, last = call.brand, len(self._jobs) == 1
        others = born_since(self._before) if last else set()  # now: the next call has its own

        def find() -> set[int]:
            there = descendants() - kept_by_multiprocessing() - held_pools()
            return (there & others) | (set() if brand is None else branded(there, brand))

        if not find():
            return True
        return await self._loop.run_in_executor(self._threads, end_all, find, running.grace)

    def _flush(self) -> None:
        ended, self._ended = self._ended, []
        self._line.send({"done": ended})


current_output: contextvars.ContextVar[Any] = contextvars.ContextVar("svcq_runner_output")


class LazyLog:
    """A log that is there once something was written to it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: TextIO | None = None

    def write(self, text: str) -> int:
        if self._file is None:
            log = open_log(self._path)
            self._file = open(log, "w", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._file.write(text)
        self._file.flush()
        return len(text)

    def close(self) -> bool:
        if self._file is None:
            return False
        with contextlib.suppress(OSError):
            self._file.flush()
        wrote = put_back(self._file.fileno(), self._path)
        with contextlib.suppress(OSError):
            self._file.close()
        return wrote


class ByContext(io.TextIOBase):
    """Prints of a coroutine go to its own log; all others where they went before."""

    def __init__(self, otherwise: TextIO) -> None:
        self._otherwise = otherwise

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return int(current_output.get(self._otherwise).write(text))

    def flush(self) -> None:
        self._otherwise.flush()

    def fileno(self) -> int:
        return self._otherwise.fileno()


def open_log(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def bind_to_worker(worker: int) -> None:
    """Where the system can do it: even a runner stuck in foreign code ends with its worker, and
    what lost its parent among the processes of a call becomes a child of the runner."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
        prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
        if worker:
            prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
            if os.getppid() != worker:  # it was gone before we could ask
                os._exit(1)
    except (ImportError, OSError, AttributeError, TypeError):
        pass


def main() -> None:
    bind_to_worker(int(sys.argv[2]))
    line = Line(int(sys.argv[1]))
    messages = line.read()
    hello = next(messages)["hello"]
    # The folder of this file must not shadow modules of the project.
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    try:
        project = Project(hello)
    except BaseException as error:  # noqa: BLE001 (a module may do anything when imported)
        traceback.print_exc()
        line.send({"failed": f"{type(error).__name__}: {error}"})
        return
    # What a task prints is in its log at once, and stays there if the process dies.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    known = {"tasks": project.tasks(), "declared": project.declared()}
    line.send({"ready": {"protocol": PROTOCOL, "python": version, **known}})
    runner = AsyncRunner if hello["mode"] == "async" else PlainRunner
    runner(line, project).serve(messages)


if __name__ == "__main__":
    main()
