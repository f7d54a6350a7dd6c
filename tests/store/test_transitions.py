"""A job in each state and each verb tried on it: the new state, or a refusal without a trace."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from svcq.errors import NotFound, Refused, WrongState
from svcq.jobs import State, completed, failed
from svcq.policy import Options, said_fields
from svcq.store import Report
from tests.store.conftest import Desk


def held(desk: Desk) -> int:
    return desk.add(hold=True)


def blocked(desk: Desk) -> int:
    return desk.add(after=desk.add(hold=True))


def scheduled(desk: Desk) -> int:
    return desk.add(delay=60)


def pending(desk: Desk) -> int:
    return desk.add()


def processing(desk: Desk) -> int:
    desk.add()
    return desk.claim()[0].id


def retrying(desk: Desk) -> int:
    desk.add()
    return desk.run(failed("boom"))


def completed_(desk: Desk) -> int:
    desk.add()
    return desk.run()


def dead(desk: Desk) -> int:
    desk.add(max_attempts=1)
    return desk.run(failed("boom"))


def cancelled(desk: Desk) -> int:
    job = desk.add()
    desk.store.cancel(job)
    return job


MAKE: dict[State, Callable[[Desk], int]] = {
    State.HELD: held,
    State.BLOCKED: blocked,
    State.SCHEDULED: scheduled,
    State.PENDING: pending,
    State.PROCESSING: processing,
    State.RETRYING: retrying,
    State.COMPLETED: completed_,
    State.DEAD: dead,
    State.CANCELLED: cancelled,
}


def edit(desk: Desk, job: int) -> State:
    return desk.edit(job, priority=3)


def claim(desk: Desk, job: int) -> State:
    if desk.claimed() != [job]:
        raise WrongState(f"Job {job} cannot be claimed.")
    return State.PROCESSING


def finish(desk: Desk, job: int) -> State:
    (state,) = desk.store.finish([Report(job, 1, desk.worker, completed("1"))])
    if state is None:
        raise WrongState(f"Job {job} is not held.")
    return state


VERBS: dict[str, Callable[[Desk, int], State | None]] = {
    "cancel": lambda desk, job: desk.store.cancel(job),
    "hold": lambda desk, job: desk.store.hold(job),
    "release": lambda desk, job: desk.store.release(job),
    "retry": lambda desk, job: desk.store.retry(job),
    "move": lambda desk, job: desk.store.move(job),
    "edit": edit,
    "claim": claim,
    "finish": finish,
}

REFUSED = None
# A row for each state, a column for each verb, in the order of VERBS.
H, B, S, P = State.HELD, State.BLOCKED, State.SCHEDULED, State.PENDING
X, R, C, D, K = State.PROCESSING, State.RETRYING, State.COMPLETED, State.DEAD, State.CANCELLED
no = REFUSED
EXPECTED: dict[State, tuple[State | None, ...]] = {
    #  cancel hold release retry move edit claim finish
    H: (K, no, P, no, no, H, no, no),
    B: (K, H, no, no, no, B, no, no),
    S: (K, H, no, no, no, S, no, no),
    P: (K, H, no, no, P, P, X, no),
    X: (X, no, no, no, no, no, no, C),
    R: (K, H, no, P, no, R, no, no),
    C: (no, no, no, P, no, no, no, no),
    D: (no, no, no, P, no, no, no, no),
    K: (no, no, no, P, no, no, no, no),
}
CASES = [
    pytest.param(state, verb, EXPECTED[state][i], id=f"{verb} {state}")
    for state, (i, verb) in product(State, enumerate(VERBS))
]


@pytest.mark.parametrize(("state", "verb", "expected"), CASES)
def test_each_verb_on_each_state(
    desk: Desk, state: State, verb: str, expected: State | None
) -> None:
    job = MAKE[state](desk)
    assert desk.state(job) is state
    before, shown = desk.told(), desk.get(job)
    if expected is REFUSED:
        with pytest.raises(WrongState, match=rf"Job {job} .*\."):
            VERBS[verb](desk, job)
        assert desk.get(job) == shown
        assert desk.told() == before
    else:
        answer = VERBS[verb](desk, job)
        assert answer in (expected, None)
        assert desk.state(job) is expected
        counts, last = desk.told()
        assert counts[expected] == before[0][expected] + (expected is not state)
        assert sum(counts.values()) == sum(before[0].values())
        assert last > before[1]


@pytest.mark.parametrize("verb", ["cancel", "hold", "release", "retry", "move", "edit"])
@pytest.mark.parametrize("job", [0, 17, -1, 2**62])
def test_a_job_that_does_not_exist_is_named(desk: Desk, verb: str, job: int) -> None:
    with pytest.raises(NotFound, match=rf"no job {job}:"):
        VERBS[verb](desk, job)


@pytest.mark.parametrize("state", State)
def test_a_refusal_names_the_state_of_the_job(desk: Desk, state: State) -> None:
    job = MAKE[state](desk)
    refused = []
    for verb in ("cancel", "hold", "release", "retry", "move", "edit"):
        if EXPECTED[state][list(VERBS).index(verb)] is REFUSED:
            with pytest.raises(Refused, match=rf"Job {job} is (already )?{state}") as caught:
                VERBS[verb](desk, job)
            refused.append(str(caught.value))
    assert all(sentence.endswith(".") for sentence in refused)


def test_a_held_job_can_be_edited_into_any_time_and_stays_held(desk: Desk) -> None:
    job = desk.add(hold=True)
    options = Options(delay=30)
    assert desk.store.edit(job, desk.new(delay=30), said_fields(options)) is State.HELD
    assert desk.store.release(job) is State.SCHEDULED
