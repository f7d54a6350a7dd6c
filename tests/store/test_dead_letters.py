"""Dead letter queues: a copy of each job that dies."""

from __future__ import annotations

import pytest

from svcq.errors import InvalidInput
from svcq.jobs import Outcome, State, cancelled, completed, failed, lost, rejected
from svcq.store import Filter
from tests.store.conftest import Desk


@pytest.fixture
def letters(desk: Desk) -> Desk:
    desk.store.set_queue("default", {"dead_letter": "letters"})
    return desk


def copies(desk: Desk) -> list[int | None]:
    return [job.copy_of for job in desk.store.list(Filter(queue="letters"))]


@pytest.mark.parametrize(
    ("outcome", "options"),
    [
        (rejected("no"), {}),
        (failed("boom"), {"max_attempts": 1}),
        (lost("gone"), {"on_lost": "dead"}),
    ],
)
def test_a_job_that_dies_leaves_a_copy(
    letters: Desk, outcome: Outcome, options: dict[str, object]
) -> None:
    job = letters.add("send", '[["a"],{}]', priority=3, cwd="/srv", env={"A": "1"}, **options)
    letters.run(outcome)
    (copy,) = letters.store.list(Filter(queue="letters"))
    assert (copy.copy_of, copy.task, copy.args) == (job, "send", ["a"])
    assert (copy.priority, copy.cwd, copy.state) == (3, "/srv", State.PENDING)
    assert letters.state(job) is State.DEAD


def test_an_expired_job_leaves_a_copy(letters: Desk) -> None:
    job = letters.add(expires=5)
    letters.clock.advance(6)
    letters.store.expire()
    assert copies(letters) == [job]


@pytest.mark.parametrize("outcome", [completed(), cancelled(), failed("once")])
def test_a_job_that_does_not_die_leaves_none(letters: Desk, outcome: Outcome) -> None:
    letters.add()
    letters.run(outcome)
    assert copies(letters) == []


def test_a_copy_shares_no_key_name_or_tie_with_its_job(letters: Desk) -> None:
    letters.add(name="n", unique_key="u", concurrency_key="k", max_attempts=1)
    letters.run(failed("boom"))
    (copy,) = letters.store.list(Filter(queue="letters"))
    assert (copy.name, copy.unique_key, copy.concurrency_key) == (None, None, None)


def test_a_copy_that_dies_is_not_copied_again(letters: Desk) -> None:
    letters.store.set_queue("letters", {"dead_letter": "default"})
    letters.store.pause("letters", paused=False)
    letters.add()
    letters.run(rejected("no"))
    letters.run(rejected("still no"))
    assert letters.store.counts()["dead"] == 2
    assert sum(letters.store.counts().values()) == 2


def test_a_new_dead_letter_queue_starts_paused(letters: Desk) -> None:
    assert letters.store.queue("letters").paused
    letters.add()
    letters.run(rejected("no"))
    assert letters.claim() == []


def test_a_queue_that_was_there_before_is_not_paused(desk: Desk) -> None:
    desk.add(queue="letters")
    desk.store.set_queue("default", {"dead_letter": "letters"})
    assert not desk.store.queue("letters").paused


def test_a_queue_cannot_be_its_own_dead_letter_queue(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="'default' cannot be its own dead letter queue"):
        desk.store.set_queue("default", {"dead_letter": "default"})


def test_a_retried_job_that_dies_again_leaves_another_copy(letters: Desk) -> None:
    job = letters.add()
    letters.run(rejected("no"))
    letters.store.retry(job)
    letters.run(rejected("no"))
    assert copies(letters) == [job, job]
