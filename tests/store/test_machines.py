"""What machines that share a store know of each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from svcq.jobs import lost
from svcq.store import Store, WorkerInfo, machines
from svcq.store.machines import Door
from svcq.times import now_ms
from tests.store.conftest import Clock, Desk

LOST = lost("nobody heard of it")


def beat_of(store: Store, worker: int) -> int:
    return next(one.beat for one in store.workers(ended=True) if one.id == worker)


def test_a_pulse_raises_the_number(desk: Desk) -> None:
    before = beat_of(desk.store, desk.worker)
    assert desk.store.pulse(desk.worker, 60_000)
    assert beat_of(desk.store, desk.worker) == before + 1
    (worker,) = desk.store.workers()
    if desk.store.engine.shared:
        assert worker.heard_at is not None
        assert worker.silence_ms == 60_000
    else:
        assert (worker.heard_at, worker.silence_ms) == (None, None)


def test_a_worker_that_was_given_up_is_told_at_its_next_pulse(desk: Desk) -> None:
    job = desk.add()
    (claim,) = desk.claim()
    assert desk.store.rescue_silent(desk.worker, beat_of(desk.store, desk.worker), LOST) == [job]
    assert desk.state(job) == "pending"
    assert not desk.store.pulse(desk.worker, 60_000)
    assert desk.end(claim) is None
    assert desk.store.workers() == []


def test_a_worker_that_was_heard_of_meanwhile_keeps_its_jobs(desk: Desk) -> None:
    job = desk.add()
    desk.claim()
    seen = beat_of(desk.store, desk.worker)
    desk.store.pulse(desk.worker, 60_000)
    told = desk.told()
    assert desk.store.rescue_silent(desk.worker, seen, LOST) is None
    assert (desk.state(job), desk.told()) == ("processing", told)
    assert desk.store.pulse(desk.worker, 60_000)


def test_what_two_take_back_goes_back_once(desk: Desk) -> None:
    job = desk.add()
    desk.claim()
    beat = beat_of(desk.store, desk.worker)
    assert desk.store.rescue_silent(desk.worker, beat, LOST) == [job]
    assert desk.store.rescue_silent(desk.worker, beat, LOST) == []
    assert desk.get(job).losses == 1


def test_what_an_ended_worker_still_holds_is_found(desk: Desk) -> None:
    job = desk.add()
    desk.claim()
    assert desk.store.stranded() == []
    desk.store.leave(desk.worker)
    ((worker, beat),) = desk.store.stranded()
    assert worker == desk.worker
    assert desk.store.rescue_silent(worker, beat, LOST) == [job]
    assert desk.store.stranded() == []


def test_changes_up_to_a_number(desk: Desk) -> None:
    for _ in range(4):
        desk.add()
    first, second, third, _ = desk.store.changes(0)
    assert desk.store.changes(first.seq, until=third.seq) == [second, third]
    assert desk.store.changes(first.seq, 1, until=third.seq) == [second]


def test_nobody_writes_between_two_transactions(desk: Desk) -> None:
    desk.add()
    assert desk.store.writers() == frozenset()


def test_whoever_writes_is_told_of(open_again: Callable[[], Store], clock: Clock) -> None:
    store, other = open_again(), open_again()
    desk = Desk(store, clock)
    if not store.engine.shared:
        assert store.writers() == frozenset()  # numbers are seen in the order of their commits
        return
    with store.engine.write(durable=True, alone=False) as tx:
        tx.run("beat", id=desk.worker, lease_until=None)
        assert len(other.writers()) == 1
    assert other.writers() == frozenset()


DOOR = Door("10.0.0.1", 8443, "render1.example", "PEM", "secret")


def test_services_are_known_where_a_store_is_shared(desk: Desk) -> None:
    engine = desk.store.engine
    desk.clock.now = now_ms()  # signs of life are by the server's own clock
    machines.note(engine, "render1", "/home/a", 7)
    machines.note(engine, "render2", "/home/b", 8)
    machines.offer(engine, "render1", "/home/a", DOOR)
    if not engine.shared:
        assert desk.store.services() == []
        return
    first, second = desk.store.services()
    assert (first.host, first.home, first.pid, first.runs, first.door) == (
        "render1", "/home/a", 7, True, DOOR._replace(token=""),
    )  # fmt: skip
    assert desk.store.token_of(first) == "secret"
    assert (second.host, second.door) == ("render2", None)
    assert "secret" not in str(first.as_json())
    assert desk.store.clocks().elsewhere == ("render1", "render2")
    machines.leave(engine, "render2", "/home/b", 9)  # another one of that home
    assert len(desk.store.services()) == 2
    machines.leave(engine, "render2", "/home/b", 8)
    desk.clock.advance(60)
    (first,) = desk.store.services()
    assert not first.runs
    assert desk.store.clocks().elsewhere == ()
    desk.clock.advance(100_000)
    assert desk.store.services() == []


@pytest.mark.parametrize("lease", [None, 1000])
def test_workers_written_by_hand_are_no_concern_of_a_pulse(desk: Desk, lease: int | None) -> None:
    info = WorkerInfo(host="there", pid=2, lease_ms=lease)
    worker = desk.store.register(info)
    assert desk.store.pulse(worker, 60_000)
    (found,) = (one for one in desk.store.workers() if one.id == worker)
    assert (found.lease_until is None) == (lease is None)


@pytest.mark.parametrize(
    ("heard_at", "silence_ms", "silent"),
    [(None, None, False), (1_000, None, False), (1_000, 60_000, False), (1_000, 8_999, True)],
)
def test_who_is_silent(
    desk: Desk, heard_at: int | None, silence_ms: int | None, silent: bool
) -> None:
    (worker,) = desk.store.workers()
    asked = worker._replace(heard_at=heard_at, silence_ms=silence_ms)
    assert asked.is_silent(10_000) is silent
