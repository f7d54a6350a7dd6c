"""A worker as a process: how much it gets through, how soon it starts, what it costs when idle."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from svcq.policy import NewJob
from tests.bench.figures import Figure, Scale, alternate, limit_figure, rate_figure
from tests.bench.noop import asynchronous, plain
from tests.bench.peers import huey_consumer, task_spooler
from tests.helpers import eventually
from tests.lifecycle.homes import Home

PATIENCE = 120
TASKS = ("--import", "tests.bench.noop")
# The process itself says when it began; to start `date` is part of what is measured.
SAY_WHEN = ["date", "+%s%N"]


def worker_tasks(scale: Scale, folder: Path) -> Iterator[Figure]:
    n = scale.tasks
    with (
        home_in(folder, "async") as for_async,
        home_in(folder, "plain") as for_plain,
    ):
        for_async.worker(*TASKS, "--slots", 100)
        for_plain.worker(*TASKS, "--slots", 2)
        sides: list[Callable[[], float]] = [
            lambda: drain(for_async, [new_task(for_async, asynchronous.name)] * n),
            lambda: drain(for_plain, [new_task(for_plain, plain.name)] * n),
        ]
        for side in sides:
            side()  # the first of them imports the tasks and learns how long they take
        huey = huey_consumer(folder) if scale.peers else None
        if huey is not None:
            sides.append(lambda: huey.drain(n))
        of_async, of_plain, *rest = alternate(scale.rounds, *sides)
    # Where nobody else is there, the two are compared with each other.
    other, name = (rest[0], "Huey") if rest else (of_plain, "plain")
    yield rate_figure("worker_tasks", "async tasks, 100 slots", of_async, other, name, 4.0)
    yield rate_figure("worker_tasks", "plain functions, 2 slots", of_plain, other, name, 2.0)


def worker_commands(scale: Scale, folder: Path) -> Iterator[Figure]:
    n = scale.commands
    with home_in(folder, "commands") as home:
        home.worker("--slots", 2)
        sides = [
            lambda: drain(home, [home.client.new_command(["true"], cwd=str(folder))] * n),
            lambda: xargs(n),
            lambda: queue_and_run(home, n),
        ]
        spoolers = task_spooler(folder) if scale.peers else []
        sides += [partial(spooler.drain, n) for spooler in spoolers]
        drained, other, queued, *spooled = alternate(scale.rounds, *sides)
    what = "commands (true), 2 at a time"
    yield rate_figure("worker_commands", what, drained, other, "xargs -P2", 0.6)
    if spooled:
        of_drain, of_all = spooled
        yield rate_figure("worker_commands", what, drained, of_drain, "task-spooler", 1.0)
        what = "the same, queued one by one meanwhile"
        yield rate_figure("worker_commands", what, queued, of_all, "task-spooler", 1.0)


def worker_latency(scale: Scale, folder: Path) -> Iterator[Figure]:
    """From the return of client.command to the start of the process, the worker asleep before."""
    with home_in(folder, "latency") as home:
        home.worker("--slots", 2)
        waits = sorted(start_wait(home, n) for n in range(scale.waits))
    last = waits[min(int(len(waits) * 0.99), len(waits) - 1)]
    yield limit_figure("worker_latency", "queued to started, median", median(waits), 5, "ms")
    yield limit_figure("worker_latency", "queued to started, 99th percentile", last, 20, "ms")


def worker_idle(scale: Scale, folder: Path) -> Iterator[Figure]:
    with home_in(folder, "idle") as home:
        worker = home.worker(*TASKS, "--slots", 2)
        home.call(plain)
        pids = [worker.pid, *children(worker.pid)]
        eventually(lambda: at_rest(pids), PATIENCE)
        before, began = cpu_seconds(pids), time.perf_counter()
        time.sleep(scale.idle)
        share = (cpu_seconds(pids) - before) / (time.perf_counter() - began)
        memory = sum(map(pss_megabytes, pids))
    yield limit_figure("worker_idle", "processor time when idle", share * 100, 0.5, "% of a core")
    what = f"memory, {len(pids) - 1} runner included"
    yield limit_figure("worker_idle", what, memory, 40, "MB")


def worker_killed(scale: Scale, folder: Path) -> Iterator[Figure]:
    """From kill -9 of a worker to the second start of the job it held."""
    rounds = 2 * scale.rounds
    waits = []
    for n in range(rounds):
        # Each time anew: one whose workers keep dying takes its time to start another.
        with home_in(folder, f"up-{n}") as home:
            home.start("up", "--count", 1, "--slots", 1)
            waits.append(killed_to_restarted(home))
    what = "killed -9 to its job running again, svcq up"
    yield limit_figure("worker_killed", what, max(waits), 1000, "ms at most")
    with home_in(folder, "two") as home:
        waits = []
        home.worker("--slots", 1)
        for _ in range(rounds):
            home.worker("--slots", 1)
            waits.append(killed_to_restarted(home))
    what = "killed -9 to its job running again, two workers"
    yield limit_figure("worker_killed", what, max(waits), 1000, "ms at most")


@contextmanager
def home_in(folder: Path, name: str) -> Iterator[Home]:
    home = Home(folder / name, "")
    try:
        yield home
    finally:
        home.close()


def new_task(home: Home, name: str) -> NewJob:
    return home.client.new_task(name, [], {})


def drain(home: Home, jobs: list[NewJob]) -> float:
    """Jobs a second, from the moment they may start to the end of the last."""
    client = home.client
    client.queue("default", paused=True)
    client.add(jobs)
    return rate(home, len(jobs), lambda: client.resume("default"))


def queue_and_run(home: Home, n: int) -> float:
    """Commands a second, from the first being queued, each durably, to the end of the last."""

    def queue() -> None:
        for _ in range(n):
            home.client.command(["true"], cwd=str(home.work))

    return rate(home, n, queue)


def rate(home: Home, n: int, let_begin: Callable[[], object]) -> float:
    goal = home.client.counts()["completed"] + n
    start = time.perf_counter()
    let_begin()
    while home.client.counts()["completed"] < goal:
        time.sleep(0.005)
        assert time.perf_counter() - start < PATIENCE, home.said()
    return n / (time.perf_counter() - start)


def xargs(n: int) -> float:
    words = "\n".join(map(str, range(n)))
    start = time.perf_counter()
    subprocess.run(["xargs", "-P2", "-n1", "true"], input=words, text=True, check=True)
    return n / (time.perf_counter() - start)


def start_wait(home: Home, n: int) -> float:
    """In milliseconds."""
    time.sleep(0.02 + 0.001 * (n * 7 % 40))  # asleep for a while, and not in step with anything
    job = home.client.command(SAY_WHEN, cwd=str(home.work))
    queued = time.time_ns()
    home.ended(job.id)
    return (int(home.output(job.id)) - queued) / 1e6


def killed_to_restarted(home: Home) -> float:
    """In milliseconds."""
    client = home.client
    job = home.add("date +%s%N; exec sleep 100")
    eventually(lambda: home.log(job).exists() and home.output(job), PATIENCE)
    holder = next(worker for worker in client.workers() if worker.running)
    killed = time.time_ns()
    os.kill(holder.pid, 9)
    eventually(lambda: home.log(job, 2).exists() and home.output(job, 2), PATIENCE)
    client.cancel(job)
    home.ended(job)
    return (int(home.output(job, 2)) - killed) / 1e6


def children(pid: int) -> list[int]:
    """With their children, and so on."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            found += [child, *children(child)]
    return found


def cpu_seconds(pids: list[int]) -> float:
    threads = (thread for pid in pids for thread in Path(f"/proc/{pid}/task").iterdir())
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def at_rest(pids: list[int]) -> bool:
    before = cpu_seconds(pids)
    time.sleep(0.3)
    return cpu_seconds(pids) - before < 0.01


def pss_megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000
