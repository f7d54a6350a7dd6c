"""Workers written by hand: fetch, tell, end; and what happens when they fall silent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import svcq
from svcq.client import Client
from svcq.config import load
from svcq.errors import InvalidInput, NotHeld
from svcq.jobs import State
from tests.clients import assert_sentence, run_python
from tests.store.conftest import Clock


@svcq.task
def greet(name: str, *, loud: bool = False) -> None: ...


@pytest.fixture
def clock() -> Clock:
    return Clock()


EVERY_ENGINE = True


@pytest.fixture
def open_hand(
    tmp_path: Path, clock: Clock, stores: Callable[[], dict[str, str]]
) -> Iterator[Callable[[], Client]]:
    """Clients on one store, each a worker of its own, with one clock."""
    opened: list[Client] = []
    config = load(tmp_path / "home", stores())

    def open_it() -> Client:
        opened.append(Client(config=config, clock=clock))
        return opened[-1]

    yield open_it
    for client in opened:
        client.close()


@pytest.fixture
def hand(open_hand: Callable[[], Client]) -> Client:
    return open_hand()


@pytest.fixture
def other(open_hand: Callable[[], Client]) -> Client:
    return open_hand()


@pytest.mark.posix
def test_a_claim_has_what_is_needed_to_run_it(hand: Client) -> None:
    task = hand.enqueue(greet, "Ada", loud=True)
    command = hand.command(["echo", "hi"], name="hello", cwd="/")
    first, second = hand.fetch(n=5)
    assert (first.id, first.task, first.call) == (task.id, greet.name, (["Ada"], {"loud": True}))
    assert (second.id, second.name, second.cwd) == (command.id, "hello", "/")
    assert json.loads(second.command or "") == ["echo", "hi"]
    assert hand.get(task).state is State.PROCESSING
    assert hand.fetch() == []


def test_only_the_wanted_queues_are_fetched_from(hand: Client) -> None:
    for queue in "abc":
        hand.command("true", queue=queue)
    assert [claim.queue for claim in hand.fetch("b", 9)] == ["b"]
    assert hand.fetch([], 9) == []
    assert sorted(claim.queue for claim in hand.fetch({"a", "c"}, 9)) == ["a", "c"]


def test_a_job_is_completed_with_a_result(hand: Client) -> None:
    hand.command("true")
    (claim,) = hand.fetch()
    job = hand.complete(claim, {"size": [1, 2]})
    assert (job.state, job.result, job.attempts) == (State.COMPLETED, {"size": [1, 2]}, 1)


def test_a_failed_job_is_tried_again_and_is_dead_in_the_end(hand: Client, clock: Clock) -> None:
    hand.command("true", max_attempts=2, jitter=0)
    (claim,) = hand.fetch()
    job = hand.fail(claim, "no luck")
    assert (job.state, job.failures, job.error) == (State.RETRYING, 1, "no luck")
    assert hand.fetch() == []
    clock.advance(2)
    (claim,) = hand.fetch()
    assert (claim.run, claim.failures) == (2, 1)
    job = hand.fail(claim, "again")
    assert (job.state, job.reason, job.error) == (State.DEAD, "out of attempts", "again")


def test_a_failure_may_name_its_delay(hand: Client, clock: Clock) -> None:
    hand.command("true")
    (claim,) = hand.fetch()
    assert hand.fail(claim, "busy", delay="1h").state is State.RETRYING
    clock.advance(3599)
    assert hand.fetch() == []
    clock.advance(1)
    assert len(hand.fetch()) == 1


def test_a_rejected_job_is_dead_at_once(hand: Client) -> None:
    hand.command("true", max_attempts=9)
    (claim,) = hand.fetch()
    job = hand.reject(claim, "no such file")
    assert (job.state, job.reason, job.error) == (State.DEAD, "rejected", "no such file")


def test_a_snoozed_job_has_not_failed(hand: Client, clock: Clock) -> None:
    hand.command("true", max_attempts=1)
    for _ in range(3):
        (claim,) = hand.fetch()
        job = hand.snooze(claim, 30)
        assert (job.state, job.failures) == (State.SCHEDULED, 0)
        clock.advance(30)
    assert hand.get(job).snoozes == 3


def test_progress_is_seen(hand: Client) -> None:
    job = hand.command("true")
    (claim,) = hand.fetch()
    hand.progress(claim, 0.4, "encoding")
    shown = hand.get(job)
    assert (shown.progress, shown.progress_note) == (0.4, "encoding")
    hand.progress(claim, 1)
    assert hand.get(job).progress == 1


@pytest.mark.parametrize("fraction", [float("nan"), -0.1, 40, "half", None, True], ids=repr)
def test_progress_that_is_none(hand: Client, fraction: Any) -> None:
    hand.command("true")
    (claim,) = hand.fetch()
    with pytest.raises(InvalidInput) as caught:
        hand.progress(claim, fraction)
    assert_sentence(caught.value, fraction)


def test_reports_that_cannot_be_kept_leave_the_job_held(hand: Client) -> None:
    job = hand.command("true")
    (claim,) = hand.fetch()
    wrong: list[Callable[[], object]] = [
        lambda: hand.complete(claim, object()),
        lambda: hand.complete(claim, float("nan")),
        lambda: hand.fail(claim, ValueError("x")),  # type: ignore[arg-type]
        lambda: hand.fail(claim, "x", delay=-1),
        lambda: hand.reject(claim, None),  # type: ignore[arg-type]
        lambda: hand.snooze(claim, "soon"),
        lambda: hand.progress(claim, 0.5, b"raw"),  # type: ignore[arg-type]
    ]
    for report in wrong:
        with pytest.raises(InvalidInput) as caught:
            report()
        assert_sentence(caught.value)
    assert hand.get(job).state is State.PROCESSING
    assert hand.complete(claim).state is State.COMPLETED


def test_odd_characters_are_replaced(hand: Client) -> None:
    hand.command("true")
    (claim,) = hand.fetch()
    hand.progress(claim, 0.5, "nul \0")
    assert hand.get(claim.id).progress_note == "nul �"
    assert hand.fail(claim, "surrogate \udce9").error == "surrogate ?"


def test_a_heartbeat_keeps_the_lease(hand: Client, other: Client, clock: Clock) -> None:
    hand.command("true")
    (claim,) = hand.fetch(lease="1m")
    for _ in range(5):
        clock.advance(50)
        hand.heartbeat()
        assert other.fetch() == []
    assert hand.complete(claim).state is State.COMPLETED


def test_when_a_lease_lapses_another_gets_the_job(
    hand: Client, other: Client, clock: Clock
) -> None:
    job = hand.command("true", max_attempts=1)
    (late,) = hand.fetch(lease=10)
    clock.advance(11)
    (claim,) = other.fetch()
    assert (claim.id, claim.run) == (job.id, 2)
    shown, runs, seen = hand.get(job), hand.runs(job), hand.follow().cursor
    assert (shown.losses, shown.failures, runs[0].how) == (1, 0, "lost")
    late_reports: list[Callable[[], object]] = [
        lambda: hand.complete(late, "too late"),
        lambda: hand.fail(late, "too late"),
        lambda: hand.reject(late, "too late"),
        lambda: hand.snooze(late, 5),
        lambda: hand.progress(late, 0.9, "too late"),
    ]
    for report in late_reports:
        with pytest.raises(NotHeld) as caught:
            report()
        assert_sentence(caught.value, job.id)
    assert (hand.get(job), hand.runs(job), hand.follow().cursor) == (shown, runs, seen)
    assert other.complete(claim, "in time").result == "in time"
    with pytest.raises(NotHeld):
        other.complete(claim)


def test_a_worker_that_lost_its_lease_starts_anew(
    hand: Client, other: Client, clock: Clock
) -> None:
    hand.command("true")
    hand.fetch(lease=10)
    clock.advance(11)
    (claim,) = other.fetch(lease=10)
    clock.advance(11)
    (again,) = hand.fetch(lease=10)
    assert (again.id, again.run) == (claim.id, 3)
    assert again.worker not in {claim.worker, 1}
    assert hand.complete(again).losses == 2


def test_a_job_that_keeps_losing_its_worker_is_dead(hand: Client, clock: Clock) -> None:
    job = hand.command("true", max_losses=1)
    for _ in range(2):
        assert len(hand.fetch(lease=10)) == 1
        clock.advance(11)
    assert hand.fetch() == []
    assert (hand.get(job).state, hand.get(job).reason) == (State.DEAD, "lost too often")


def test_a_cancelled_run_is_told_when_it_reports(hand: Client) -> None:
    job = hand.command("true")
    (claim,) = hand.fetch()
    hand.cancel(job)
    assert hand.fail(claim, "stopped").state is State.CANCELLED


def test_the_worker_is_listed(hand: Client) -> None:
    hand.command("true")
    hand.fetch()
    (worker,) = hand.workers()
    assert (worker.running, worker.version) == (1, svcq.__version__)


FORKED = """
import os, sys, svcq
client = svcq.Client(store=sys.argv[1])
for _ in range(2):
    client.command("true")
mine, = client.fetch()
child = os.fork()
if not child:
    own, = client.fetch()
    assert own.worker != mine.worker, own
    client.complete(own, "child")
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
client.complete(mine, "parent")
"""


@pytest.mark.posix
def test_a_forked_process_is_a_worker_of_its_own(client: Client) -> None:
    ended = run_python(FORKED, client.config.store)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [job.result for job in client.list()] == ["child", "parent"]
    assert len({worker.pid for worker in client.workers()}) == 2
