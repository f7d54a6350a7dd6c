"""How it stands with a job that a worker holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from svcq.jobs import Job
from svcq.store import Facts, Worker
from svcq.why.words import Cause, first_line, milliseconds, span


def processing(
    facts: Facts, lives: Callable[[Worker], bool], left_over: Callable[[], Sequence[int]]
) -> Cause:
    job = facts.job
    elapsed = facts.now - (milliseconds(job.started_at) or facts.now)
    worker = next((one for one in facts.workers if one.id == job.worker), None)
    if worker is None or not lives(worker):
        return _lost(job, worker, left_over())
    said = f"worker {worker.id} on {worker.host} (pid {worker.pid}) has run it for {span(elapsed)}"
    if job.cancel_requested:
        grace = span(facts.policy.grace)
        says = (
            f"{said}; it was asked to stop, and ends when its processes have: they have {grace} "
            "to do so, then they are killed."
        )
        return Cause("stopping", says)
    if job.paused:
        says = f"{said}; it stands still: svcq resume --job {job.id} lets it go on."
        return Cause("paused", says)
    left = time_left(elapsed, job.progress, facts.usual_ms)
    parts = [said]
    if job.progress is not None:
        note = f" ({first_line(job.progress_note)})" if job.progress_note else ""
        parts.append(f"{job.progress:.0%} done{note}")
    if left is not None:
        parts.append(f"it ends in about {span(left)}")
    if facts.policy.timeout is not None:
        parts.append(_timeout(facts.policy.timeout, elapsed, facts.policy.grace))
    at = None if left is None else facts.now + left
    return Cause("running", f"{'; '.join(parts)}.", at)


def _timeout(timeout: int, elapsed: int, grace: int) -> str:
    if elapsed < timeout:
        return f"its timeout is in {span(timeout - elapsed)}"
    # What it stood still for does not count, and nobody here knows how long that was.
    return (
        f"its timeout of {span(timeout)} has passed: unless it stood still meanwhile, "
        f"it has {span(grace)} to end, then it is killed"
    )


def _lost(job: Job, worker: Worker | None, pids: Sequence[int]) -> Cause:
    who = f"worker {job.worker}"
    if worker is not None:
        who += f" (pid {worker.pid} on {worker.host})"
    if pids:
        named = ", ".join(map(str, pids))
        noun = "process" if len(pids) == 1 else "processes"
        return Cause(
            "left_over", f"{who} died, and the job goes back when its {noun} {named} "
            f"{'is' if len(pids) == 1 else 'are'} gone; a worker sees to that: svcq worker start",
        )  # fmt: skip
    return Cause("lost", f"{who} died; the next worker on its machine gives it back: "
                 "svcq worker start")  # fmt: skip


def time_left(elapsed: int, progress: float | None, usual: int | None) -> int | None:
    """From what it says of itself, or else from what others took; None when nobody can tell."""
    if progress is not None and progress > 0:
        return round(elapsed * (1 - progress) / progress)
    if usual is None or elapsed >= usual:
        return None
    return usual - elapsed
