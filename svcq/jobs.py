"""The words of svcq: states, outcomes, jobs. Imports nothing else of svcq.

A state says where a job stands; an outcome says how one run of it ended.
`next_state` is the one place where an outcome becomes a state.
"""

# No annotations from __future__: as text, each one of a NamedTuple is compiled at every start.

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from svcq.states import (
    FINISHED,
    QUEUED,
    TRANSITIONS,
    UNFINISHED,
    WAITING,
    State,
    may_become,
    waiting_state,
)

__all__ = [
    "FINISHED",
    "QUEUED",
    "TRANSITIONS",
    "UNFINISHED",
    "WAITING",
    "Bounds",
    "Change",
    "Claim",
    "How",
    "Job",
    "Outcome",
    "Run",
    "State",
    "Tally",
    "Verdict",
    "cancelled",
    "completed",
    "failed",
    "interrupted",
    "lost",
    "may_become",
    "next_state",
    "rejected",
    "snoozed",
    "timed_out",
    "waiting_state",
]


class How(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    LOST = "lost"
    SNOOZED = "snoozed"


class Outcome(NamedTuple):
    """One run's end. Build it with the functions below, which allow only what makes sense."""

    how: How
    result: str | None = None  # JSON text
    error: str | None = None
    exit_code: int | None = None
    delay_ms: int | None = None  # of a snooze, or of a retry whose task named its own delay
    tail: str | None = None  # the last lines of output
    cpu_ms: int | None = None
    peak_bytes: int | None = None

    @property
    def says_something(self) -> bool:
        """Whether the run is worth a row in the history: every run but a silent success."""
        return (
            self.how is not How.COMPLETED
            or self.result is not None
            or self.exit_code is not None
            or self.tail is not None
        )


def completed(
    result: str | None = None, *, exit_code: int | None = None, tail: str | None = None
) -> Outcome:
    return Outcome(How.COMPLETED, result=result, exit_code=exit_code, tail=tail)


def failed(
    error: str,
    *,
    exit_code: int | None = None,
    delay_ms: int | None = None,
    tail: str | None = None,
) -> Outcome:
    return Outcome(How.FAILED, error=error, exit_code=exit_code, delay_ms=delay_ms, tail=tail)


def rejected(reason: str, *, exit_code: int | None = None, tail: str | None = None) -> Outcome:
    return Outcome(How.REJECTED, error=reason, exit_code=exit_code, tail=tail)


def timed_out(error: str, *, exit_code: int | None = None, tail: str | None = None) -> Outcome:
    return Outcome(How.TIMED_OUT, error=error, exit_code=exit_code, tail=tail)


def cancelled(*, exit_code: int | None = None, tail: str | None = None) -> Outcome:
    return Outcome(How.CANCELLED, error="cancelled", exit_code=exit_code, tail=tail)


def interrupted(reason: str = "interrupted", *, tail: str | None = None) -> Outcome:
    return Outcome(How.INTERRUPTED, error=reason, tail=tail)


def lost(reason: str) -> Outcome:
    return Outcome(How.LOST, error=reason)


def snoozed(delay_ms: int, *, error: str | None = None, tail: str | None = None) -> Outcome:
    """It goes back, and nothing counts against it; `error` says why, unless its task asked."""
    return Outcome(How.SNOOZED, delay_ms=delay_ms, error=error, tail=tail)


class Tally(NamedTuple):
    """How often runs ended in ways that may be repeated. Only failures count as attempts."""

    failures: int = 0
    losses: int = 0
    interruptions: int = 0
    snoozes: int = 0


class Bounds(NamedTuple):
    """What a job's policy allows before it is dead."""

    max_attempts: int
    max_losses: int  # 0 where a lost job is dead at once
    max_interruptions: int


class Verdict(NamedTuple):
    """What becomes of a job after a run: `goal` is None where `waiting_state` decides."""

    goal: State | None
    tally: Tally
    reason: str | None = None


def next_state(outcome: Outcome, tally: Tally, bounds: Bounds, cancel_requested: bool) -> Verdict:
    """Turn the end of a run into the job's next state.

    A real success wins over a request to cancel; everything else yields to it.
    """
    how = outcome.how
    if how is How.COMPLETED:
        return Verdict(State.COMPLETED, tally)
    if how is How.CANCELLED or cancel_requested:
        return Verdict(State.CANCELLED, tally, "cancelled while it ran")
    if how is How.REJECTED:
        return Verdict(State.DEAD, tally, "rejected")
    if how is How.SNOOZED:
        return Verdict(None, tally._replace(snoozes=tally.snoozes + 1))
    if how is How.INTERRUPTED:
        tally = tally._replace(interruptions=tally.interruptions + 1)
        if tally.interruptions > bounds.max_interruptions:
            return Verdict(State.DEAD, tally, "interrupted too often")
        return Verdict(None, tally)
    if how is How.LOST:
        tally = tally._replace(losses=tally.losses + 1)
        if tally.losses > bounds.max_losses:
            return Verdict(State.DEAD, tally, "lost too often")
        return Verdict(None, tally)
    tally = tally._replace(failures=tally.failures + 1)
    if tally.failures >= bounds.max_attempts:
        reason = "timed out" if how is How.TIMED_OUT else "out of attempts"
        return Verdict(State.DEAD, tally, reason)
    return Verdict(State.RETRYING, tally)


_NOTHING: Mapping[str, Any] = {}


class Job(NamedTuple):
    """A job as people and programs see it. Times are aware datetimes in UTC."""

    id: int
    queue: str
    state: State
    created_at: datetime
    name: str | None = None
    reason: str | None = None
    priority: int = 0
    run: int = 0
    attempts: int = 0
    max_attempts: int = 1
    failures: int = 0
    losses: int = 0
    interruptions: int = 0
    snoozes: int = 0
    run_at: datetime | None = None
    expires_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    error: str | None = None
    progress: float | None = None
    progress_note: str | None = None
    cancel_requested: bool = False
    paused: bool = False
    result: Any = None
    tags: tuple[str, ...] = ()
    owner: str | None = None
    worker: int | None = None
    command: list[str] | str | None = None
    task: str | None = None
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = _NOTHING
    options: Mapping[str, Any] = _NOTHING
    cwd: str | None = None
    host: str | None = None
    condition: str | None = None
    concurrency_key: str | None = None
    unique_key: str | None = None
    after: tuple[int, ...] = ()
    copy_of: int | None = None

    @property
    def finished(self) -> bool:
        return self.state in FINISHED

    def as_json(self) -> dict[str, Any]:
        """The JSON object every face of svcq prints for a job."""
        shown = {name: _shown(value) for name, value in self._asdict().items()}
        shown["state"] = self.state.value
        for absent in ("task", "args", "kwargs") if self.task is None else ("command",):
            del shown[absent]
        return shown


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return list(value) if isinstance(value, tuple) else value


class Claim(NamedTuple):
    """One run of a job, held by one worker: what is needed to run it and to report its end."""

    id: int
    run: int
    worker: int
    queue: str
    task: str  # empty for a command
    command: str | None  # JSON: a list is an argv, a string a line for the shell
    args: str | None  # JSON: [positional, named]
    options: str  # JSON: what the job itself asked for
    queue_options: str  # JSON: what its queue asks for where the job is silent
    name: str | None
    cwd: str | None
    env: int | None
    failures: int
    started_at: int

    @property
    def call(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a task: positional, named."""
        positional, named = json.loads(self.args) if self.args else ([], {})
        return positional, named


class Run(NamedTuple):
    """One run of a job as history keeps it."""

    job: int
    run: int
    worker: int | None
    host: str | None
    started_at: datetime
    ended_at: datetime
    how: How
    exit_code: int | None
    error: str | None
    tail: str | None
    result: Any
    cpu_ms: int | None = None
    peak_bytes: int | None = None

    def as_json(self) -> dict[str, Any]:
        shown = {name: _shown(value) for name, value in self._asdict().items()}
        return {**shown, "how": self.how.value}


class Change(NamedTuple):
    """Something that happened to a job: `kind` is the state it entered, or what was told of it.

    Job 0 with the kind `schedules` says that some schedule changed or fired.
    """

    seq: int
    job: int
    kind: str
    at: datetime

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "at": _shown(self.at)}
