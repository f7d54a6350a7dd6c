"""Claiming and finishing in batches, against a bare loop and against other queues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter

from svcq.jobs import completed
from svcq.store import Claimer, Report, Store, WorkerInfo, open_store
from tests.bench.bare import Bare
from tests.bench.figures import Figure, Scale, alternate, rate_figure
from tests.bench.peers import peers
from tests.bench.places import config_in, new_job

BATCH = 100
DONE = completed()


def claim_finish(scale: Scale, folder: Path) -> Iterator[Figure]:
    n = scale.drained
    beside = config_in(folder, "drain-bare")
    with (
        closing(open_store(config_in(folder, "drain-ours"))) as store,
        closing(open_store(beside)) as refill,
        closing(Bare(Path(beside.store))) as bare,
    ):
        worker = store.register(WorkerInfo("bench", 1))
        refill.enqueue([new_job()] * BATCH)
        lane = bare.lane()
        sides = [
            lambda: drain_store(store, worker, n),
            lambda: drain_bare(bare, refill, lane, n),
        ]
        installed = list(peers(folder)) if scale.peers else []
        sides += [lambda peer=peer: peer.drain(n // 4) for peer in installed]
        ours, other, *theirs = alternate(scale.rounds, *sides)
    what = f"claim and finish, in batches of {BATCH}"
    yield rate_figure("claim_finish", what, ours, other, "bare loop", 0.6)
    for peer, rates in zip(installed, theirs, strict=True):
        yield rate_figure("claim_finish", "the same, against a peer", ours, rates, peer.name, 1.0)


def drain_store(store: Store, worker: int, n: int) -> float:
    store.enqueue([new_job()] * n)
    claimer = Claimer(worker)
    done = 0
    start = perf_counter()
    while claims := store.claim(claimer, BATCH):
        store.finish([Report.of(one, DONE) for one in claims])
        done += len(claims)
    return done / (perf_counter() - start)


def drain_bare(bare: Bare, refill: Store, lane: int, n: int) -> float:
    refill.enqueue([new_job()] * n)
    done = 0
    start = perf_counter()
    while runs := bare.claim(lane, 1, BATCH):
        bare.finish(1, runs)
        done += len(runs)
    return done / (perf_counter() - start)
