"""Tasks of a worker: which runner calls which, and what becomes of a call whose runner dies.

A plain runner takes one call at a time. When calls are short it is sent some ahead, so that they
are claimed and reported many at a time; as soon as one takes longer, the others are given back.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from svcq.config import JobDefaults, Project
from svcq.errors import InvalidInput
from svcq.host import processes
from svcq.jobs import (
    Claim,
    How,
    Outcome,
    cancelled,
    failed,
    interrupted,
    snoozed,
    timed_out,
)
from svcq.logs import log_file, tail
from svcq.policy import Policy, check_layer, policy_of
from svcq.store import Declared
from svcq.times import format_duration
from svcq.worker.calls import Call, clean, outcome_of
from svcq.worker.nursery import Nursery
from svcq.worker.runners import PROTOCOL, UNLIMITED, Limits, Runner
from svcq.worker.trees import Tree

__all__ = ["Call", "TaskPool"]

SHORT = 0.005  # seconds: a call this short is worth sending ahead
LONG = 0.05  # seconds after which calls behind a running one go elsewhere
AHEAD = 0.02  # seconds of work that a runner may have before it
LOOK = 1.0  # seconds between looks at output and memory
TRY_AGAIN = 5.0  # seconds after which a project that could not be imported is tried once more
LONGEST_IMPORT = 300.0
LONGEST_END = 15.0  # seconds for runners and their processes when the worker ends

_numbers = itertools.count(1)  # of runners, those of all projects


class TaskPool:
    def __init__(
        self,
        project: Project,
        home: Path,
        env: Mapping[str, str],
        worker_lock: int | None,
        marker: str,
        nursery: Nursery,
        defaults: JobDefaults,
        slots: int,
        on_end: Callable[[Claim, Outcome], None],
        on_progress: Callable[[Claim, float, str | None], None],
        on_declared: Callable[[Mapping[str, Declared]], None],
        say: Callable[[str], None],
    ) -> None:
        self._project = project
        self._home = home
        self._env = env
        self._worker_lock = worker_lock
        self._marker = marker  # what those of its runners begin with
        self._nursery = nursery
        self._defaults = defaults
        self._slots = slots
        self._on_end = on_end
        self._on_progress = on_progress
        self._on_declared = on_declared
        self._say = say
        self._calls: dict[str, Call] = {}
        self._waiting: deque[Call] = deque()
        self._runners: list[Runner] = []
        self._async: Runner | None = None
        self._is_async: dict[str, bool] = {}
        self._declared: dict[str, Declared] = {}
        self._broken: str | None = None
        self._broken_at = 0.0
        self._looked = 0.0
        self._closing = False
        self._warmed = asyncio.Event()
        self._usual = 1.0  # seconds a plain call has lately taken
        self._watch: asyncio.TimerHandle | None = None
        self._background: set[asyncio.Future[None]] = set()

    # What the worker asks

    async def warm(self) -> None:
        """Until a first runner has imported the project, or cannot."""
        self._runners.append(self._make("plain"))
        await self._warmed.wait()

    def knows(self, task: str) -> bool:
        return task in self._is_async

    def may_know(self, task: str) -> bool:
        """Whether the task's path leads into a module of the project; it may lack svcq, and then
        declares none."""
        return any(task.startswith(f"{module}.") for module in self._project.imports)

    @property
    def broken(self) -> bool:
        return self._broken is not None

    def runs(self) -> list[tuple[int, int]]:
        """(job, run) that it has."""
        return [(call.claim.id, call.claim.run) for call in self._calls.values()]

    def keep_awake(self) -> set[str]:
        """Whether the machine is to stay awake for what it runs."""
        return {call.policy.keep_awake for call in self._calls.values()}

    def __len__(self) -> int:
        return len(self._calls)

    def busy(self) -> int:
        """How many slots the calls take: one each, but those sent ahead share their runner's."""
        return min(len(self._calls), self._occupied() + len(self._waiting))

    def _occupied(self) -> int:
        return sum(1 for runner in self._runners if runner.keys) + self._async_calls()

    def ahead(self) -> int:
        """How many short calls could be claimed beyond the free slots."""
        return max(len(self._runners) * self._each_ahead() - len(self._calls), 0)

    def begin(self, claim: Claim, marker: str) -> None:
        call = Call(claim, marker, self._policy_of(claim))
        self._calls[call.key] = call
        self._waiting.append(call)

    def _policy_of(self, claim: Claim) -> Policy:
        """What holds for a run: the words of the job, over its task's, over its queue's."""
        task = self._declared.get(claim.task)
        layers = (claim.queue_options, "{}" if task is None else task.policy, claim.options)
        return policy_of(self._defaults, *layers)

    def pump(self) -> None:
        """Give waiting calls to runners, and make runners where they lack."""
        if self._broken is not None and self._waiting:
            if time.monotonic() - self._broken_at < TRY_AGAIN:
                self._give_up_waiting(self._broken)
                return
            self._broken = None  # someone may have repaired it
        batches: dict[Runner, list[Call]] = {}
        while self._waiting:
            runner = self._runner_for(self._waiting[0])
            if runner is None:
                break
            call = self._waiting.popleft()
            runner.keys[call.key] = None
            batches.setdefault(runner, []).append(call)
        for runner, calls in batches.items():
            now = time.monotonic()
            if runner.mode == "async" or len(runner.keys) == len(calls):
                for call in calls if runner.mode == "async" else calls[:1]:
                    call.began = now
            runner.send({"run": [call.item(self._home) for call in calls]})
        if self._calls and self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(LONG, self._look)

    def _give_up_waiting(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            self._finish(call, failed(reason))

    def cancel(self, job: int) -> None:
        for call in self._of_job(job):
            self._ask_to_end(call, cancelled())

    def interrupt(self, reason: str) -> None:
        for call in list(self._calls.values()):
            self._ask_to_end(call, interrupted(reason))

    async def close(self) -> None:
        """End the runners, with whatever an import or a call has started there to stay."""
        self._closing = True
        if self._watch is not None:
            self._watch.cancel()
        for runner in self._all():
            runner.close()
        if self._background:
            await asyncio.wait(self._background, timeout=LONGEST_END)

    # Runners

    def _all(self) -> list[Runner]:
        return [*self._runners, *([self._async] if self._async is not None else [])]

    def _async_calls(self) -> int:
        return 0 if self._async is None else len(self._async.keys)

    def _runner_for(self, call: Call) -> Runner | None:
        """One with room; None while one is being made or all are busy."""
        is_async = self._is_async.get(call.claim.task, False)
        limits = call.limits()
        if is_async and limits == UNLIMITED:
            if self._async is None:
                self._async = self._make("async")
            has_room = self._async.ready and len(self._async.keys) < self._slots
            return self._async if has_room else None
        if limits != UNLIMITED and self._occupied() >= self._slots:
            return None
        mode = "async" if is_async else "plain"
        alike = [one for one in self._runners if (one.mode, one.limits) == (mode, limits)]
        ready = [runner for runner in alike if runner.ready]
        least = min(ready, key=lambda runner: len(runner.keys), default=None)
        if least is not None and len(least.keys) < (1 if is_async else 1 + self._each_ahead()):
            return least
        # Not all at once: when calls turn out to be short, few runners are enough.
        starting = len(alike) - len(ready)
        if starting < (os.cpu_count() or 1) and self._has_place(mode, limits):
            self._runners.append(self._make(mode, limits))
        return None

    def _each_ahead(self) -> int:
        """How many calls a runner may have before it, beside the one it runs."""
        return min(50, int(AHEAD / max(self._usual, 0.0001))) if self._usual < SHORT else 0

    def _has_place(self, mode: str, limits: Limits) -> bool:
        """Whether one more runner may be: as many as slots without limits, as many with some.

        A nice value cannot be taken back, so an idle runner with other limits ends to make place.
        """
        limited = limits != UNLIMITED
        same = [one for one in self._runners if (one.limits != UNLIMITED) == limited]
        if len(same) < self._slots:
            return True
        for runner in same:
            if runner.ready and not runner.keys and (runner.mode, runner.limits) != (mode, limits):
                self._drop(runner)
                runner.close()
                return True
        return False

    def _make(self, mode: str, limits: Limits = UNLIMITED) -> Runner:
        marker = f"{self._marker}{next(_numbers)}."
        brand = processes.brand_of(self._marker)  # one for all: whoever rescues cannot number them
        runner = Runner(self._project, mode, limits, marker, brand, self._nursery, self._hear)
        self._keep(self._see_through(runner))
        return runner

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        future = asyncio.ensure_future(work)
        self._background.add(future)  # the loop itself keeps only weak references
        future.add_done_callback(self._background.discard)

    async def _see_through(self, runner: Runner) -> None:
        log = self._home / "logs" / f"runner-{self._project.name}.log"
        try:
            await runner.start(self._env, log, self._worker_lock, self._defaults.max_payload)
        except OSError as error:
            self._drop(runner)
            why = error.strerror or error
            self._break(
                f"the interpreter {self._project.python} cannot be started ({why}): correct it "
                "with svcq project add"
            )
            return
        import_limit = asyncio.get_running_loop().call_later(
            LONGEST_IMPORT, self._kill_unless_ready, runner
        )
        exit_ = await runner.ended()
        import_limit.cancel()
        await asyncio.to_thread(runner.kill, self._markers(runner))
        self._bury(runner, exit_.code)
        runner.forget_place()

    def _kill_unless_ready(self, runner: Runner) -> None:
        if not runner.ready:
            self._kill(runner)

    # What runners say

    def _hear(self, runner: Runner, message: Any) -> None:
        if "done" in message:
            self._hear_done(runner, message["done"])
        elif "ready" in message:
            self._hear_ready(runner, message["ready"])
        elif "progress" in message:
            key, fraction, note = message["progress"]
            if key in self._calls:
                note = None if note is None else clean(note)[:1000]
                self._on_progress(self._calls[key].claim, fraction, note)
        elif "returned" in message:
            for key in message["returned"]:
                runner.keys.pop(key, None)
                self._return(key)
        elif "failed" in message:
            self._break(f"the project {self._project.name} cannot be imported: {message['failed']}")

    def _hear_ready(self, runner: Runner, ready: Mapping[str, Any]) -> None:
        if ready["protocol"] != PROTOCOL:
            self._break(f"the runner of {self._project.name} speaks another protocol")
            return
        self._is_async.update(ready["tasks"])
        self._hear_declared(ready.get("declared", {}))
        runner.ready = runner.was_ready = True
        self._broken = None
        self._warmed.set()
        self.pump()

    def _hear_declared(self, declared: Mapping[str, Any]) -> None:
        """What the tasks say of themselves, which was unknown when their calls were claimed."""
        told: dict[str, Declared] = {}
        for name, (options, policy) in declared.items():
            try:
                told[name] = Declared(options, check_layer(policy))
            except InvalidInput as error:
                self._say(f"What the task {name} says of itself does not count: {error}")
        news = {name: said for name, said in told.items() if self._declared.get(name) != said}
        if news:
            self._declared.update(news)
            self._on_declared(news)
            for call in self._waiting:
                call.policy = self._policy_of(call.claim)

    def _hear_done(self, runner: Runner, done: list[list[Any]]) -> None:
        now = time.monotonic()
        first = self._first(runner)
        began = None if first is None else first.began
        for key, how, result, error, delay_ms, wrote, left in done:
            call = self._calls.get(key)
            runner.keys.pop(key, None)
            if call is None:
                continue
            outcome = outcome_of(self._home, call, how, result, error, delay_ms, wrote)
            if left:
                self._keep(self._finish_alone(runner, call, outcome))
            else:
                self._finish(call, outcome)
        if runner.mode == "plain":
            if began is not None:
                self._usual += ((now - began) / len(done) - self._usual) * 0.3
            first = self._first(runner)
            if first is not None:
                first.began = now
        self.pump()

    async def _finish_alone(self, runner: Runner, call: Call, outcome: Outcome) -> None:
        """What it has left behind must not meet its next run."""
        spared = () if runner.child is None else (runner.child.pid,)
        await asyncio.to_thread(Tree(call.marker, None, None, spared=spared).kill)
        self._finish(call, outcome)

    def _first(self, runner: Runner) -> Call | None:
        return self._calls.get(next(iter(runner.keys), ""))

    def _return(self, key: str) -> None:
        """Not started, so nothing failed: it waits again, for anyone."""
        call = self._calls.get(key)
        if call is not None:
            self._finish(call, snoozed(0))

    def _finish(self, call: Call, outcome: Outcome) -> None:
        del self._calls[call.key]
        if call.ending is not None and outcome.how is not How.COMPLETED:
            outcome = call.ending._replace(tail=outcome.tail)
        self._on_end(call.claim, outcome)

    def _break(self, reason: str) -> None:
        self._say(f"Tasks cannot run: {reason}.")
        self._broken = reason
        self._broken_at = time.monotonic()
        self._warmed.set()
        self.pump()

    # When a call takes too long, is to end, or took its runner with it

    def _look(self) -> None:
        self._watch = None
        now = time.monotonic()
        thorough = now - self._looked > LOOK
        if thorough:
            self._looked = now
        for runner in self._all():
            running = list(runner.keys) if runner.mode == "async" else list(runner.keys)[:1]
            for key in running:
                call = self._calls.get(key)
                if call is not None and call.began is not None:
                    self._look_at(runner, call, now - call.began)
                    if thorough:
                        self._look_at_usage(runner, call)
        self._give_back_surplus(now)
        if self._calls:
            self._watch = asyncio.get_running_loop().call_later(LONG, self._look)

    def _look_at(self, runner: Runner, call: Call, took: float) -> None:
        if runner.mode == "plain" and len(runner.keys) > 1 and took > LONG:
            self._usual = max(self._usual, took)
            runner.send({"give_back": True})
        limit = call.policy.timeout
        if limit is not None and call.ending is None and took > limit / 1000:
            self._ask_to_end(
                call, timed_out(f"ran longer than its timeout of {format_duration(limit)}")
            )
        if (
            call.asked_at is not None
            and time.monotonic() - call.asked_at > call.policy.grace / 1000
        ):
            self._kill(runner)

    def _look_at_usage(self, runner: Runner, call: Call) -> None:
        memory = call.policy.memory
        if why := call.too_much_output(self._home):
            self._end_at_once(runner, call, why)
        if memory is None or runner.kernel_limits:
            return
        if (used := runner.memory()) > memory:
            self._end_at_once(
                runner, call, f"used {used >> 20:,} MiB of memory, over its {memory >> 20:,}"
            )

    def _give_back_surplus(self, now: float) -> None:
        """What was claimed because calls were short, and is not, can run elsewhere."""
        surplus = len(self._waiting) - max(self._slots - self._occupied(), 0)
        if surplus > 0 and now - self._waiting[-1].claimed > LONG:
            self._usual = max(self._usual, LONG)
            for _ in range(surplus):
                self._return(self._waiting.pop().key)

    def _end_at_once(self, runner: Runner, call: Call, error: str) -> None:
        if call.ending is None:
            call.ending = failed(error)
            self._kill(runner)

    def _ask_to_end(self, call: Call, ending: Outcome) -> None:
        if call.ending is not None:
            return
        call.ending = ending
        call.asked_at = time.monotonic()
        if call in self._waiting:
            self._waiting.remove(call)
            self._finish(call, ending)
            return
        for runner in self._all():
            if call.key in runner.keys:
                runner.send({"cancel": [call.key]})

    def _kill(self, runner: Runner) -> None:
        if not runner.doomed:
            runner.doomed = True
            markers = self._markers(runner)
            self._keep(asyncio.to_thread(runner.kill, markers))

    def _markers(self, runner: Runner) -> list[str]:
        return [self._calls[key].marker for key in runner.keys if key in self._calls]

    def _bury(self, runner: Runner, code: int) -> None:
        """It took the calls it was running along; those it had not begun wait again."""
        self._drop(runner)
        said = f"signal {-code}" if code < 0 else f"exit code {code}"
        for index, key in enumerate(list(runner.keys)):
            call = self._calls.get(key)
            if call is None:
                continue
            if runner.mode == "plain" and index > 0:
                self._return(key)
            elif runner.doomed and call.ending is None:
                # It was killed for the sake of another.
                self._finish(call, interrupted("another task took its process along"))
            else:
                log = log_file(self._home, call.claim.id, call.claim.run)
                why = f"its process ended with {said}{runner.why_killed(code)}"
                self._finish(call, failed(why, tail=tail(log)))
        if not runner.was_ready and self._broken is None and not self._closing:
            self._break(
                f"the process of project {self._project.name} ({self._project.python}) ended with "
                f"{said} before it had imported all; see logs/runner-{self._project.name}.log"
            )
        self.pump()

    def _drop(self, runner: Runner) -> None:
        if runner is self._async:
            self._async = None
        elif runner in self._runners:
            self._runners.remove(runner)

    def _of_job(self, job: int) -> list[Call]:
        return [call for call in self._calls.values() if call.claim.id == job]
