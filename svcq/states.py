"""Where a job may stand, and where it may go from there. Imports nothing of svcq."""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    HELD = "held"
    """Parked by a person until released."""
    BLOCKED = "blocked"
    """Waits for the jobs it comes after."""
    SCHEDULED = "scheduled"
    """Waits for its time."""
    PENDING = "pending"
    """May be claimed now."""
    PROCESSING = "processing"
    """A worker holds it."""
    RETRYING = "retrying"
    """Failed, waits for its next attempt."""
    COMPLETED = "completed"
    """Ended well."""
    DEAD = "dead"
    """Out of attempts, rejected, expired, or lost too often; `reason` says which."""
    CANCELLED = "cancelled"
    """A person or a rule stopped it."""


# What `waiting_state` may answer: where a job goes when it (again) waits for a worker.
QUEUED = frozenset({State.HELD, State.BLOCKED, State.SCHEDULED, State.PENDING})
WAITING = QUEUED | {State.RETRYING}
FINISHED = frozenset({State.COMPLETED, State.DEAD, State.CANCELLED})
UNFINISHED = frozenset(State) - FINISHED

TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.HELD: frozenset(QUEUED - {State.HELD} | {State.DEAD, State.CANCELLED}),
    State.BLOCKED: frozenset(QUEUED - {State.BLOCKED} | {State.DEAD, State.CANCELLED}),
    State.SCHEDULED: frozenset(QUEUED - {State.SCHEDULED} | {State.DEAD, State.CANCELLED}),
    State.PENDING: frozenset(
        QUEUED - {State.PENDING} | {State.PROCESSING, State.DEAD, State.CANCELLED}
    ),
    State.PROCESSING: frozenset(QUEUED | FINISHED | {State.RETRYING}),
    State.RETRYING: frozenset(QUEUED | {State.DEAD, State.CANCELLED}),
    State.COMPLETED: QUEUED,
    State.DEAD: QUEUED,
    State.CANCELLED: QUEUED,
}


def may_become(old: State, new: State) -> bool:
    return new in TRANSITIONS[old]


def waiting_state(*, held: bool, waits_on: int, run_at: int | None, now: int) -> State:
    """Where a job stands that no worker holds: new, released, retried, interrupted or snoozed."""
    if held:
        return State.HELD
    if waits_on:
        return State.BLOCKED
    if run_at is not None and run_at > now:
        return State.SCHEDULED
    return State.PENDING
