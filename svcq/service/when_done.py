"""Carries out what was planned for the end of all work: once, and after a while in which it can be
cancelled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Self

from svcq.client import Client
from svcq.config import Config
from svcq.errors import SvcqError
from svcq.host import power, processes
from svcq.service.plans import Plan, Plans, left_to_do
from svcq.store import Store, open_store
from svcq.times import SECOND, format_duration, now_ms

LOOK = 1.0  # seconds


class WhenDone:
    """Looks in a thread, until it is left. Of several on one home, one does."""

    def __init__(self, config: Config, say: Callable[[str], None]) -> None:
        self._config = config
        self._say = say
        self._plans = Plans(config.home)
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="when-done")
        self._lock: int | None = None
        self._store: Store | None = None  # open only while something is planned
        self._counted: tuple[int, float] | None = None  # which plan, and when it is due
        self._wrong = ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                try:
                    self._look()
                    self._wrong = ""
                except (SvcqError, OSError) as error:
                    if str(error) != self._wrong:  # a store that is away is told of once
                        self._say(f"What is planned for the end has to wait: {error}")
                    self._wrong = str(error)
                if self._leaving.wait(LOOK):
                    return
        finally:
            self._close()
            if self._lock is not None:
                os.close(self._lock)

    def _look(self) -> None:
        if self._lock is None:
            self._lock = processes.hold_lock(self._plans.lock)
        plan = None if self._lock is None else self._plans.read()
        if plan is None:
            self._counted = None
            self._close()
        elif plan.boot not in (None, processes.boot_id()):
            self._drop(plan)
        elif left_to_do(self._opened(), plan.queues):
            self._go_on_waiting(plan)
        else:
            self._count_down(plan)

    def _opened(self) -> Store:
        if self._store is None:
            self._store = open_store(self._config)
        return self._store

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _drop(self, plan: Plan) -> None:
        if self._plans.take() is not None:
            says = f"The machine was started anew since it was planned to {verb(plan)}: it is not."
            self._say(says)
            self._plans.note_result(done=False, says=says)

    def _go_on_waiting(self, plan: Plan) -> None:
        if self._counted is not None:
            self._counted = None
            self._plans.note_due(None)
            self._say(f"There is work again: svcq waits for its end to {verb(plan)}.")

    def _count_down(self, plan: Plan) -> None:
        if self._counted is None or self._counted[0] != plan.asked_at:
            self._counted = plan.asked_at, time.monotonic() + plan.wait / SECOND
            if plan.wait:
                self._plans.note_due(now_ms() + plan.wait)
                span = format_duration(plan.wait)
                self._say(
                    f"All work is done: svcq is to {verb(plan)} in {span} "
                    "(svcq when-done --cancel prevents it)."
                )
        if time.monotonic() < self._counted[1]:
            return
        taken = self._plans.take()
        self._counted = None
        if taken is not None and taken.asked_at == plan.asked_at:
            self._carry_out(taken)
        elif taken is not None:  # it was replaced in the last instant
            self._plans.write(taken)

    def _carry_out(self, plan: Plan) -> None:
        says = f"All work was done: svcq was to {verb(plan)}."
        # Before it happens: afterwards there may be nobody to do so.
        self._plans.note_result(done=True, says=says)
        self._say(f"All work is done: svcq is to {verb(plan)} now.")
        try:
            job = self._do(plan)
            if job is not None:
                says = f"All work was done: job {job} was queued."
                self._plans.note_result(done=True, says=says)
        except SvcqError as error:
            self._say(str(error))
            self._plans.note_result(done=False, says=str(error))

    def _do(self, plan: Plan) -> int | None:
        if plan.action == "sleep":
            power.sleep()
        elif plan.action == "shutdown":
            power.shut_down()
        else:
            with closing(Client(config=self._config)) as client:
                job = client.command(
                    plan.command or [], cwd=plan.cwd, env=plan.env, tags=["when-done"]
                )
                return job.id
        return None


def verb(plan: Plan) -> str:
    """What it does, after `to`."""
    if plan.action == "sleep":
        return "put the machine to sleep"
    if plan.action == "shutdown":
        return "shut the machine down"
    import shlex

    command = plan.command or ""
    return f"queue {command if isinstance(command, str) else shlex.join(command)}"
