"""How a job ended, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svcq.jobs import Job
from svcq.later import Later
from svcq.why.words import Cause, because, clock_time, milliseconds, span, times

if TYPE_CHECKING:
    import signal
else:
    signal = Later("signal")


def completed(job: Job) -> Cause:
    took = (milliseconds(job.finished_at) or 0) - (milliseconds(job.started_at) or 0)
    code = "" if job.exit_code is None else f" with exit code {job.exit_code}"
    again = f" It failed {times(job.failures)} before." if job.failures else ""
    says = f"it took {span(max(took, 0))} and ended well{code}, at {clock_time(job.finished_at)}."
    return Cause("completed", f"{says}{again}")


def dead(job: Job) -> Cause:
    remedy = f"svcq retry {job.id} runs it again."
    match job.reason:
        case "expired":
            says = f"it was to start before {clock_time(job.expires_at)} and did not."
            if job.expires_at is None:
                says = "it had not started by the time it was to."
            return Cause("expired", f"{says} {remedy}")
        case "out of attempts":
            tries = f"attempt {job.failures} of {job.max_attempts} failed"
            return Cause("out_of_attempts", f"{tries}{because(job)}.{_hint(job)} {remedy}")
        case "timed out":
            tries = f"attempt {job.failures} of {job.max_attempts} took too long"
            return Cause("timed_out", f"{tries}{because(job)}. {remedy}")
        case "rejected":
            says = f"it was given up at once{because(job)}.{_hint(job)}"
            return Cause("rejected", f"{says} {remedy}")
        case "lost too often":
            return Cause("lost", f"it lost its worker {times(job.losses)}{because(job)}. {remedy}")
        case "interrupted too often":
            says = f"it was interrupted {times(job.interruptions)}{because(job)}."
            return Cause("interrupted", f"{says} {remedy}")
    return Cause("dead", f"{job.reason or 'nobody said why'}{because(job)}. {remedy}")


def cancelled(job: Job) -> Cause:
    reason = job.reason or "nobody said why"
    parent = next((one for one in job.after if reason.startswith(f"job {one},")), None)
    at = "" if job.finished_at is None else f", at {clock_time(job.finished_at)}"
    if parent is not None:
        remedy = f"svcq retry {parent} brings both back."
        return Cause("parent_failed", f"{reason}{at}. {remedy}", jobs=(parent,))
    return Cause("cancelled", f"{reason}{at}. svcq retry {job.id} runs it again.")


def _hint(job: Job) -> str:
    """What an exit code means to those who know the shell."""
    code = job.exit_code
    if code is None:
        return ""
    if code == 127:
        return " Exit code 127 says that the command was not found: check its name and PATH."
    if code == 126:
        return " Exit code 126 says that the file cannot be run: check its permissions."
    number = -code if code < 0 else code - 128 if 128 < code < 160 else 0
    name = _signal_name(number)
    if name == "SIGKILL":
        return f" {name} ended it; often that is the system, out of memory."
    return f" {name} ended it." if name else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
