"""Numbers: counters that are exact, percentiles that are near, activity by the minute."""

from __future__ import annotations

import contextlib
import math
import random
from collections import Counter

import pytest

from svcq.errors import SvcqError
from svcq.jobs import Outcome, State, cancelled, completed, failed, interrupted, lost, rejected
from svcq.store import Filter
from svcq.store.ledger import bucket_of, bucket_range
from tests.store.conftest import Desk

OUTCOMES = [completed(), failed("x"), rejected("x"), cancelled(), interrupted(), lost("x")]


def steps(desk: Desk, dice: random.Random) -> None:
    """One random thing that people, programs, workers or time do."""
    some_job = dice.randint(1, 60)
    queue = dice.choice("abc")
    acts = [
        lambda: desk.add(dice.choice(["t", "u"]), queue=queue, unique_key=str(some_job % 9)),
        lambda: desk.add(queue=queue, after=some_job),
        lambda: desk.add(queue=queue, delay=dice.choice([0, 50]), expires=100),
        lambda: desk.add(command='"ls"', queue=queue, concurrency_key=dice.choice("xy")),
        lambda: [desk.end(claim, dice.choice(OUTCOMES)) for claim in desk.claim(3)],
        lambda: desk.claim(1),
        lambda: desk.store.cancel(some_job),
        lambda: desk.store.hold(some_job),
        lambda: desk.store.release(some_job),
        lambda: desk.store.retry(some_job),
        lambda: desk.edit(some_job, queue=queue),
        lambda: desk.store.set_queue(queue, {"dead_letter": "letters", "aging": "5s"}),
        lambda: desk.store.purge([dice.choice([State.DEAD, State.HELD, State.BLOCKED])]),
        lambda: desk.clock.advance(20),
        desk.store.promote,
        desk.store.expire,
    ]
    with contextlib.suppress(SvcqError):
        dice.choice(acts)()


