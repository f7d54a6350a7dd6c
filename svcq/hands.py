"""Workers written by hand: take jobs, run them your own way, report how they ended.

for job in client.fetch("mail", 10, lease="2m"):
    args, kwargs = job.call
    ...
    client.complete(job, result={"sent": True})
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from svcq.config import Config
from svcq.errors import InvalidInput, NotHeld, shown
from svcq.jobs import Claim, Job, Outcome, completed, failed, lost, rejected, snoozed
from svcq.policy import check_int, check_name, check_number, encode_json, storable_text
from svcq.times import Duration, parse_duration
from svcq.version import __version__

if TYPE_CHECKING:
    from svcq.store import Store


class HandWorker:
    """The verbs of a worker; a part of the client."""

    config: Config
    store: Store

    def __init__(self) -> None:
        self._hand: tuple[int, int] | None = None  # pid and worker id
        self._lease_ms = 60_000

    def fetch(
        self, queue: str | Collection[str] | None = None, n: int = 1, *, lease: Duration = 60
    ) -> list[Claim]:
        """Take up to `n` jobs to run yourself. Report each with complete, fail, reject or snooze.

        Call `heartbeat` more often than `lease`, or the jobs go to others.
        """
        from svcq.store import Claimer

        n = check_int(n, "number of jobs", 1, 10_000)
        wanted = None if queue is None else _queue_names(queue)
        self._lease_ms = parse_duration(lease, "lease")
        self.store.rescue_lapsed(lost("its worker was not heard of within its lease"))
        claimer = Claimer(
            self._hand_worker(),
            host=_this_host(),
            serves=None if wanted is None else wanted.__contains__,
        )
        return self.store.claim(claimer, n)

    def heartbeat(self) -> None:
        """Keep the lease on what was fetched."""
        self.store.heartbeat(self._hand_worker(), self._lease_ms)

    def progress(self, claim: Claim, fraction: float, note: str | None = None) -> None:
        fraction = check_number(fraction, "progress", 0, 1)
        note = None if note is None else storable_text(note, "note")
        if not self.store.progress(claim, fraction, note):
            raise _not_held(claim)

    def complete(self, claim: Claim, result: Any = None) -> Job:
        """The job ended well; `result` is kept with it."""
        limit = self.config.jobs.max_payload
        text = None if result is None else encode_json(result, "contents of the result", limit)
        return self._report(claim, completed(text))

    def fail(self, claim: Claim, error: str, *, delay: Duration | None = None) -> Job:
        """The attempt failed; it is tried again as its policy says, or after `delay`."""
        delay_ms = None if delay is None else parse_duration(delay, "delay")
        return self._report(claim, failed(storable_text(error, "error"), delay_ms=delay_ms))

    def reject(self, claim: Claim, reason: str) -> Job:
        """The job can never succeed: no further attempt."""
        return self._report(claim, rejected(storable_text(reason, "reason")))

    def snooze(self, claim: Claim, delay: Duration) -> Job:
        """Nothing failed, but not now: again after `delay`."""
        return self._report(claim, snoozed(parse_duration(delay, "delay")))

    def _hand_worker(self) -> int:
        """This process as a worker; registered anew after a fork or when given up as lost."""
        from svcq.store import WorkerInfo

        pid = os.getpid()
        hand = self._hand
        if hand is not None and hand[0] == pid and self.store.beat(hand[1], self._lease_ms):
            return hand[1]
        info = WorkerInfo(_this_host(), pid, version=__version__, lease_ms=self._lease_ms)
        self._hand = (pid, self.store.register(info))
        return self._hand[1]

    def _report(self, claim: Claim, outcome: Outcome) -> Job:
        from svcq.store import Report

        (state,) = self.store.finish([Report.of(claim, outcome)])
        if state is None:
            raise _not_held(claim)
        return self.store.get(claim.id)


def _queue_names(given: str | Collection[str]) -> set[str]:
    if not isinstance(given, Collection):
        raise InvalidInput(f"The queue {shown(given)} is not a name: give one, or several.")
    return {check_name(one, "queue") for one in ([given] if isinstance(given, str) else given)}


def _this_host() -> str:
    from socket import gethostname

    return gethostname()


def _not_held(claim: Claim) -> NotHeld:
    return NotHeld(
        f"Job {claim.id} is no longer yours (run {claim.run}): it was cancelled or given to "
        "another worker; drop what you did."
    )
