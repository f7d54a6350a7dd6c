"""The state table, and what each outcome makes of a job."""

from __future__ import annotations

from itertools import product

import pytest

from svcq.jobs import (
    FINISHED,
    QUEUED,
    TRANSITIONS,
    UNFINISHED,
    WAITING,
    Bounds,
    How,
    Outcome,
    State,
    Tally,
    cancelled,
    completed,
    failed,
    interrupted,
    lost,
    may_become,
    next_state,
    rejected,
    snoozed,
    timed_out,
    waiting_state,
)

# Written out a second time on purpose: the rows are the state left, the letters the state entered
# (held, blocked, scheduled, pending, processing=X, retrying, completed, dead, cancelled=K).
ALLOWED = {
    State.HELD: "BSPDK",
    State.BLOCKED: "HSPDK",
    State.SCHEDULED: "HBPDK",
    State.PENDING: "HBSXDK",
    State.PROCESSING: "HBSPRCDK",
    State.RETRYING: "HBSPDK",
    State.COMPLETED: "HBSP",
    State.DEAD: "HBSP",
    State.CANCELLED: "HBSP",
}
LETTERS = dict(zip(State, "HBSPXRCDK", strict=True))
NOW = 1_000

OUTCOMES: dict[How, Outcome] = {
    How.COMPLETED: completed(),
    How.FAILED: failed("boom"),
    How.REJECTED: rejected("no"),
    How.TIMED_OUT: timed_out("too slow"),
    How.CANCELLED: cancelled(),
    How.INTERRUPTED: interrupted(),
    How.LOST: lost("gone"),
    How.SNOOZED: snoozed(5),
}
ROOMY = Bounds(max_attempts=3, max_losses=3, max_interruptions=3)
TIGHT = Bounds(max_attempts=1, max_losses=0, max_interruptions=0)


@pytest.mark.parametrize(("old", "new"), list(product(State, State)))
def test_each_pair_of_states_is_allowed_or_not_as_the_table_says(old: State, new: State) -> None:
    assert may_become(old, new) is (LETTERS[new] in ALLOWED[old])


def test_every_state_has_a_row_and_groups_add_up() -> None:
    assert set(TRANSITIONS) == set(State)
    assert set(State) == FINISHED | UNFINISHED
    assert not FINISHED & UNFINISHED
    assert QUEUED | {State.RETRYING} == WAITING
    assert WAITING | {State.PROCESSING} == UNFINISHED


def test_a_job_is_claimed_only_from_pending() -> None:
    assert [old for old in State if may_become(old, State.PROCESSING)] == [State.PENDING]


def test_only_a_run_completes_a_job_or_makes_it_retry() -> None:
    for goal in (State.COMPLETED, State.RETRYING):
        assert [old for old in State if may_become(old, goal)] == [State.PROCESSING]


@pytest.mark.parametrize(
    ("held", "waits_on", "run_at", "expected"),
    [
        (True, 0, None, State.HELD),
        (True, 2, NOW + 1, State.HELD),
        (False, 1, None, State.BLOCKED),
        (False, 1, NOW + 1, State.BLOCKED),
        (False, 0, NOW + 1, State.SCHEDULED),
        (False, 0, NOW, State.PENDING),
        (False, 0, NOW - 1, State.PENDING),
        (False, 0, None, State.PENDING),
    ],
)
def test_a_waiting_job_stands_by_the_first_thing_that_stops_it(
    held: bool, waits_on: int, run_at: int | None, expected: State
) -> None:
    assert waiting_state(held=held, waits_on=waits_on, run_at=run_at, now=NOW) is expected


# (goal, what is counted up, reason) without and with room under the bounds; None: it waits again.
AFTER_ROOMY = {
    How.COMPLETED: (State.COMPLETED, None, None),
    How.FAILED: (State.RETRYING, "failures", None),
    How.TIMED_OUT: (State.RETRYING, "failures", None),
    How.REJECTED: (State.DEAD, None, "rejected"),
    How.CANCELLED: (State.CANCELLED, None, "cancelled while it ran"),
    How.INTERRUPTED: (None, "interruptions", None),
    How.LOST: (None, "losses", None),
    How.SNOOZED: (None, "snoozes", None),
}
AFTER_TIGHT = {
    **AFTER_ROOMY,
    How.FAILED: (State.DEAD, "failures", "out of attempts"),
    How.TIMED_OUT: (State.DEAD, "failures", "timed out"),
    How.INTERRUPTED: (State.DEAD, "interruptions", "interrupted too often"),
    How.LOST: (State.DEAD, "losses", "lost too often"),
}


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize(
    ("bounds", "table"), [(ROOMY, AFTER_ROOMY), (TIGHT, AFTER_TIGHT)], ids=["roomy", "tight"]
)
def test_each_outcome_has_its_next_state(
    how: How, bounds: Bounds, table: dict[How, tuple[State | None, str | None, str | None]]
) -> None:
    goal, counted, reason = table[how]
    verdict = next_state(OUTCOMES[how], Tally(), bounds, cancel_requested=False)
    assert (verdict.goal, verdict.reason) == (goal, reason)
    assert verdict.tally == (Tally(**{counted: 1}) if counted else Tally())


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("bounds", [ROOMY, TIGHT], ids=["roomy", "tight"])
def test_a_request_to_cancel_wins_over_all_but_a_real_success(how: How, bounds: Bounds) -> None:
    verdict = next_state(OUTCOMES[how], Tally(1, 1, 1, 1), bounds, cancel_requested=True)
    expected = State.COMPLETED if how is How.COMPLETED else State.CANCELLED
    assert (verdict.goal, verdict.tally) == (expected, Tally(1, 1, 1, 1))


def test_only_failures_count_against_max_attempts() -> None:
    battered = Tally(failures=0, losses=3, interruptions=3, snoozes=50)
    verdict = next_state(failed("boom"), battered, Bounds(2, 9, 9), cancel_requested=False)
    assert verdict.goal is State.RETRYING
    assert next_state(failed("boom"), verdict.tally, Bounds(2, 9, 9), False).goal is State.DEAD


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (completed(), False),
        (completed("1"), True),
        (completed(exit_code=0), True),
        (completed(tail="done"), True),
        (interrupted(), True),
        (snoozed(1), True),
    ],
)
def test_history_keeps_every_run_but_a_silent_success(outcome: Outcome, says: bool) -> None:
    assert outcome.says_something is says