@pytest.mark.parametrize("seed", range(4))
def test_counters_are_exact_after_a_random_walk(desk: Desk, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(400):
        steps(desk, dice)
    jobs = desk.store.list(Filter(limit=10_000))
    states = Counter(job.state.value for job in jobs)
    assert desk.store.counts() == {state.value: states[state.value] for state in State}
    for stats in desk.store.stats():
        here = [job for job in jobs if job.queue == stats.queue]
        assert +Counter(stats.counts) == Counter(job.state.value for job in here)
        by_task = Counter((job.task or "command", job.state.value) for job in here)
        shown = {
            (task, s): n for task, by_state in stats.tasks.items() for s, n in by_state.items()
        }
        assert +Counter(shown) == by_task


def test_every_state_is_counted_even_when_empty(desk: Desk) -> None:
    assert desk.store.counts() == {state.value: 0 for state in State}
    assert desk.store.counts("no such queue") == {state.value: 0 for state in State}


def exact(times: list[float], share: float) -> float:
    return sorted(times)[math.ceil(share * len(times)) - 1]


@pytest.mark.parametrize(
    "draw",
    [
        lambda dice: dice.uniform(0.01, 100),
        lambda dice: dice.expovariate(1 / 5),
        lambda dice: 1.024,
        lambda dice: 1.279,
        lambda dice: dice.choice([0.004, 0.1, 60]),
    ],
    ids=["even", "long tail", "all alike", "all alike, high", "three kinds"],
)
def test_percentiles_are_within_a_fifth_of_exact_ones(desk: Desk, draw: object) -> None:
    dice = random.Random(5)
    times = []
    for _ in range(300):
        times.append(round(draw(dice), 3))  # type: ignore[operator]
        desk.add()
        (claim,) = desk.claim()
        desk.clock.advance(times[-1])
        desk.end(claim)
    (stats,) = desk.store.stats(minutes=1_000_000)
    run = stats.run
    assert run.n == 300
    assert run.mean == pytest.approx(sum(times) / 300, rel=0.001)
    for share, shown in ((0.5, run.p50), (0.95, run.p95), (0.99, run.p99)):
        assert shown == pytest.approx(exact(times, share), rel=0.2, abs=0.001)


def test_waiting_is_measured_from_when_a_job_could_run(desk: Desk) -> None:
    desk.add(delay=100)
    desk.clock.advance(130)
    desk.run()
    (stats,) = desk.store.stats()
    assert stats.wait.n == 1
    assert stats.wait.mean == pytest.approx(30)


def test_only_the_first_start_of_a_job_counts_as_waiting(desk: Desk) -> None:
    desk.add(backoff="fixed", backoff_base=50, jitter=0)
    desk.run(failed("boom"))
    desk.clock.advance(50)
    desk.run()
    (stats,) = desk.store.stats()
    assert (stats.wait.n, stats.wait.mean) == (1, 0)


def test_a_clock_that_was_set_back_breaks_nothing(desk: Desk) -> None:
    desk.add()
    desk.clock.advance(-3600)
    (claim,) = desk.claim()
    desk.clock.advance(-3600)
    assert desk.end(claim) is State.COMPLETED
    desk.clock.advance(7200)
    assert desk.store.stats(minutes=600)[0].run.mean == 0


@pytest.mark.parametrize(
    "options", [{}, {"concurrency_key": "k"}, {"host": "there"}, {"when": "idle>10m"}]
)
def test_the_oldest_is_the_one_that_has_been_ready_longest(
    desk: Desk, options: dict[str, object]
) -> None:
    desk.add(**options)
    desk.clock.advance(90)
    desk.add(priority=1)
    (stats,) = desk.store.stats()
    assert stats.oldest == 90


def test_nothing_pending_has_no_oldest(desk: Desk) -> None:
    desk.add(hold=True)
    assert desk.store.stats()[0].oldest is None


@pytest.mark.parametrize(
    ("outcome", "completed_", "failed_"),
    [(completed(), 1, 0), (failed("x"), 0, 1), (interrupted(), 0, 0), (cancelled(), 0, 0)],
)
def test_what_ended_lately_is_counted_by_how(
    desk: Desk, outcome: Outcome, completed_: int, failed_: int
) -> None:
    desk.add(), desk.add()
    desk.run(outcome)
    (stats,) = desk.store.stats()
    assert (stats.added, stats.completed, stats.failed) == (2, completed_, failed_)
    desk.clock.advance(2 * 3600)
    (stats,) = desk.store.stats()
    assert (stats.added, stats.completed, stats.failed) == (0, 0, 0)


def test_activity_goes_minute_by_minute(desk: Desk) -> None:
    desk.add(), desk.add(queue="mail")
    desk.clock.advance(60)
    desk.run()
    desk.run(failed("boom"))
    first, second, third, fourth = desk.store.activity()
    assert [one.queue for one in (first, second, third, fourth)] == ["default", "mail"] * 2
    assert first.counts == {"added": 1}
    ended = Counter(third.counts) + Counter(fourth.counts)
    assert ended == {"started": 2, "completed": 1, "failed": 1}
    assert (third.minute - first.minute).total_seconds() == 60
    assert (first.wait.n, first.run.n) == (0, 0)
    assert {third.wait.n, fourth.wait.n, third.run.n, fourth.run.n} == {1}
    assert 50 < (third.wait.p50 or 0) < 70
    assert len(desk.store.activity("mail")) == 2
    assert len(desk.store.activity(minutes=1)) == 2


def test_each_time_is_within_its_bucket_and_buckets_meet() -> None:
    values = [*range(5000), *(2**n + d for n in range(12, 50) for d in (-1, 0, 1))]
    for ms in values:
        low, high = bucket_range(bucket_of(ms))
        assert low <= ms < high
        assert high - low <= max(low / 4, 1)
    for bucket in range(200):
        assert bucket_range(bucket)[1] == bucket_range(bucket + 1)[0]
