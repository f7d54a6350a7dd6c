"""What a worker finds out about its machine, when, and for whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from svcq.client import Client
from svcq.host.unknown import Unknown
from svcq.library import Worker as LibraryWorker
from svcq.worker.conditions import Conditions
from svcq.worker.loop import Settings, Worker
from tests.helpers import eventually


class Machine:
    """Facts that a test changes."""

    def __init__(self, **facts: float) -> None:
        self.facts = facts
        self.asked: list[str] = []

    def __call__(self, name: str) -> float | Unknown:
        self.asked.append(name)
        return self.facts.get(name, Unknown("a test does not say"))


def test_it_is_looked_at_when_a_claim_has_asked() -> None:
    machine, woken = Machine(mains=True), threading.Event()
    conditions = Conditions(machine)
    conditions.look(woken.set)
    assert machine.asked == []
    assert "ac-power" not in conditions
    conditions.look(woken.set)
    assert woken.wait(30)
    assert "ac-power" in conditions
    conditions.look(woken.set)
    assert machine.asked == ["mains"], "an answer is good for a while"


def test_facts_are_asked_once_for_all_conditions() -> None:
    machine, woken = Machine(load=1.0), threading.Event()
    conditions = Conditions(machine)
    assert [text in conditions for text in ("load<0.5", "load<2", "unmetered")] == [False] * 3
    conditions.look(woken.set)
    assert woken.wait(30)
    assert sorted(machine.asked) == ["load", "unmetered"]
    holding = [text for text in ("load<0.5", "load<2", "unmetered") if text in conditions]
    assert holding == ["load<2"]


def test_an_answer_grows_old() -> None:
    machine, woken = Machine(mains=True), threading.Event()
    conditions = Conditions(machine, every=0.05)
    assert "ac-power" not in conditions
    conditions.look(woken.set)
    assert woken.wait(30)
    eventually(lambda: "ac-power" not in conditions)
    conditions.forget()
    conditions.look(woken.set)
    assert machine.asked == ["mains"], "nobody asks for it any more"


def test_a_job_starts_when_its_condition_begins_to_hold(client: Client) -> None:
    machine = Machine(mains=False, battery=43)
    job = client.command("true", when="ac-power")
    worker = Worker(client.config, Settings())
    worker._conditions = Conditions(machine, every=0.2)

    async def watch() -> None:
        await _until(lambda: machine.asked.count("mains") >= 3)
        assert client.get(job).state == "pending"
        machine.facts["mains"] = True
        await asyncio.to_thread(client.wait, job, 30)

    _with(worker, watch)
    assert client.get(job).state == "completed"


def test_others_do_not_wait_for_a_fact_that_takes_its_time(client: Client) -> None:
    answer = threading.Event()

    def slow(_: str) -> float:
        answer.wait(60)
        return 0.0

    waits = client.command("true", when="load<2", priority=9)
    plain = [client.command("true") for _ in range(5)]
    worker = Worker(client.config, Settings())
    worker._conditions = Conditions(slow)

    async def watch() -> None:
        for job in plain:
            await asyncio.to_thread(client.wait, job, 30)
        assert client.get(waits).state == "pending"
        answer.set()
        await asyncio.to_thread(client.wait, waits, 30)

    _with(worker, watch)
    assert {client.get(job).state for job in (*plain, waits)} == {"completed"}


def test_nothing_is_asked_without_a_job_that_waits_for_it(client: Client) -> None:
    machine = Machine(load=0.0)
    worker = Worker(client.config, Settings())
    worker._conditions = Conditions(machine, every=0.01)
    first = client.command("true", when="load<2")

    async def watch() -> None:
        await asyncio.to_thread(client.wait, first, 30)
        before = len(machine.asked)
        client.command("true", when="unmetered", hold=True)
        for _ in range(3):
            await asyncio.to_thread(client.wait, client.command("true"), 30)
        assert len(machine.asked) <= before + 1, "one look may have been under way"

    _with(worker, watch)
    assert set(machine.asked) == {"load"}


def test_a_worker_inside_a_program_obeys_conditions(client: Client) -> None:
    machine = Machine(mains=False)
    client.add([client.new_task("nobody.knows", [], {}, when="ac-power", max_attempts=1)])
    worker = LibraryWorker(client=client, say=lambda _: None)
    worker._conditions = Conditions(machine, every=0.2)
    with worker:
        eventually(lambda: machine.asked.count("mains") >= 2, 30)
        assert client.counts()["pending"] == 1
        machine.facts["mains"] = True
        eventually(lambda: client.counts()["dead"] == 1, 30)


def _with(worker: Worker, watch: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        running = asyncio.ensure_future(worker.run())
        try:
            await watch()
        finally:
            worker.drain()
            await running

    asyncio.run(main())


async def _until(holds: Callable[[], bool]) -> None:
    await asyncio.to_thread(eventually, holds, 30)
