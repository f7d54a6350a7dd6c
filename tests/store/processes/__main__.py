"""Programs for test_processes.py. Each is called with a home, a gate, a seed and its own arguments,
and prints one JSON value: what it did, for the test to add up.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from svcq.config import load
from svcq.errors import Refused
from svcq.jobs import Claim, State, completed, lost
from svcq.policy import NewJob, Options, make_plan
from svcq.store import Claimer, Filter, Report, Store, WorkerInfo, open_store
from tests.helpers import eventually
from tests.store.tables import look


def main() -> None:
    program, home, gate, seed, *arguments = sys.argv[1:]
    _wait_at(Path(gate))
    store = open_store(load(Path(home)))
    answer = PROGRAMS[program](store, random.Random(int(seed)), *arguments)
    store.close()
    print(json.dumps(answer))


def _wait_at(gate: Path) -> None:
    """Python starts slowly: who is first would otherwise have done all before the others come."""
    (gate / f"here {os.getpid()}").touch()
    eventually((gate / "open").exists, timeout=60, interval=0.0001)


def drain(store: Store, chance: random.Random) -> list[tuple[int, int]]:
    """Claim and finish until nothing is left; every (job, run) that was ours."""
    worker = _register(store)
    done: list[tuple[int, int]] = []
    while store.counts()["pending"]:
        claims = store.claim(Claimer(worker), chance.randint(1, 20))
        assert store.finish(_reports(claims)) == [State.COMPLETED] * len(claims)
        done += [(claim.id, claim.run) for claim in claims]
    return done


def drain_limited(store: Store, chance: random.Random, trace: str) -> int:
    """The same, with each run's start and end written to a file that all share.

    A start is written after the claim and an end before the finish, so that runs which overlap in
    the file also overlapped in the store.
    """
    worker = _register(store)
    file = os.open(trace, os.O_WRONLY | os.O_APPEND)
    done = 0

    def write(what: str, claim: Claim) -> None:
        key = json.loads(claim.args or "")[0][0]
        line = f"{time.monotonic_ns()} {what} {claim.queue} {key}\n"
        os.write(file, line.encode())

    while store.counts()["pending"]:
        claims = store.claim(Claimer(worker), chance.randint(1, 4))
        for claim in claims:
            write("start", claim)
        for _ in range(chance.randint(0, 3)):
            store.counts()  # so that a run takes a while
        for claim in claims:
            write("end", claim)
        store.finish(_reports(claims))
        done += len(claims)
    return done


def watch_limits(store: Store, _: random.Random, queue: str, limit: str, keys: str) -> list[Any]:
    """Look again and again, each time at one consistent view; what was above its limit."""
    limits = json.loads(keys)
    above: list[Any] = []
    left = True
    while left:
        rows = look(
            store,
            "SELECT specs.queue, specs.key, jobs.state FROM jobs JOIN specs USING (id) "
            "WHERE jobs.finished_at IS NULL",
        )
        left = bool(rows)
        running = [(queue, key) for queue, key, state in rows if state == "processing"]
        if sum(where == queue for where, _ in running) > int(limit):
            above.append([queue, running])
        above += [
            [key, running]
            for key, most in limits.items()
            if sum(which == key for _, which in running) > most
        ]
    return above


def produce(store: Store, chance: random.Random, rounds: str) -> dict[str, list[int]]:
    """Add jobs in every way there is; the ids that were said to be new, and those that were not."""
    new: list[int] = []
    old: list[int] = []
    for n in range(int(rounds)):
        wanted = chance.choice(
            [
                [_job()],
                [_job() for _ in range(chance.randint(2, 30))],
                [_job(unique_key=chance.choice("abc"))],
                [_job(name=f"{os.getpid()} {n}"), _job(unique_key=chance.choice("abc"))],
            ]
        )
        for added in store.enqueue(wanted):
            (new if added.created else old).append(added.id)
    return {"new": new, "old": old}


def consume(store: Store, chance: random.Random, produced: str) -> int:
    """Claim and finish until the producers have ended and nothing is left."""
    worker = _register(store)
    done = 0
    while not Path(produced).exists() or store.counts()["pending"]:
        claims = store.claim(Claimer(worker), chance.randint(1, 10))
        store.finish(_reports(claims))
        done += len(claims)
    return done


def run_until_killed(store: Store, chance: random.Random, log: str) -> None:
    """Add, claim and finish; what the store has acknowledged is on the disk before it goes on."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(what: str, *numbers: int) -> None:
        os.write(file, (json.dumps([what, *numbers]) + "\n").encode())
        os.fsync(file)

    worker = _register(store)
    note("worker", worker)
    while True:
        for added in store.enqueue([_job() for _ in range(chance.randint(1, 5))]):
            note("added", added.id)
        claims = store.claim(Claimer(worker), chance.randint(1, 5))
        for claim in claims:
            note("claimed", claim.id, claim.run)
        store.finish(_reports(claims))
        for claim in claims:
            note("finished", claim.id, claim.run)


def finish_late(store: Store, _: random.Random, reports: str) -> list[tuple[int, str | None]]:
    """Report the given runs as completed, one by one; what became of each."""
    return [
        (job, store.finish([Report(job, run, worker, completed())])[0])
        for job, run, worker in json.loads(reports)
    ]


def rescue_each(store: Store, _: random.Random, workers: str) -> list[int]:
    """Take back what the given workers hold, one by one; the jobs that were still theirs."""
    return [job for worker in json.loads(workers) for job in store.rescue(worker, lost("gone"))]


def hammer(store: Store, chance: random.Random, rounds: str) -> int:
    """Every kind of verb in a random order. A refusal is an answer; any other error ends it."""
    worker = _register(store)
    mine = [added.id for added in store.enqueue([_job()])]

    def add() -> None:
        mine.extend(added.id for added in store.enqueue([_job(), _job(concurrency_key="k")]))

    def run() -> None:
        store.finish(_reports(store.claim(Claimer(worker), 3)))

    verbs = (
        add,
        run,
        run,
        lambda: store.hold(chance.choice(mine)),
        lambda: store.release(chance.choice(mine)),
        lambda: store.cancel(chance.choice(mine)),
        lambda: store.retry(chance.choice(mine)),
        lambda: store.move(chance.choice(mine)),
        lambda: store.set_queue("default", {"weight": chance.randint(1, 9)}),
        lambda: store.heartbeat(worker),
        lambda: store.list(Filter(limit=20)),
        store.counts,
        store.stats,
        store.expire,
        store.promote,
        store.cleanup,
    )
    refused = 0
    for _ in range(int(rounds)):
        try:
            chance.choice(verbs)()
        except Refused:
            refused += 1
    return refused


def add_one(store: Store, _: random.Random) -> int:
    """Opening the store made it, or found it made by another a moment ago."""
    return store.enqueue([_job()])[0].id


def _job(**options: Any) -> NewJob:
    return NewJob(make_plan(Options(**options), default_queue="default"), "work", "[[],{}]")


def _register(store: Store) -> int:
    return store.register(WorkerInfo("here", os.getpid(), slots=20))


def _reports(claims: list[Claim]) -> list[Report]:
    return [Report(claim.id, claim.run, claim.worker, completed()) for claim in claims]


PROGRAMS = {
    program.__name__: program
    for program in (
        drain,
        drain_limited,
        watch_limits,
        produce,
        consume,
        run_until_killed,
        finish_late,
        rescue_each,
        hammer,
        add_one,
    )
}

if __name__ == "__main__":
    main()
