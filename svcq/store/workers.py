"""Workers: who claims, who is alive, and taking back what a lost one held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svcq.config import Config
from svcq.errors import NotFound
from svcq.jobs import Outcome
from svcq.store.engine import Row, Transaction
from svcq.store.finish import Report, finish
from svcq.store.ledger import Ledger
from svcq.times import iso
from svcq.tuples import NamedTuple


class WorkerInfo(NamedTuple):
    """A worker as it presents itself. `boot` and `born` tell a reused pid apart."""

    host: str
    pid: int
    boot: str | None = None
    born: str | None = None
    slots: int = 1
    version: str = ""
    lease_ms: int | None = None  # of a worker written by hand: lost when silent for longer


class Worker(NamedTuple):
    id: int
    host: str
    pid: int
    boot: str | None
    born: str | None
    program: int
    version: str
    slots: int
    state: str
    started_at: int
    beat: int
    lease_until: int | None
    heard_at: int | None  # this and the next only where machines share a store
    silence_ms: int | None  # for how long it may be silent
    running: int

    def is_silent(self, now: int) -> bool:
        """Whether it is past its lease, by the clock of the store: for people, who may be wrong."""
        if self.heard_at is None or self.silence_ms is None:
            return False  # nobody listens for it
        return now - self.heard_at > self.silence_ms

    def as_json(self) -> dict[str, Any]:
        """A worker as every face of svcq prints it."""
        return {
            "id": self.id,
            "host": self.host,
            "pid": self.pid,
            "started_at": iso(self.started_at),
            "slots": self.slots,
            "running": self.running,
            "version": self.version,
            "state": self.state,
            "heard_at": iso(self.heard_at),
        }


class Orders(NamedTuple):
    """What a worker is asked for."""

    state: str  # running, draining, stopping, or ended when it was given up as lost
    cancel: tuple[int, ...]  # jobs it is to stop
    pause: tuple[int, ...]  # jobs that are to stand still


def orders(look: Callable[..., list[list[Row]]], worker: int) -> Orders:
    """`look` is an engine's."""
    state, cancel, pause = look(
        ("worker_state", (worker,)), ("cancel_requests", (worker,)), ("paused_runs", (worker,))
    )
    return Orders(
        str(state[0][0]) if state else "ended",
        tuple(job for job, _ in cancel),
        tuple(job for (job,) in pause),
    )


def register(tx: Transaction, info: WorkerInfo, program: int) -> int:
    row = tx.row(
        "add_worker",
        host=info.host,
        pid=info.pid,
        boot=info.boot,
        born=info.born,
        program=program,
        version=info.version,
        slots=info.slots,
        now=tx.now,
        lease_until=None if info.lease_ms is None else tx.now + info.lease_ms,
    )
    assert row is not None
    return int(row[0])


def beat(tx: Transaction, worker: int, lease_ms: int | None) -> bool:
    until = None if lease_ms is None else tx.now + lease_ms
    return bool(tx.run("beat", id=worker, lease_until=until))


def may_claim(worker: int, asked: Row | None) -> bool:
    """Whether it was not asked to end. Nobody would ever take jobs back from one that is not
    there, so that is refused."""
    if asked is None or asked[0] == "ended":
        raise NotFound(
            f"Worker {worker} is not registered, or was given up as lost: register it anew."
        )
    return bool(asked[0] == "running")


def workers(tx: Transaction, *, ended: bool) -> list[Worker]:
    return [Worker._make(row) for row in tx.rows("workers", ended=int(ended))]


def give_up(tx: Transaction, worker: int, beat: int) -> bool:
    """Whether a worker that was silent at this number is ended, and will hear so."""
    if tx.run("give_up_worker", id=worker, beat=beat, now=tx.now):
        return True
    row = tx.first("worker_asked", (worker,))
    return row is not None and row[0] == "ended"


def rescue(
    tx: Transaction, ledger: Ledger, worker: int, outcome: Outcome, config: Config
) -> list[int]:
    """Take back what a worker held that will not report again; its process trees are dead."""
    reports = [
        Report(job, run, worker, outcome) for job, run in tx.rows("runs_of_worker", worker=worker)
    ]
    states, _ = finish(tx, ledger, reports, config)
    tx.run("end_worker", id=worker, now=tx.now)
    return [report.job for report, state in zip(reports, states, strict=True) if state is not None]
