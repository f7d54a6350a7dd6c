"""What a worker and its store say to each other. All of it happens in the thread of the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from svcq.errors import StoreError, SvcqError
from svcq.jobs import Claim, interrupted
from svcq.store import Claimer, Declared, Orders, Report, Store
from svcq.worker import spool
from svcq.worker.conditions import Conditions


class Said(NamedTuple):
    """What one turn has for the store."""

    reports: list[Report]
    told: list[tuple[Claim, float, str | None]]
    declared: Mapping[str, Declared]
    known: set[tuple[int, int]]
    free: int
    ahead: Mapping[str, int]  # by kind: how many short ones could be taken beyond the free slots


class Heard(NamedTuple):
    """What the store answers."""

    claims: list[Claim]
    environments: Mapping[int, Mapping[str, str]]
    orders: Orders
    declared: Collection[str]  # of the tasks that were told of, those it knows now


class Talk:
    def __init__(
        self,
        store: Store,
        spool_folder: Path,
        claimer: Claimer,
        conditions: Conditions,
        on_condition: Callable[[], None],
    ) -> None:
        self._store = store
        self._spool = spool_folder
        self._claimer = claimer
        self._conditions = conditions
        self._on_condition = on_condition
        self._mark: tuple[int, int] | None = None
        self._due: int | None = None
        self.kept: list[Report] = []  # what neither store nor disk would take
        self.doubtful = False  # a fault may have hidden from us what we hold

    def speak(self, said: Said) -> Heard:
        """All that this turn has to say to the store, and to ask of it."""
        store = self._store
        with suppress(StoreError):  # progress is worth a try, and no more
            for claim, fraction, note in said.told:
                store.progress(claim, fraction, note)
        declared = self._declare(said.declared)  # before the ends of runs, which depend on it
        if said.reports or self.kept:
            self._report(said.reports)
        spool.deliver(self._spool, store)
        if self.doubtful:
            self._give_back_unknown(said)
        orders = store.orders(self._claimer.worker)
        self._mark = store.write_mark()
        claims: list[Claim] = []
        if orders.state == "running":
            claims = self._claim(said.free, said.ahead)
        self._due = store.next_due() if len(claims) < said.free else None
        wanted = {claim.env for claim in claims if claim.env is not None}
        kept = {env: store.environment(env) for env in wanted}
        environments = {env: json.loads(text) for env, text in kept.items() if text is not None}
        return Heard(claims, environments, orders, declared)

    def _declare(self, tasks: Mapping[str, Declared]) -> Collection[str]:
        with suppress(StoreError):  # what has ended is still to be reported
            self._store.declare(tasks)
            return tasks.keys()
        return ()

    def _claim(self, free: int, ahead: Mapping[str, int]) -> list[Claim]:
        self._conditions.forget()
        claims = self._store.claim(self._claimer, free) if free > 0 else []
        self._conditions.look(self._on_condition)
        if len(claims) < free:
            return claims
        for kind, room in ahead.items():
            if room > 0:
                claims += self._store.claim(self._claimer._replace(kinds=(kind,)), room)
        return claims

    def _give_back_unknown(self, said: Said) -> None:
        """What the store says we hold, and we do not know of: a fault came between the two."""
        worker = self._claimer.worker
        known = said.known | {(report.job, report.run) for report in said.reports}
        unknown = [held for held in self._store.runs_of(worker) if held not in known]
        outcome = interrupted("it was claimed, but a fault of the store kept it from starting")
        self._store.finish([Report(job, run, worker, outcome) for job, run in unknown])
        self.doubtful = False

    def _report(self, reports: Sequence[Report]) -> None:
        """Write outcomes; where the store cannot take them, keep them on the disk, or in memory."""
        reports = [*self.kept, *reports]
        try:
            self._store.finish(reports)
            self.kept = []
        except SvcqError:
            try:
                spool.save(self._spool, reports)
                self.kept = []
            except OSError:
                self.kept = reports
            raise

    def quiet(self) -> float:
        """For how many seconds nothing happens by itself, as far as the last turn has told."""
        if self._due is None:
            return float("inf")
        return max((self._due - self._store.engine.clock()) / 1000, 0)

    def news(self) -> bool:
        """Whether something is due, or a writer that could not ring has written."""
        self._conditions.look(self._on_condition)
        with suppress(SvcqError):
            # What is due next was asked with the mark, and changes with it.
            late = self._due is not None and self._due <= self._store.engine.clock()
            return self.doubtful or late or self._store.write_mark() != self._mark
        return True
