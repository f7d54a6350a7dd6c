"""Real processes on one store: nothing twice, nothing lost, every limit held, no error."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from svcq.config import Config
from svcq.jobs import State, lost
from svcq.policy import NewJob, Options, make_plan
from svcq.store import Claimer, Store, WorkerInfo, open_store
from svcq.store.sqlite import SqliteEngine
from tests.helpers import eventually
from tests.store.tables import COUNTS
from tests.store.tables import look as rows

ROOT = Path(__file__).parents[2]
AT_ONCE = 6


class Processes:
    """Programs of tests.store.processes on one store."""

    def __init__(self, config: Config, gate: Path) -> None:
        self._home = config.home
        self._environment = {**os.environ, "SVCQ_STORE": config.store}
        self._gate = gate
        self._started: list[subprocess.Popen[str]] = []

    def start(self, program: str, *arguments: object, seed: int = 0) -> subprocess.Popen[str]:
        given = [program, *map(str, (self._home, self._gate, seed, *arguments))]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.processes", *given],
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def start_many(self, program: str, *arguments: object) -> list[subprocess.Popen[str]]:
        return [self.start(program, *arguments, seed=seed) for seed in range(AT_ONCE)]

    def let_go(self) -> None:
        """All that were started begin now; later ones at once."""
        waiting = {f"here {process.pid}" for process in self._started}
        eventually(lambda: waiting <= {file.name for file in self._gate.iterdir()}, timeout=60)
        (self._gate / "open").touch()

    def kill(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture
def store(config: Config) -> Iterator[Store]:
    with closing(open_store(config)) as store:
        yield store


@pytest.fixture
def processes(config: Config, tmp_path: Path) -> Iterator[Processes]:
    gate = tmp_path / "gate"
    gate.mkdir()
    processes = Processes(config, gate)
    yield processes
    processes.kill()


def answer(process: subprocess.Popen[str]) -> Any:
    """What the program printed; its traceback is the failure where it had one."""
    out, trouble = process.communicate(timeout=120)
    assert process.returncode == 0, trouble
    return json.loads(out)


def new_job(args: str = "[[],{}]", **options: Any) -> NewJob:
    return NewJob(make_plan(Options(**options), default_queue="default"), "work", args)


def check_counters(store: Store) -> None:
    """The counters are a count of the rows, and no key has a run too many or too few."""
    assert sorted(rows(store, COUNTS)) == sorted(
        rows(store, "SELECT queue, state, task, count(*) FROM jobs JOIN specs USING (id) "
                    "GROUP BY 1, 2, 3")
    )  # fmt: skip
    running = rows(
        store,
        "SELECT key, count(*) FROM jobs JOIN specs USING (id) "
        "WHERE state = 'processing' AND key <> '' GROUP BY key",
    )
    assert sorted(rows(store, "SELECT key, running FROM keys WHERE running <> 0")) == sorted(
        running
    )


def told(store: Store) -> dict[int, list[str]]:
    kinds: dict[int, list[str]] = defaultdict(list)
    for job, kind in rows(store, "SELECT job, kind FROM changes ORDER BY seq"):
        kinds[job].append(kind)
    return kinds


def test_no_job_is_claimed_twice(store: Store, processes: Processes) -> None:
    ids = [added.id for added in store.enqueue([new_job()] * 3000)]
    workers = processes.start_many("drain")
    processes.let_go()
    done = [tuple(run) for worker in workers for run in answer(worker)]
    assert sorted(done) == [(job, 1) for job in ids]
    assert store.counts()["completed"] == 3000
    check_counters(store)
    assert told(store) == {job: ["pending", "processing", "completed"] for job in ids}


def test_limits_hold_at_every_instant(store: Store, processes: Processes, tmp_path: Path) -> None:
    limits = {"one": 1, "three": 3}
    store.set_queue("narrow", {"concurrency": 2})
    jobs = [new_job('[["-"],{}]', queue="narrow") for _ in range(100)]
    for queue in ("narrow", "wide"):
        for key, limit in limits.items():
            options = {"queue": queue, "concurrency_key": key, "concurrency": limit}
            jobs += [new_job(json.dumps([[key], {}]), **options) for _ in range(60)]
    random.Random(1).shuffle(jobs)
    store.enqueue(jobs)
    trace = tmp_path / "trace"
    trace.touch()
    watcher = processes.start("watch_limits", "narrow", 2, json.dumps(limits))
    workers = processes.start_many("drain_limited", trace)
    processes.let_go()
    assert sum(answer(worker) for worker in workers) == len(jobs)
    assert answer(watcher) == []
    most = highest_numbers(trace.read_text())
    assert most["narrow"] <= 2
    assert most["one"] == 1
    assert most["three"] <= 3
    check_counters(store)
    assert rows(store, "SELECT * FROM keys") == []


def highest_numbers(trace: str) -> Counter[str]:
    """How many runs there were at once, at most, of each queue and key."""
    now: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for _, what, *names in in_order(trace):
        for name in names:
            now[name] += 1 if what == "start" else -1
            most[name] = max(most[name], now[name])
    return most


def in_order(trace: str) -> list[list[str]]:
    return sorted(map(str.split, trace.splitlines()), key=lambda words: int(words[0]))


def test_producers_beside_consumers_lose_nothing(
    store: Store, processes: Processes, tmp_path: Path
) -> None:
    produced = tmp_path / "produced"
    consumers = [processes.start("consume", produced, seed=seed) for seed in range(2)]
    producers = processes.start_many("produce", 60)
    processes.let_go()
    while any(producer.poll() is None for producer in producers):
        assert doubled_keys(store) == []
    added = [answer(producer) for producer in producers]
    produced.touch()
    ended = sum(answer(consumer) for consumer in consumers)
    new = [job for one in added for job in one["new"]]
    assert len(new) == len(set(new)) == ended == store.counts()["completed"]
    assert sorted(new) == [job for (job,) in rows(store, "SELECT id FROM jobs ORDER BY id")]
    assert {job for one in added for job in one["old"]} <= set(new)
    check_counters(store)
    assert rows(store, "SELECT * FROM unique_keys") == []


def doubled_keys(store: Store) -> list[Any]:
    return rows(
        store,
        "SELECT unique_key, count(*) FROM jobs JOIN specs USING (id) "
        "WHERE finished_at IS NULL AND unique_key IS NOT NULL GROUP BY 1 HAVING count(*) > 1",
    )


def test_what_was_acknowledged_survives_kill_9(
    store: Store, processes: Processes, tmp_path: Path
) -> None:
    chance = random.Random(9)
    processes.let_go()
    for n in range(30):
        log = tmp_path / f"log {n}"
        process = processes.start("run_until_killed", log, seed=n)
        wait_for_lines(log, chance.randint(1, 60))
        process.kill()
        process.communicate()
        check_acknowledged(store, read_log(log))
    check_counters(store)
    if isinstance(store.engine, SqliteEngine):
        assert rows(store, "PRAGMA integrity_check") == [("ok",)]


def wait_for_lines(log: Path, n: int) -> None:
    eventually(lambda: len(read_log(log)) >= n, timeout=60, interval=0.001)


def read_log(log: Path) -> list[list[Any]]:
    """Its whole lines: the last one may be cut off by the kill, or still be under way."""
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def check_acknowledged(store: Store, log: list[list[Any]]) -> None:
    """Then the lost worker's jobs go back, so that the next one finds the store as it should be."""
    found = {
        job: (state, run) for job, state, run in rows(store, "SELECT id, state, run FROM jobs")
    }
    for what, job, *run in log:
        if what == "worker":
            continue
        state, last_run = found[job]
        if what == "finished":
            assert (state, last_run) == ("completed", run[0])
        elif what == "claimed":
            assert state in ("processing", "completed")
            assert last_run == run[0]
    for worker in store.workers():
        store.rescue(worker.id, lost("killed"))
    assert store.counts()["processing"] == 0


