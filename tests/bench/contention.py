"""One durable enqueue while four processes claim and finish as fast as they can."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from svcq import Client
from tests.bench.figures import Figure, Scale
from tests.bench.places import call, config_in, work

ROOT = Path(__file__).parents[2]
PROCESSES = 4
LIMIT = 100
MEAN_PAUSE = 0.002  # between two enqueues: a caller comes at any moment


def contention(scale: Scale, folder: Path) -> Iterator[Figure]:
    for batch in (1, 100):
        config = config_in(folder, f"contention-{batch}")
        with Client(config=config) as client:
            calm = enqueues(client, scale.samples // 4)
            with busy_workers(config.home, batch):
                beside = enqueues(client, scale.samples)
            calm += enqueues(client, scale.samples // 4)
        yield figure(batch, calm, beside)


def figure(batch: int, calm: list[float], beside: list[float]) -> Figure:
    undisturbed = median(calm)
    ranked = sorted(beside)
    p99 = ranked[len(ranked) * 99 // 100]
    ms = [f"{value * 1000:.1f}" for value in (median(ranked), p99, ranked[-1])]
    return Figure(
        "contention",
        f"{len(ranked):,} enqueues beside {PROCESSES} workers, batches of {batch}",
        f"p50 {ms[0]} p99 {ms[1]} max {ms[2]} ms",
        f"undisturbed {undisturbed * 1000:.2f} ms",
        p99 / undisturbed,
        at_most=LIMIT,
    )


def enqueues(client: Client, n: int) -> list[float]:
    """How long each took."""
    dice = random.Random(1)
    times = []
    for i in range(n):
        time.sleep(dice.expovariate(1 / MEAN_PAUSE))
        start = perf_counter()
        client.enqueue(work, **call(i))
        times.append(perf_counter() - start)
    return times


@contextmanager
def busy_workers(home: Path, batch: int) -> Iterator[None]:
    """Four processes at work, which must neither end nor fail meanwhile."""
    command = [sys.executable, "-m", "tests.bench.busy", str(home), str(batch)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(PROCESSES)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"busy\n"
        yield
        assert all(process.poll() is None for process in processes), "a worker has failed"
    finally:
        for process in processes:
            process.kill()
            process.communicate()
