"""What a job waits for that may not start yet: its time, or other jobs."""

from __future__ import annotations

from collections.abc import Callable

from svcq.jobs import State
from svcq.store import Facts, Parent, Worker
from svcq.why.words import NAMED, Cause, because, clock_time, first_line, joined, milliseconds, span
from svcq.why.workers import all_busy, no_worker, working


def scheduled(facts: Facts, lives: Callable[[Worker], bool]) -> Cause:
    job = facts.job
    at = milliseconds(job.run_at) or facts.now
    asked = "its task asked for a later time; " if job.snoozes else ""
    if job.snoozes and job.error:
        asked = f"it {first_line(job.error)}; "
    if at > facts.now:
        says = f"{asked}its time is in {span(at - facts.now)}, at {clock_time(job.run_at)}."
        return Cause("time", says, at)
    late = _late(facts, lives, at, "time")
    return late._replace(says=f"{asked}{late.says}")


def retrying(facts: Facts, lives: Callable[[Worker], bool]) -> Cause:
    job = facts.job
    at = milliseconds(job.run_at) or facts.now
    failed = f"attempt {job.failures} of {job.max_attempts} failed{because(job)}"
    if at > facts.now:
        when = f"the next is in {span(at - facts.now)}, at {clock_time(job.run_at)}"
        return Cause("failed", f"{failed}; {when}.", at)
    late = _late(facts, lives, at, "failed")
    return late._replace(says=f"{failed}; {late.says}")


def _late(facts: Facts, lives: Callable[[Worker], bool], at: int, word: str) -> Cause:
    """Its time has come, and the next claim of any worker lets it go."""
    said = f"its time came {span(facts.now - at)} ago"
    nobody = no_worker(facts, lives)
    if nobody is not None:
        return Cause(nobody.word, f"{said}, but {nobody.says}", at)
    if facts.queue.paused:
        name = facts.queue.name
        return Cause("paused", f"{said}, but queue {name} is paused: svcq resume {name}", at)
    busy = all_busy(working(facts, lives))
    if busy is not None:
        return Cause(busy.word, f"{said}, but {busy.says}", at)
    return Cause(word, f"{said}; it starts as soon as its turn comes.", at)


def blocked(facts: Facts) -> Cause:
    job, parents = facts.job, facts.parents
    failed = [one for one in parents if one.needs == "success" and _ended_badly(one)]
    ids = tuple(one.id for one in parents)
    if failed:
        first = failed[0]
        says = (
            f"job {first.id}, which must complete first, is {first.state}, and this one was told "
            f"to wait all the same: svcq retry {first.id}, or svcq cancel {job.id}"
        )
        return Cause("parent_failed", says, jobs=ids)
    waits = [f"{one.id} ({one.state})" for one in parents[:NAMED]]
    if len(parents) > NAMED:
        waits.append(f"{len(parents) - NAMED:,} more")
    noun = "job" if len(parents) == 1 else "jobs"
    ends = {one.needs for one in parents}
    goal = {"success": "to complete", "end": "to end"}.get(ends.pop() if len(ends) == 1 else "", "")
    return Cause("parents", f"it waits for {noun} {joined(waits)} {goal or 'to end'}.", jobs=ids)


def _ended_badly(parent: Parent) -> bool:
    return parent.state in (State.DEAD, State.CANCELLED)