def test_a_rescue_or_a_late_finish_wins_never_both(
    store: Store, processes: Processes, tmp_path: Path
) -> None:
    store.enqueue([new_job()] * 150)
    claims = []
    for pid in range(150):
        claims += store.claim(Claimer(store.register(WorkerInfo("here", pid))), 1)
    runs = [(claim.id, claim.run, claim.worker) for claim in claims]
    finisher = processes.start("finish_late", json.dumps(runs))
    rescuer = processes.start("rescue_each", json.dumps([claim.worker for claim in claims]))
    processes.let_go()
    finished = {job for job, state in answer(finisher) if state is not None}
    rescued = answer(rescuer)
    assert sorted([*finished, *rescued]) == [claim.id for claim in claims]
    for claim in claims:
        expected = State.COMPLETED if claim.id in finished else State.PENDING
        assert store.state(claim.id) is expected
    check_counters(store)


def test_a_busy_store_is_never_an_error(store: Store, processes: Processes) -> None:
    hammers = processes.start_many("hammer", 250)
    processes.let_go()
    for hammer in hammers:
        answer(hammer)
    check_counters(store)


def test_processes_that_make_the_same_store_at_once_share_it(
    config: Config, processes: Processes
) -> None:
    makers = processes.start_many("add_one")
    processes.let_go()
    ids = [answer(maker) for maker in makers]
    assert sorted(ids) == list(range(1, AT_ONCE + 1))
    with closing(open_store(config)) as store:
        assert store.counts()["pending"] == AT_ONCE
        check_counters(store)
    assert [file.name for file in config.home.iterdir() if file.name.startswith(".")] == []
