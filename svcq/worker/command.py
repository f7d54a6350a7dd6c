"""One run of a command: started, watched, and ended with its whole tree.

Its output goes straight from the process into the log, never through us: it survives whatever
happens to the worker, and costs nothing.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from svcq.errors import InvalidArguments, shown
from svcq.host import processes
from svcq.jobs import (
    Claim,
    Outcome,
    cancelled,
    completed,
    failed,
    interrupted,
    rejected,
    snoozed,
    timed_out,
)
from svcq.logs import full_disk, log_file, read_start
from svcq.policy import Policy, encode_json
from svcq.times import format_duration
from svcq.worker.nursery import NOWHERE, OUT_OF_MEMORY, Nursery
from svcq.worker.output import Output
from svcq.worker.places import Note, Seat, Seats
from svcq.worker.terminal import Terminal
from svcq.worker.trees import Tree

LOOK = 1.0  # seconds between looks at progress, output and memory
FIRST_LOOK = 0.05  # those who end before it cost nothing that only the long ones need
TRY_AGAIN = 10_000  # milliseconds after which a full disk may have room again
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # itself, or what a shell has run last
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
PUT_BACK = 32 << 20  # bytes of a deleted log that are written anew at each look

Told = Callable[[float, str | None], None]


class CommandRun:
    def __init__(
        self,
        claim: Claim,
        policy: Policy,
        home: Path,
        seats: Seats,
        nursery: Nursery,
        marker: str,
        env: Mapping[str, str],
        max_payload: int,
        on_progress: Told,
        say: Callable[[str], None],
    ) -> None:
        self.claim = claim
        self._policy = policy
        self._seats = seats
        self._seat = Seat("", "")  # taken when it begins
        self._nursery = nursery
        self._place = NOWHERE
        self._log: Path = log_file(home, claim.id, claim.run)
        self._output: Output | None = None
        self._alone = False  # nobody is left who has its output open
        self._full_disk: str | None = None
        self._marker = marker
        self._brand = processes.brand_of(marker)
        self._env = env
        self._max_payload = max_payload
        self._on_progress = on_progress
        self._say = say
        self._told = ""
        self._silent = False  # it has ended, and has written neither progress nor result
        self._loop = asyncio.get_running_loop()
        self._woken: asyncio.Future[None] | None = None  # by an end, by others, or by the time
        self._ending: Outcome | None = None  # what it will be when it was not its own end
        self._child: processes.Child | None = None
        self._tree = Tree(marker, None, None)
        self._paused = False
        self._killed = False  # by us, all at once
        self._kernel_limits = False  # its memory
        self._clock = self._loop.time
        self._counted = 0.0
        self._left: float | None = None if policy.timeout is None else policy.timeout / 1000

    # What others ask for while it runs

    def cancel(self) -> None:
        self._end_with(cancelled())

    def interrupt(self, reason: str) -> None:
        self._end_with(interrupted(reason))

    def kill(self) -> None:
        """Dead when this returns, in whatever thread; what it is to be was said before."""
        self._killed = True
        self._tree.kill()

    def pause(self) -> None:
        if not self._paused:
            self._count_time()
            self._paused = True
            self._tree.signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._paused:
            self._count_time()
            self._paused = False
            self._tree.signal(signal.SIGCONT)

    @property
    def keep_awake(self) -> str:
        """Whether the machine is to stay awake for it; not while it stands still."""
        return "never" if self._paused else self._policy.keep_awake

    def _end_with(self, outcome: Outcome) -> None:
        if self._ending is None:
            self._ending = outcome
        self._wake()

    def _wake(self, *_: object) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    # Its life

    async def run(self) -> Outcome:
        if self._ending is not None:
            return self._ending
        self._counted = self._clock()
        self._seat = self._seats.take()
        try:
            return await self._start_and_live()
        finally:
            self._end_output()
            self._seats.give_back(self._seat, silent=self._silent)
            self._nursery.give_back(self._place)

    async def _start_and_live(self) -> Outcome:
        await self._nursery.free()
        try:
            terminal = self._start()
        except OSError as error:
            return self._could_not_start(error)
        try:
            return await self._live()
        except BaseException:
            # Whatever went wrong on our side, nobody may start it anew beside the old one.
            await self._end_tree(0)
            raise
        finally:
            if terminal is not None:
                terminal.close()

    async def _live(self) -> Outcome:
        assert self._child is not None
        ended = self._child.ended
        if self._policy.memory is not None:
            pen = await self._place.settled()
            self._kernel_limits = pen is not None and pen.limit_memory(self._policy.memory)
        await self._watch(ended)
        if ended.done():
            # It was faster than whoever wanted it to end.
            if not (self._killed and ended.result().code in KILLED):
                self._ending = None
        else:
            await self._end_tree(self._policy.grace / 1000)
        exit_ = await ended
        self._alone = exit_.code in self._policy.success and not self._someone_is_left()
        if not self._alone:
            # It may have left processes behind; a job ends with all of its tree.
            await self._end_tree(self._policy.grace / 1000)
        assert self._output is not None
        self._output.settle()
        self._silent = self._seat.is_silent()
        self._look()
        await self._put_log_back()
        return self._outcome(exit_)

    def _someone_is_left(self) -> bool:
        """Signs that cost little: the lock that all inherit, the pen, and orphans of ours."""
        return (
            processes.lock_is_held(self._seat.lock)
            or self._place.someone_is_left()
            or processes.left_behind(self._brand)
        )

    async def _end_tree(self, grace: float) -> None:
        """Until it is gone, however long that takes: until then the job counts as running."""
        self._tree.pen = await self._place.settled()
        while left := await self._tree.end(grace):
            pids = ", ".join(str(one.pid) for one in left)
            self._say(f"Job {self.claim.id} is to end, but processes {pids} cannot be killed.")

    def _start(self) -> Terminal | None:
        """Make the lock and the marker, then the process that carries both."""
        terminal = None
        with ExitStack() as ours:
            # Undone unless all of it succeeds.
            undo = ours.enter_context(ExitStack())
            lock = processes.hold_lock(self._seat.lock)
            if lock is None:
                raise BlockingIOError(11, "the run's lock is held by an earlier process of it")
            ours.callback(os.close, lock)  # from here on its processes alone hold it
            Note(self.claim.id, self.claim.run).write(lock)
            output = Output(self._log, self._seat.output)
            undo.callback(output.close)
            if self._policy.tty:
                terminal = Terminal(output.descriptor, self._env)
                undo.callback(terminal.close)
            command = json.loads(self.claim.command or "null")
            self._child = processes.start_child(
                processes.shell(command) if isinstance(command, str) else command,
                cwd=self.claim.cwd,
                env=self._environment(),
                output=output.descriptor if terminal is None else terminal.inner,
                terminal=terminal is not None,
                inherit=(lock,),
                nice=self._policy.nice,
                cpus=self._policy.cpus,
                brand=self._brand,
            )
            undo.pop_all()
            self._output = output
        self._place = self._nursery.born()
        if terminal is not None:
            terminal.begin()
        self._tree = Tree(self._marker, self._child.pid, self._seat.lock)
        return terminal

    def _environment(self) -> dict[str, str]:
        return {
            "PYTHONUNBUFFERED": "1",
            **({"TERM": "xterm-256color"} if self._policy.tty else {}),
            **self._env,
            "SVCQ_JOB": str(self.claim.id),
            processes.MARKER: self._marker,
            "SVCQ_PROGRESS": str(self._seat.progress),
            "SVCQ_RESULT": str(self._seat.result),
        }

    async def _watch(self, ended: asyncio.Future[processes.Exit]) -> None:
        """Until it has ended, or is to be ended."""
        look = FIRST_LOOK
        ended.add_done_callback(self._wake)
        while not ended.done() and self._ending is None:
            wait = look if self._left is None or self._paused else min(look, self._left)
            self._woken = self._loop.create_future()
            timer = self._loop.call_later(wait, self._wake)
            await self._woken
            timer.cancel()
            if ended.done():
                return
            self._count_time()
            if self._left is not None and self._left <= 0:
                limit = format_duration(self._policy.timeout or 0)
                self._end_with(timed_out(f"ran longer than its timeout of {limit}"))
                return
            if look == FIRST_LOOK:
                self._has_come_to_stay()
            look = LOOK
            self._look()
            self._look_at_log()

    def _has_come_to_stay(self) -> None:
        assert self._child is not None
        if self._policy.nice is None:
            self._child.step_back()
        # For whoever must end it should we be gone; its marker and its lock tell of it too.
        born = processes.process_born(self._child.pid)
        with suppress(OSError), open(self._seat.lock, "r+b") as file:
            note = Note(self.claim.id, self.claim.run, self._child.pid, born or "-")
            note.write(file.fileno())

    def _count_time(self) -> None:
        """Take what has passed since the last time from what is left, unless it was paused."""
        now = self._clock()
        if self._left is not None and not self._paused:
            self._left -= now - self._counted
        self._counted = now

    def _look(self) -> None:
        """What it says about itself, and what it uses."""
        if self._paused and self._ending is None:
            # What was forked while the others were being stopped.
            self._tree.signal(signal.SIGSTOP)
        if not self._silent:
            self._read_progress()
        policy = self._policy
        if policy.max_output is not None:
            self._limit_output(policy.max_output)
        if policy.memory is not None and self._ending is None and not self._kernel_limits:
            used = processes.resident_bytes(self._tree.look())
            if used > policy.memory:
                self._end_with(
                    failed(f"used {used >> 20:,} MiB of memory, over its {policy.memory >> 20:,}")
                )

    def _read_progress(self) -> None:
        text = (read_start(self._seat.progress, 1000) or b"").decode("utf-8", "replace").strip()
        if text == self._told:
            return
        self._told = text
        number, _, note = text.partition(" ")
        try:
            percent = float(number.rstrip("%"))
        except ValueError:
            return
        if 0 <= percent <= 100:
            self._on_progress(percent / 100, note.replace("\0", "") or None)

    def _look_at_log(self) -> None:
        assert self._output is not None
        self._full_disk = full_disk(self._log) or self._full_disk
        with suppress(OSError):  # there will be another look, and a last one
            if self._output.deleted:
                self._output.put_back(PUT_BACK)
            self._output.keep()

    async def _put_log_back(self) -> None:
        """Whoever deleted it must not have what was written to it after that, too."""
        assert self._output is not None
        if self._output.deleted:
            try:
                await asyncio.to_thread(self._output.put_back)
            except OSError as error:
                why = error.strerror or error
                self._say(f"The log of job {self.claim.id} was deleted while it ran ({why}).")

    def _end_output(self) -> None:
        if self._output is None:
            return
        try:
            where = self._output.end(alone=self._alone)
            if where not in (None, self._log):
                self._say(
                    f"The log of job {self.claim.id} is {where}, for {self._log} cannot be made."
                )
        except OSError as error:  # it was deleted, and all has been said
            self._say(f"The log of job {self.claim.id} has no place ({error.strerror or error}).")
        self._output.close()

    def _limit_output(self, limit: int) -> None:
        assert self._output is not None
        size = self._output.limit(limit)
        if size > limit and self._policy.when_over == "end":
            self._end_with(failed(f"wrote {size:,} bytes of output, over its {limit:,}"))

    # How it ended

    def _outcome(self, exit_: processes.Exit) -> Outcome:
        policy, code = self._policy, exit_.code
        used = {"cpu_ms": exit_.cpu_ms, "peak_bytes": exit_.peak_bytes}
        end = self._output.tail() if self._output is not None else None
        if self._ending is not None:
            return _replaced(self._ending, exit_code=code, tail=end, **used)
        if code in policy.success:
            try:
                result = self._result()
            except InvalidArguments as error:
                outcome = failed(f"ended well, but {error}", exit_code=code, tail=end)
            else:
                outcome = completed(result, exit_code=code, tail=end)
            return _replaced(outcome, error=self._cut_short(), **used)
        said = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if code in KILLED and self._place.killed_for_memory():
            said = f"{said}; {self._too_much_memory()}"
        if code in policy.reject or (policy.retry_on and code not in policy.retry_on):
            return _replaced(rejected(said, exit_code=code, tail=end), **used)
        if disk := full_disk(self._log) or self._full_disk:
            said = f"{said}; {disk}"
        return _replaced(failed(said, exit_code=code, tail=end), **used)

    def _cut_short(self) -> str | None:
        """What to say of the output of one that did not mind that it could not write all of it."""
        wrote = self._output is not None and self._output.has_something
        disk = (full_disk(self._log) or self._full_disk) if wrote else None
        return disk and f"its output may be cut short: {disk}"

    def _too_much_memory(self) -> str:
        if self._kernel_limits and self._policy.memory is not None:
            return f"it needed more than its {self._policy.memory >> 20:,} MiB of memory"
        return OUT_OF_MEMORY

    def _result(self) -> str | None:
        data = None if self._silent else read_start(self._seat.result, self._max_payload + 1)
        if data is None or not data.strip():
            return None
        if len(data) > self._max_payload:
            raise InvalidArguments(
                f"The contents of its result take over {self._max_payload:,} bytes (max_payload): "
                "put the data in a file of its own, or raise the limit."
            )
        text = data.decode("utf-8", "replace").strip()
        try:
            value = json.loads(text, parse_constant=_not_json)
        except (ValueError, RecursionError):
            value = text.replace("\0", "\ufffd")
        return encode_json(value, "contents of its result", self._max_payload)

    def _could_not_start(self, error: OSError) -> Outcome:
        command = json.loads(self.claim.command or "null")
        program = command if isinstance(command, str) else command[0]
        cwd, where = self.claim.cwd, error.filename
        if error.errno in NO_ROOM:
            # It has not run, and it is no fault of its own.
            disk = full_disk(self._log) or f"the disk has no room for {where}: free some space"
            return snoozed(TRY_AGAIN, error=f"could not start: {disk}")
        if cwd is not None and where == cwd:
            return failed(f"could not start: its directory {cwd!r} is gone or closed to it")
        if where in (program, processes.shell("")[0]):
            if isinstance(error, FileNotFoundError):
                return failed(f"command not found: {program!r}", exit_code=127)
            if isinstance(error, PermissionError):
                return failed(f"not executable: {program!r}", exit_code=126)
            where = None
        why = f"{error.strerror}: {where}" if where else error.strerror
        if where is not None and str(where).startswith(str(self._log.parents[1])):
            return snoozed(TRY_AGAIN, error=f"could not start: its output has no place ({why})")
        return failed(f"could not start ({why}): {shown(program)}")


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _replaced(outcome: Outcome, **fields: object) -> Outcome:
    return outcome._replace(**{k: v for k, v in fields.items() if v is not None})  # type: ignore[arg-type]
