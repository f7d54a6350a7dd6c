"""The worker's loop, with faults at its weak points."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.errors import StoreBusy
from svcq.store import Store
from svcq.worker.command import CommandRun
from svcq.worker.loop import Settings, Worker
from tests.helpers import eventually


class FaultyStore(Store):
    """A store whose named verb fails the first time, after what it did was written."""

    fails = ""

    def environment(self, env: int) -> str | None:
        self._fail("environment")
        return super().environment(env)

    def next_due(self) -> int | None:
        self._fail("next_due")
        return super().next_due()

    def _fail(self, verb: str) -> None:
        if self.fails == verb:
            self.fails = ""
            raise StoreBusy("It is locked by a test.")


@pytest.mark.parametrize("verb", ["environment", "next_due"])
def test_what_was_claimed_when_the_store_failed_goes_back(
    client: Client, tmp_path: Path, verb: str
) -> None:
    job = client.command(f"echo x >> {tmp_path}/runs", env={"PATH": os.environ["PATH"]})
    said: list[str] = []
    worker = Worker(client.config, Settings(say=said.append))
    faulty = FaultyStore(worker._store.engine, client.config)
    faulty.fails = verb
    worker._store = faulty
    asyncio.run(_until_ended(worker, client, job.id))
    ended = client.get(job)
    assert (ended.state, ended.failures, ended.interruptions) == ("completed", 0, 1)
    assert said[0] == "It is locked by a test."
    assert [line.partition(",")[0] for line in said[1:]] == ["The store answers again"]
    assert (tmp_path / "runs").read_text() == "x\n"
    assert client.workers() == []


def test_a_worker_that_was_asked_to_end_sleeps_while_its_last_job_runs(client: Client) -> None:
    job = client.command("sleep 2", env={"PATH": os.environ["PATH"]})
    worker = Worker(client.config, Settings())
    turns = 0
    turn = worker._turn

    async def counted() -> None:
        nonlocal turns
        turns += 1
        await turn()

    async def drained() -> None:
        running = asyncio.ensure_future(worker.run())
        await asyncio.to_thread(eventually, lambda: client.get(job).state == "processing", 30)
        worker._turn = counted  # type: ignore[method-assign]
        client.store.drain(worker.id)
        await running

    asyncio.run(drained())
    assert client.get(job).state == "completed"
    assert 0 < turns < 20


async def _until_ended(worker: Worker, client: Client, job: int) -> None:
    running = asyncio.ensure_future(worker.run())
    try:
        await asyncio.to_thread(client.wait, job, 30)
    finally:
        worker.drain()
        await running


def test_a_mistake_of_ours_fails_the_job_and_ends_its_processes(
    client: Client, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    job = client.command(f"echo $$ > {pid}; exec sleep 600", max_attempts=1)
    worker = Worker(client.config, Settings())

    def break_it(run: CommandRun) -> None:
        begin(run)
        run._look = _mistake  # type: ignore[method-assign]

    begin = worker._begin
    worker._begin = break_it  # type: ignore[method-assign]
    asyncio.run(_until_ended(worker, client, job.id))
    ended = client.get(job)
    assert ended.state == "dead"
    assert ended.error == "svcq itself failed: ZeroDivisionError: a mistake"
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def _mistake() -> None:
    raise ZeroDivisionError("a mistake")
