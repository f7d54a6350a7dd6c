"""For the tests of programs that use svcq: tasks run at once, on a real store of their own.

    from svcq import testing

    def test_signup_sends_mail():
        with testing.immediate() as queue:
            signup("a@example.org")
            assert [job.task for job in queue.list()] == ["app.send"]
            queue.advance("1h")          # what was scheduled within the hour has run, too

Retries, unique keys, dependencies and all other rules hold as they do in a worker. Commands are
queued but not run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from svcq.client import Client, Queueable, set_default_client
from svcq.execute import execute
from svcq.jobs import Claim, Job, State
from svcq.store import Claimer, Report, WorkerInfo
from svcq.times import Duration, now_ms, parse_duration


@contextmanager
def immediate(*, raise_errors: bool = True) -> Iterator[ImmediateClient]:
    """Make the default client one that runs tasks as they are queued.

    An exception that a task does not raise on purpose reaches the test, unless `raise_errors` is
    False: then the job fails and is retried as it would be.
    """
    with tempfile.TemporaryDirectory(prefix="svcq-") as folder:
        client = ImmediateClient(Path(folder) / "home", raise_errors=raise_errors)
        before = set_default_client(client)
        try:
            yield client
        finally:
            set_default_client(before)
            client.close()


class ImmediateClient(Client):
    """A client on a store of its own, with a clock of its own, that runs what it queues."""

    def __init__(self, home: Path, *, raise_errors: bool) -> None:
        self._ahead = 0
        super().__init__(home=home, store=home / "svcq.db", clock=lambda: now_ms() + self._ahead)
        self._raise_errors = raise_errors

        self._worker = self.store.register(WorkerInfo(host="here", pid=0))

    def enqueue(self, task: Queueable, /, *args: Any, **kwargs: Any) -> Job:
        job = super().enqueue(task, *args, **kwargs)
        self.run_all()
        return self.get(job.id)

    def enqueue_many(self, task: Queueable, calls: Sequence[Mapping[str, Any]], /) -> list[int]:
        ids = super().enqueue_many(task, calls)
        self.run_all()
        return ids

    def advance(self, duration: Duration) -> None:
        """Let time pass, and run what is due by then, in the order in which it is due."""
        end = self._ahead + parse_duration(duration)
        while (due := self.store.next_due()) is not None and due <= now_ms() + end:
            self._ahead = max(self._ahead, due - now_ms())
            self.run_all()
        self._ahead = max(self._ahead, end)
        self.run_all()

    def run_all(self) -> None:
        """Run every task that may run now."""
        while claims := self.store.claim(Claimer(self._worker, kinds=("task",))):
            for claim in claims:
                self._run(claim)

    def _run(self, claim: Claim) -> None:
        errors: list[Exception] = []
        job = _RunningJob(self, claim)
        outcome = execute(claim, job, self.config.jobs.max_payload, errors.append)
        self.store.finish([Report.of(claim, outcome)])
        if errors and self._raise_errors:
            raise errors[0]


class _RunningJob:
    """What `svcq.current_job()` gives to a task that runs here."""

    def __init__(self, client: ImmediateClient, claim: Claim) -> None:
        self._client = client
        self._claim = claim
        self.id = claim.id
        self.run = claim.run
        self.attempt = claim.failures + 1

    def progress(self, fraction: float, note: str | None = None) -> None:
        self._client.progress(self._claim, fraction, note)

    @property
    def cancelled(self) -> bool:
        job = self._client.get(self.id)
        return job.cancel_requested or job.state is not State.PROCESSING
