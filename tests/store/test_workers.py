"""Workers: who claims, who is heard of, and what a lost one held."""

from __future__ import annotations

import pytest

from svcq.errors import NotFound
from svcq.jobs import How, State, interrupted, lost
from svcq.store import Claimer, WorkerInfo
from tests.store.conftest import Desk

GONE = lost("its worker is gone")


def test_a_worker_is_registered_as_it_presents_itself(desk: Desk) -> None:
    info = WorkerInfo("there", 42, boot="b1", born="t1", slots=4, version="1.2")
    number = desk.store.register(info)
    worker = next(w for w in desk.store.workers() if w.id == number)
    assert (worker.host, worker.pid, worker.boot, worker.born) == ("there", 42, "b1", "t1")
    assert (worker.slots, worker.version, worker.state) == (4, "1.2", "running")
    assert (worker.started_at, worker.running, worker.beat) == (desk.clock.now, 0, 0)
    assert worker.program == desk.store.program


def test_a_worker_shows_how_much_it_runs(desk: Desk) -> None:
    for _ in range(3):
        desk.add()
    desk.end(desk.claim(3)[0])
    assert desk.store.workers()[0].running == 2


def test_a_heartbeat_raises_a_number(desk: Desk) -> None:
    desk.store.heartbeat(desk.worker)
    desk.store.heartbeat(desk.worker)
    assert desk.store.workers()[0].beat == 2


def test_a_worker_that_drains_is_shown_so(desk: Desk) -> None:
    desk.store.drain(desk.worker)
    assert desk.store.workers()[0].state == "draining"


@pytest.mark.parametrize("now", [False, True])
def test_a_worker_that_was_asked_to_end_gets_no_more(desk: Desk, *, now: bool) -> None:
    first, _ = desk.add(), desk.add()
    assert [claim.id for claim in desk.claim(1)] == [first]
    desk.store.drain(desk.worker, now=now)
    assert desk.claim(1) == []
    other = desk.store.register(WorkerInfo("there", 42))
    assert len(desk.store.claim(Claimer(other), 5)) == 1


def test_a_heartbeat_of_no_worker_is_refused(desk: Desk) -> None:
    for worker in (99, desk.worker):
        desk.store.rescue(desk.worker, GONE)
        with pytest.raises(NotFound, match=f"Worker {worker} is not registered.*register it anew"):
            desk.store.heartbeat(worker)


def test_what_a_lost_worker_held_goes_back(desk: Desk) -> None:
    jobs = [desk.add(), desk.add(concurrency_key="k")]
    waiting = desk.add()
    desk.claim(2)
    assert desk.store.rescue(desk.worker, GONE) == jobs
    assert [desk.state(job) for job in [*jobs, waiting]] == [State.PENDING] * 3
    assert [desk.get(job).losses for job in jobs] == [1, 1]
    assert [desk.store.runs(job)[0].how for job in jobs] == [How.LOST] * 2
    assert desk.store.workers() == []
    assert [worker.state for worker in desk.store.workers(ended=True)] == ["ended"]


def test_a_worker_that_went_with_its_machine_was_interrupted(desk: Desk) -> None:
    job = desk.add(max_attempts=1, max_losses=0)
    desk.claim()
    desk.store.rescue(desk.worker, interrupted("the machine restarted"))
    shown = desk.get(job)
    assert (shown.state, shown.interruptions, shown.losses) == (State.PENDING, 1, 0)
    assert desk.store.runs(job)[0].error == "the machine restarted"


def test_a_rescue_leaves_the_jobs_of_others(desk: Desk) -> None:
    desk.add(), desk.add()
    other = desk.store.register(WorkerInfo("here", 2))
    desk.claim()
    (held,) = desk.store.claim(Claimer(other), 1)
    desk.store.rescue(desk.worker, GONE)
    assert desk.state(held.id) is State.PROCESSING


def test_a_rescued_job_that_was_to_be_cancelled_is_cancelled(desk: Desk) -> None:
    job = desk.add()
    desk.claim()
    desk.store.cancel(job)
    desk.store.rescue(desk.worker, GONE)
    assert desk.state(job) is State.CANCELLED


def test_a_second_rescue_finds_nothing(desk: Desk) -> None:
    desk.add()
    desk.claim()
    desk.store.rescue(desk.worker, GONE)
    before = desk.told()
    assert desk.store.rescue(desk.worker, GONE) == []
    assert desk.told() == before


def test_a_worker_with_a_lease_is_lost_when_it_is_silent_for_longer(desk: Desk) -> None:
    desk.worker = desk.store.register(WorkerInfo("here", 3, lease_ms=30_000))
    job = desk.add()
    desk.claim()
    for _ in range(3):
        desk.clock.advance(29)
        assert desk.store.rescue_lapsed(GONE) == []
        desk.store.heartbeat(desk.worker, 30_000)
    desk.clock.advance(31)
    assert desk.store.rescue_lapsed(GONE) == [job]
    assert desk.state(job) is State.PENDING


def test_a_worker_without_a_lease_is_not_lost_by_silence(desk: Desk) -> None:
    desk.add()
    desk.claim()
    desk.clock.advance(10**6)
    assert desk.store.rescue_lapsed(GONE) == []


def test_only_the_worker_that_runs_a_job_is_asked_to_stop_it(desk: Desk) -> None:
    job, _ = desk.add(), desk.add()
    (claim, _) = desk.claim(2)
    other = desk.store.register(WorkerInfo("here", 2))
    desk.store.cancel(job)
    assert desk.store.cancel_requests(desk.worker) == [(job, 1)]
    assert desk.store.cancel_requests(other) == []
    desk.end(claim, interrupted())
    assert desk.store.cancel_requests(desk.worker) == []


def test_ended_workers_are_forgotten_with_the_longest_kept_jobs(desk: Desk) -> None:
    desk.store.rescue(desk.worker, GONE)
    desk.clock.advance(31 * 86_400)
    desk.store.cleanup()
    assert desk.store.workers(ended=True) == []
