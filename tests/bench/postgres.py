"""PostgreSQL as the store, against bare loops over psycopg and against other queues on it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import perf_counter

from svcq import Client
from svcq.config import Config, load
from svcq.store import WorkerInfo, open_store
from tests.bench.bare_postgres import One, Same
from tests.bench.drain import BATCH, drain_store
from tests.bench.figures import Figure, Scale, alternate, rate_figure
from tests.bench.noop import asynchronous, tenth_of_a_second
from tests.bench.peers import graphile_worker, pgqueuer
from tests.bench.places import call, work
from tests.bench.worker import TASKS, drain, new_task
from tests.lifecycle.homes import QUICK, Home
from tests.postgres import Server

# On a disk, and open to the server's user: the workplace is not, and /tmp may be memory.
_PLACE = Path("/var/tmp")
# As it comes, but for memory that suits a small machine; the store's own settings do the rest.
_SETTINGS = {
    "fsync": "on", "full_page_writes": "on", "autovacuum": "on", "shared_buffers": "256MB",
    "max_wal_size": "2GB", "deadlock_timeout": "1s",
}  # fmt: skip
_SLOTS = 8


def pg_enqueue(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Rounds are many and short, as with SQLite."""
    n = scale.singles // 10
    with (
        database() as server,
        Client(config=store_in(folder, "ours", server.database())) as client,
        closing(same_in(folder, server.database())) as same,
        closing(One(server.database())) as one,
    ):
        client.enqueue(work, **call(0))
        lane = same.lane()
        ours, whole, single = alternate(
            30 * scale.rounds,
            lambda: rate(n, lambda i: client.enqueue(work, **call(i))),
            lambda: rate(n, lambda i: same.enqueue_one(lane, i)),
            lambda: rate(n, one.insert),
        )
    what = "one durable enqueue"
    yield rate_figure("pg_enqueue", what, ours, whole, "bare, the same rows", 0.7)
    yield rate_figure("pg_enqueue", what, ours, single, "bare, a single row", 0.7)


def pg_many(scale: Scale, folder: Path) -> Iterator[Figure]:
    n = scale.bulk
    with (
        database() as server,
        Client(config=store_in(folder, "ours", server.database())) as client,
        closing(same_in(folder, server.database())) as same,
    ):
        lane = same.lane()

        def by_client() -> float:
            calls = [call(i) for i in range(n)]
            start = perf_counter()
            client.enqueue_many(work, calls)
            return n / (perf_counter() - start)

        def by_copy() -> float:
            start = perf_counter()
            same.enqueue_many(lane, n)
            return n / (perf_counter() - start)

        sides: list[Callable[[], float]] = [by_client, by_copy]
        peer = pgqueuer(server.database()) if scale.peers else None
        if peer is not None:
            sides.append(lambda: peer.run(n)[0])
        ours, copy, *rest = alternate(scale.rounds, *sides)
    what = f"{n:,} by enqueue_many"
    yield rate_figure("pg_many", what, ours, copy, "bare COPY", 0.4)
    for rates in rest:
        yield rate_figure("pg_many", what, ours, rates, "PgQueuer", 1.0)


def pg_claim_finish(scale: Scale, folder: Path) -> Iterator[Figure]:
    n = scale.drained
    with (
        database() as server,
        closing(open_store(store_in(folder, "ours", server.database()))) as store,
        closing(same_in(folder, server.database())) as same,
        closing(One(server.database())) as one,
    ):
        worker = store.register(WorkerInfo("bench", 1))
        lane = same.lane()
        ours, whole, single = alternate(
            scale.rounds,
            lambda: drain_store(store, worker, n),
            lambda: drain_same(same, lane, n),
            lambda: drain_one(one, n),
        )
    what = f"claim and finish, in batches of {BATCH}"
    yield rate_figure("pg_claim_finish", what, ours, whole, "bare, the same rows", 0.5)
    yield rate_figure("pg_claim_finish", what, ours, single, "bare, a single table", 0.5)


def pg_tasks(scale: Scale, folder: Path) -> Iterator[Figure]:
    n = scale.tasks
    with (
        database() as server,
        closing(One(server.database())) as one,
        home_on(folder, "tasks", server.database()) as home,
    ):
        # PgQueuer takes as many at once, too: both fetch and report by so many.
        home.worker(*TASKS, "--slots", 500)

        def by_worker() -> float:
            return drain(home, [new_task(home, asynchronous.name)] * n)

        by_worker()  # the first imports the tasks and learns how long they take
        sides: list[Callable[[], float]] = [by_worker]
        targets: list[tuple[str, float]] = []
        if scale.peers:
            address = server.database()
            for peer, target in ((pgqueuer(address), 2.0), (graphile_worker(address), 4.0)):
                if peer is not None:
                    sides.append(lambda peer=peer: peer.run(n)[1])  # type: ignore[misc]
                    targets.append((peer.name, target))
        if not targets:
            # Where nobody else is there, it is compared with a loop that does no more than it must.
            sides.append(lambda: drain_one(one, n))
            targets.append(("bare, a single table", 0.1))
        ours, *rest = alternate(scale.rounds, *sides)
    for (name, target), rates in zip(targets, rest, strict=True):
        yield rate_figure("pg_tasks", "async no-op tasks, one worker", ours, rates, name, target)


def pg_machines(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Two homes are two machines to the store, for which a database is all they share."""
    n = max(scale.tasks // 10, 20)
    name = tenth_of_a_second.name
    with database() as server, ExitStack() as stack:
        shared = server.database()
        alone = stack.enter_context(home_on(folder, "alone", server.database()))
        first = stack.enter_context(home_on(folder, "first", shared))
        second = stack.enter_context(home_on(folder, "second", shared))
        for home in (alone, first, second):
            home.worker(*TASKS, "--slots", _SLOTS)
        sides = [
            lambda: drain(first, [new_task(first, name)] * n),
            lambda: drain(alone, [new_task(alone, name)] * n),
        ]
        for side in sides:
            side()
        both, single = alternate(max(scale.rounds // 3, 1), *sides)
    what = f"tasks of 100 ms, {_SLOTS} slots each, two machines"
    yield rate_figure("pg_machines", what, both, single, "one machine", 1.6)


# What they are made of


@contextmanager
def database(**settings: str) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="svcq-pg-", dir=_PLACE))
    server = Server(folder, {**_SETTINGS, **settings})
    try:
        server.make()
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def store_in(folder: Path, name: str, address: str) -> Config:
    return load(folder / name, {"SVCQ_STORE": address})


def same_in(folder: Path, address: str) -> Same:
    """A bare connection to a store that has one lane."""
    with Client(
        config=store_in(folder, f"bare-{address.rpartition('/')[2][:6]}", address)
    ) as client:
        client.enqueue(work, **call(0))
    return Same(address)


@contextmanager
def home_on(folder: Path, name: str, address: str) -> Iterator[Home]:
    home = Home(folder / name, f'store = "{address}"\n{QUICK}')
    try:
        yield home
    finally:
        home.close()


def rate(n: int, run: Callable[[int], object]) -> float:
    start = perf_counter()
    for i in range(n):
        run(i)
    return n / (perf_counter() - start)


def drain_same(same: Same, lane: int, n: int) -> float:
    same.enqueue_many(lane, n)
    done = 0
    start = perf_counter()
    while runs := same.claim(lane, 1, BATCH):
        same.finish(1, runs)
        done += len(runs)
    return done / (perf_counter() - start)


def drain_one(one: One, n: int) -> float:
    one.fill(n)
    start = perf_counter()
    return one.drain(BATCH) / (perf_counter() - start)
