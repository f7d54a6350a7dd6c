"""Adding jobs through the client, against bare loops that write the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter

from svcq import Client
from tests.bench.bare import Bare
from tests.bench.figures import Figure, Scale, alternate, rate_figure
from tests.bench.places import call, config_in, work


def enqueue_one(scale: Scale, folder: Path) -> Iterator[Figure]:
    # Rounds are many and short: the pace of the disk, and of a machine in company, drifts at once.
    n = scale.singles // 10
    with both(folder, "one") as (client, bare, lane):

        def by_client() -> float:
            start = perf_counter()
            for i in range(n):
                client.enqueue(work, to="someone@example.org", subject="hello", n=i)
            return n / (perf_counter() - start)

        def by_bare_loop() -> float:
            start = perf_counter()
            for i in range(n):
                bare.enqueue_one(lane, i)
            return n / (perf_counter() - start)

        ours, other = alternate(30 * scale.rounds, by_client, by_bare_loop)
    yield rate_figure("enqueue_one", "one durable enqueue", ours, other, "bare loop", 0.8)


def enqueue_many(scale: Scale, folder: Path) -> Iterator[Figure]:
    n = scale.bulk
    with both(folder, "many") as (client, bare, lane):

        def by_client() -> float:
            calls = [call(i) for i in range(n)]
            start = perf_counter()
            client.enqueue_many(work, calls)
            return n / (perf_counter() - start)

        def by_executemany() -> float:
            rows = bare.rows_for(lane, n)
            start = perf_counter()
            bare.enqueue_many(*rows)
            return n / (perf_counter() - start)

        ours, other = alternate(scale.rounds, by_client, by_executemany)
    what = f"{n:,} by enqueue_many"
    yield rate_figure("enqueue_many", what, ours, other, "bare executemany", 0.4)


@contextmanager
def both(folder: Path, name: str) -> Iterator[tuple[Client, Bare, int]]:
    """A client, and a bare connection to a store of its own that has one lane."""
    beside = config_in(folder, f"{name}-bare")
    with Client(config=beside) as client:
        client.enqueue(work, **call(0))
    with (
        Client(config=config_in(folder, f"{name}-ours")) as client,
        closing(Bare(Path(beside.store))) as bare,
    ):
        client.enqueue(work, **call(0))
        yield client, bare, bare.lane()
