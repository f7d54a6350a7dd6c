"""Why a job is where it is: one or two sentences for each state, with the numbers behind them.

`explain` is pure: facts in, sentences out. Of several things that keep a job from starting, the one
that would have to change first is told.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from svcq.conditions import Verdict, judge
from svcq.host.facts import fact
from svcq.jobs import State
from svcq.later import Later
from svcq.store import Facts, Store, Worker
from svcq.times import iso
from svcq.why.ended import cancelled, completed, dead
from svcq.why.pending import pending
from svcq.why.running import processing
from svcq.why.running import time_left as time_left
from svcq.why.waiting import blocked, retrying, scheduled
from svcq.why.words import Cause
from svcq.why.words import clock_time as clock_time

if TYPE_CHECKING:
    from svcq.host import processes
else:
    processes = Later("svcq.host.processes")


class Why(NamedTuple):
    job: int
    state: State
    cause: str  # one word for programs, such as `paused` or `queue_limit`
    text: str
    at: int | None = None  # when that changes by itself, if anyone can say
    jobs: tuple[int, ...] = ()  # the other jobs it is about
    in_front: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "job": self.job, "state": self.state.value, "cause": self.cause, "why": self.text,
            "at": iso(self.at), "jobs": list(self.jobs), "in_front": self.in_front,
        }  # fmt: skip


def why(store: Store, job: int) -> Why:
    """Look at the store and, for what it says of this machine, at the machine."""
    facts = store.facts(job)
    here = socket.gethostname()

    def lives(worker: Worker) -> bool:
        if worker.lease_until is not None:
            return worker.lease_until >= facts.now
        if worker.host != here:
            return not worker.is_silent(facts.now)  # who looks after it there would have ended it
        # `born` also numbers the workers of one process.
        born = (worker.born or "").partition("-")[0]
        same_boot = worker.boot == processes.boot_id()
        return same_boot and processes.process_born(worker.pid) == born

    def left_over() -> list[int]:
        marker = f"{job}.{facts.job.run}.{store.id()}"
        return [one.pid for one in processes.tree_of(marker)]

    def judged(condition: str) -> Verdict:
        if facts.job.host not in (None, here):
            return Verdict(None, f"that is for {facts.job.host} to tell")
        return judge(condition, fact)

    return explain(facts, lives, left_over, judged)


def explain(
    facts: Facts,
    lives: Callable[[Worker], bool],
    left_over: Callable[[], Sequence[int]] = tuple,
    judged: Callable[[str], Verdict] = lambda _: Verdict(None, "nobody has looked"),
) -> Why:
    """`lives` says whether a worker is still there, `left_over` which processes a lost run left,
    `judged` whether a condition holds on this machine."""
    job = facts.job
    match job.state:
        case State.PENDING:
            cause = pending(facts, lives, judged)
        case State.PROCESSING:
            cause = processing(facts, lives, left_over)
        case State.SCHEDULED:
            cause = scheduled(facts, lives)
        case State.RETRYING:
            cause = retrying(facts, lives)
        case State.BLOCKED:
            cause = blocked(facts)
        case State.HELD:
            cause = Cause("held", f"it is parked until someone lets it go: svcq release {job.id}.")
        case State.COMPLETED:
            cause = completed(job)
        case State.DEAD:
            cause = dead(job)
        case State.CANCELLED:
            cause = cancelled(job)
    in_front = facts.in_front if job.state is State.PENDING else None
    text = f"{job.state}: {cause.says}"
    return Why(job.id, job.state, cause.word, text, cause.at, cause.jobs, in_front)
