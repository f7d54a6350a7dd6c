"""A worker inside another program: tasks run in its own process, in threads.

    with svcq.Worker(slots=4):
        serve_web_pages()

Meant for tasks that share something with the program: a cache, a model in memory. What it cannot
do, since a thread cannot be killed: end a task that does not end by itself. A task that has run
out of time, or is to be cancelled, sees `svcq.current_job().cancelled`. Commands are left to the
workers of the service.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Self

from svcq.client import Client, default_client
from svcq.errors import SvcqError
from svcq.execute import execute
from svcq.jobs import Claim, How, Outcome, cancelled, interrupted, timed_out
from svcq.later import import_all
from svcq.policy import policy_of
from svcq.store import Declared, Report
from svcq.tasks import known_tasks
from svcq.times import format_duration
from svcq.trouble import Trouble
from svcq.worker import spool
from svcq.worker.conditions import Conditions
from svcq.worker.heartbeat import Jobs
from svcq.worker.leases import Neighbours
from svcq.worker.membership import Membership
from svcq.worker.places import Places

_LOOK = 1.0


class Worker:
    """Runs the tasks that this program has imported, until it is stopped."""

    def __init__(
        self,
        *,
        slots: int = 1,
        queues: Sequence[str] = ("*",),
        client: Client | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._slots = slots
        self._queues = tuple(queues)
        self._say = say or _log
        self._trouble = Trouble(self._say)
        self._running: dict[int, _RunningJob] = {}
        self._reports: list[Report] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._conditions = Conditions()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._join()
        self._thread = threading.Thread(target=self._work, name="svcq-worker", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Take nothing new, let what runs end; after `timeout` seconds leave it behind.

        What is left behind goes back as interrupted. Whether everything had ended.
        """
        self._stopping.set()
        self._wake()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(timeout)
            if thread.is_alive():
                self._abandon()
                return False
        return True

    # Coming and going

    def _join(self) -> None:
        if self._client is None:
            self._client = default_client()
        import_all()
        self._store = self._client.store
        self._store.declare(
            {name: Declared(task.words, task.policy) for name, task in known_tasks().items()}
        )
        self._places = Places(self._client.config.home)
        self._member = Membership(self._store, self._places, self._slots, self._say)
        self.id = self._member.id
        self._neighbours = Neighbours(self._store, self._places, self._say, self.id)
        if self._member.heartbeat is not None:
            self._member.heartbeat.guard(Jobs(self._end_all, lambda: None))
        self._claimer = self._member.claimer(self._queues, ("task",), self._conditions)
        self._awake, self._waker = socket.socketpair()
        self._threads = ThreadPoolExecutor(self._slots, "svcq-task")

    def _leave(self) -> None:
        self._threads.shutdown(wait=False)
        self._awake.close()
        self._waker.close()
        self._member.leave()

    def _abandon(self) -> None:
        outcome = interrupted("the program that ran it ended")
        with self._lock:
            reports = [Report(job.id, job.run, self.id, outcome) for job in self._running.values()]
            self._running.clear()
        self._store.finish(reports)
        self._leave()

    # Working

    def _work(self) -> None:
        while not (self._stopping.is_set() and not self._running and not self._reports):
            try:
                self._turn()
                self._trouble.over()
            except SvcqError as error:
                self._trouble.met(error)
            self._sleep()
        self._leave()

    def _turn(self) -> None:
        with self._lock:
            reports, self._reports = self._reports, []
        if reports:
            try:
                self._store.finish(reports)
            except SvcqError:
                spool.save(self._places.spool, reports)
                raise
        spool.deliver(self._places.spool, self._store)
        orders = self._store.orders(self.id)
        for job in orders.cancel:
            if job in self._running:
                self._running[job].end_with(cancelled())
        if orders.state != "running":
            self._stopping.set()
        free = 0 if self._stopping.is_set() else self._slots - len(self._running)
        self._conditions.forget()
        if self._member.cut_off:
            return
        for claim in self._store.claim(self._claimer, free) if free > 0 else ():
            self._begin(claim)
        self._conditions.look(self._wake)

    def _end_all(self, reason: str) -> None:
        """As far as they look whether they are to end: a thread cannot be killed."""
        with self._lock:
            for job in self._running.values():
                job.end_with(interrupted(reason))

    def _begin(self, claim: Claim) -> None:
        assert self._client is not None
        task = known_tasks().get(claim.task)
        said = "{}" if task is None else task.policy
        policy = policy_of(self._client.config.jobs, claim.queue_options, said, claim.options)
        job = _RunningJob(self._client, claim, policy.timeout)
        with self._lock:
            self._running[claim.id] = job
        self._threads.submit(self._run, claim, job)

    def _run(self, claim: Claim, job: _RunningJob) -> None:
        assert self._client is not None
        outcome = execute(claim, job, self._client.config.jobs.max_payload)
        if job.ending is not None and outcome.how is not How.COMPLETED:
            outcome = job.ending
        with self._lock:
            if self._running.pop(claim.id, None) is not None:
                self._reports.append(Report.of(claim, outcome))
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # it has left, and needs no waking
            self._waker.send(b".")

    def _sleep(self) -> None:
        bell, awake = self._member.bell.fileno(), self._awake.fileno()
        ready, _, _ = select.select([bell, awake], [], [], _LOOK)
        if bell in ready:
            self._member.bell.heard()
        if awake in ready:
            self._awake.recv(4096)
        if not ready:
            try:
                self._neighbours.look()
            except SvcqError as error:
                self._trouble.met(error)


def _log(message: str) -> None:
    logging.getLogger("svcq").warning(message)


class _RunningJob:
    """What `svcq.current_job()` gives to a task that runs here."""

    def __init__(self, client: Client, claim: Claim, timeout_ms: int | None) -> None:
        self._client = client
        self._claim = claim
        self._timeout_ms = timeout_ms
        self._deadline = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        self.id = claim.id
        self.run = claim.run
        self.attempt = claim.failures + 1
        self.ending: Outcome | None = None

    def progress(self, fraction: float, note: str | None = None) -> None:
        self._client.progress(self._claim, fraction, note)

    def end_with(self, outcome: Outcome) -> None:
        self.ending = self.ending or outcome

    @property
    def cancelled(self) -> bool:
        if self._deadline is not None and time.monotonic() > self._deadline:
            limit = format_duration(self._timeout_ms or 0)
            self.end_with(timed_out(f"ran longer than its timeout of {limit}"))
        return self.ending is not None
