"""Why a job that may start has not: of several things, the one that would have to change first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from svcq.conditions import Verdict
from svcq.store import LONGEST_LINE, Facts, Limit, Running, Worker
from svcq.times import SECOND
from svcq.why.running import time_left
from svcq.why.words import Cause, counted, names_of, span
from svcq.why.workers import all_busy, no_worker, slots_of, working

# A worker that could take a job has done so by then.
PATIENCE = 5 * SECOND


def pending(
    facts: Facts, lives: Callable[[Worker], bool], judged: Callable[[str], Verdict]
) -> Cause:
    queue = facts.queue
    if queue.paused:
        return Cause("paused", f"queue {queue.name} is paused: svcq resume {queue.name}")
    cause = (
        no_worker(facts, lives)
        or _at_a_limit(facts)
        or _rated(facts)
        or _conditional(facts, judged)
        or _taken_or_not(facts, lives)
    )
    return cause._replace(says=f"{cause.says}{_line(facts)}")


def _at_a_limit(facts: Facts) -> Cause | None:
    name = facts.queue.name
    limit = facts.queue_limit
    if limit is not None and limit.most == 0:
        return Cause(
            "queue_limit", f"queue {name} has a limit of 0, so nothing in it starts: "
            f"svcq queue set {name} concurrency=",
        )  # fmt: skip
    if limit is not None and limit.running >= limit.most:
        return _limited(
            "queue_limit", f"queue {name} is at its limit of {limit.most:,}", limit, facts
        )
    limit = facts.key_limit
    if limit is not None and limit.running >= limit.most:
        what = f"key {facts.job.concurrency_key} is at its limit of {limit.most:,}"
        return _limited("key_limit", what, limit, facts)
    return None


def _limited(word: str, what: str, limit: Limit, facts: Facts) -> Cause:
    running = limit.jobs
    names = names_of([one.id for one in running], max(limit.running, len(running)))
    verb = "is" if limit.running == 1 else "are"
    says = f"{what}; {names} {verb} running"
    first = _first_to_end(running, facts)
    if first is not None:
        says += f", {first[0] if limit.running > 1 else 'it'} ends in about {span(first[1])}"
    at = None if first is None else facts.now + first[1]
    return Cause(word, f"{says}.", at, tuple(one.id for one in running))


def _first_to_end(running: Sequence[Running], facts: Facts) -> tuple[int, int] | None:
    """The job that ends first, and in how many milliseconds, if that can be told."""
    left = [
        (ms, one.id)
        for one in running
        if (ms := time_left(facts.now - one.started_at, one.progress, facts.usual_ms)) is not None
    ]
    if not left:
        return None
    ms, job = min(left)
    return job, ms


def _rated(facts: Facts) -> Cause | None:
    queue = facts.queue
    if queue.rate is None or facts.next_start is None or facts.next_start <= facts.now:
        return None
    starts, period = queue.rate
    wait = span(facts.next_start - facts.now)
    return Cause(
        "rate",
        f"queue {queue.name} starts at most {starts:,} in {span(period)}, "
        f"and the next may start in {wait}.",
        facts.next_start,
    )


def _conditional(facts: Facts, judged: Callable[[str], Verdict]) -> Cause | None:
    """What it waits for and does not hold: its own condition, or that of its queue."""
    queue = facts.queue
    for who, condition in (
        ("it waits", facts.job.condition),
        (f"queue {queue.name} waits", queue.options.get("when")),
    ):
        if not condition:
            continue
        holds, says = judged(condition)
        if holds is None:
            says = f"{who} for {condition}, and whether that holds is unknown: {says}."
            return Cause("condition", says)
        if not holds:
            return Cause("condition", f"{who} for {condition}: {says}.")
    return None


def _taken_or_not(facts: Facts, lives: Callable[[Worker], bool]) -> Cause:
    job = facts.job
    living = working(facts, lives)
    full = all_busy(living)
    if full is not None:
        return full
    slots, used = slots_of(living)
    busy = counted(len(living), "worker")
    # Since when a condition holds, nobody knows: a worker may be about to notice.
    conditional = job.condition is not None or "when" in facts.queue.options
    waited = 0 if conditional else facts.now - (facts.ready_at or facts.now)
    # While workers run what is in front of it, its turn may come; when all stand idle, it does not.
    if waited < PATIENCE or (facts.in_front and (used or conditional)):
        free = f"{slots - used:,} of {counted(slots, 'slot')} free"
        return Cause("soon", f"it starts as soon as its turn comes; {busy} with {free}.")
    which = f"queue {job.queue}"
    if job.task is not None:
        told = "svcq project add tells where tasks are to workers started after it"
        which += f" and the task {job.task} ({told})"
    has = "has a free slot" if len(living) == 1 else "have free slots"
    none = "it does not take it" if len(living) == 1 else "none takes it"
    return Cause("not_served", f"{busy} {has}, but {none}; start one that serves {which}.")


def _line(facts: Facts) -> str:
    n = facts.in_front
    if n > LONGEST_LINE:
        return f" More than {LONGEST_LINE:,} jobs are in front of it."
    if n:
        return f" {counted(n, 'job')} {'is' if n == 1 else 'are'} in front of it."
    return ""
