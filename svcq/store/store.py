"""Every verb of the store, once. Each opens a transaction, calls the function that does the work,
writes the ledger and commits. Nothing else writes the database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property

from svcq import errors
from svcq.config import Config
from svcq.later import Later
from svcq.policy import NewJob
from svcq.states import FINISHED, State
from svcq.store import enqueue as adding
from svcq.store import versions
from svcq.store.engine import Conflict, NotAlone, Transaction
from svcq.store.enqueue import Added
from svcq.store.lanes import default_aging
from svcq.store.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json
    from pathlib import Path
    from typing import Any, Concatenate, ParamSpec, TypeVar

    from svcq.jobs import Change, Claim, Job, Outcome, Run
    from svcq.store import claim as claiming
    from svcq.store import (
        clocks,
        declared,
        ends,
        facts,
        machines,
        moves,
        queues,
        read,
        requests,
        stats,
        tidy,
        transfer,
        turns,
        workers,
    )
    from svcq.store import edit as editing
    from svcq.store import finish as finishing
    from svcq.store.claim import Claimer
    from svcq.store.clocks import Standing
    from svcq.store.declared import Declared
    from svcq.store.engine import Engine
    from svcq.store.facts import Facts
    from svcq.store.finish import Report
    from svcq.store.machines import Service
    from svcq.store.queues import Queue
    from svcq.store.read import Filter
    from svcq.store.stats import Activity, QueueStats, Rollup
    from svcq.store.timetable import Timetable
    from svcq.store.workers import Orders, Worker, WorkerInfo

    Said = ParamSpec("Said")
    Answer = TypeVar("Answer")
else:
    json = Later("json")
    claiming = Later("svcq.store.claim")
    clocks = Later("svcq.store.clocks")
    declared = Later("svcq.store.declared")
    editing = Later("svcq.store.edit")
    ends = Later("svcq.store.ends")
    facts = Later("svcq.store.facts")
    finishing = Later("svcq.store.finish")
    machines = Later("svcq.store.machines")
    moves = Later("svcq.store.moves")
    queues = Later("svcq.store.queues")
    read = Later("svcq.store.read")
    requests = Later("svcq.store.requests")
    stats = Later("svcq.store.stats")
    tidy = Later("svcq.store.tidy")
    transfer = Later("svcq.store.transfer")
    turns = Later("svcq.store.turns")
    workers = Later("svcq.store.workers")

# Between batches of a long clean-up, so that others get their turn at the store.
_BATCH_PAUSE = 0.001
_TRIES = 5
_LAST = (1 << 63) - 1  # the highest number there can be


def again(
    verb: Callable[Concatenate[Store, Said], Answer],
) -> Callable[Concatenate[Store, Said], Answer]:
    """A verb whose transaction a database may end, since another one waits for it: nothing of it
    was written, and it is done anew."""

    def tried(self: Store, /, *args: Said.args, **kwargs: Said.kwargs) -> Answer:
        for _ in range(_TRIES):
            try:
                return verb(self, *args, **kwargs)
            except Conflict:
                continue
        return verb(self, *args, **kwargs)

    tried.__name__, tried.__doc__ = verb.__name__, verb.__doc__
    return tried


class Store:
    def __init__(self, engine: Engine, config: Config) -> None:
        self.engine = engine
        self.config = config
        self.program = versions.newest(versions.schema_folder(engine.name))
        self._aging = default_aging(config)
        self._found_work = False  # the last claim was filled: the next need not look first
        self._ends_tied = False  # the last reports were of jobs that others depend on
        self.bells = engine.bells

    @cached_property
    def _turns(self) -> turns.Turns:
        return turns.Turns()

    @cached_property
    def timetable(self) -> Timetable:
        """The verbs of schedules."""
        from svcq.store.timetable import Timetable

        return Timetable(self.engine, self.config, self._writing)

    def close(self) -> None:
        self.engine.close()

    @contextmanager
    def _writing(
        self, *, durable: bool = True, polite: bool = False, alone: bool = True
    ) -> Iterator[tuple[Transaction, Ledger]]:
        with self.engine.write(durable=durable, polite=polite, alone=alone) as tx:
            ledger = Ledger(tx)
            yield tx, ledger
            ledger.write()
        if ledger.wakes:
            self.engine.ring()

    # Adding

    @again
    def enqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[Added]:
        """Add jobs, all or none; with `connection`, as a part of the caller's transaction."""
        if not jobs:
            return []
        if connection is None:
            if len(jobs) == 1 and jobs[0].plan.plain:
                if (one := adding.add_call(self.engine, jobs[0])) is not None:
                    self.engine.ring()
                    return [one]
                with self.engine.write(durable=True, alone=False) as tx:
                    added = [adding.add_plain(tx, jobs[0], self._aging)]
                self.engine.ring()
                return added
            alone = not all(job.plan.plain for job in jobs)
            with self._writing(alone=alone) as (tx, ledger):
                return adding.add(tx, ledger, jobs, self._aging)
        # On a file nobody can be told before the caller commits: workers see it at their next look.
        plain = all(job.plan.plain for job in jobs)
        with self.engine.borrowed(connection, alone=not plain) as tx:
            ledger = Ledger(tx)
            added = adding.add(tx, ledger, jobs, self._aging)
            ledger.write()
            return added

    @again
    def enqueue_once(
        self, jobs: Sequence[NewJob], request: requests.Request
    ) -> tuple[list[Added], bool]:
        """As enqueue, unless the same request was made before; whether it was."""
        with self._writing() as (tx, ledger):
            return requests.once(tx, request, lambda: adding.add(tx, ledger, jobs, self._aging))

    def holder_of(self, queue: str, unique_key: str) -> int | None:
        """The job that has a unique key."""
        with self.engine.read() as tx:
            row = tx.row("unique_holder", scope=queue, key=unique_key, now=tx.now)
            return None if row is None else int(row[0])

    # Running

    @again
    def claim(self, claimer: Claimer, n: int = 1) -> list[Claim]:
        """Take up to `n` jobs. In a file not durable by itself: a claim that a power cut undoes
        never ran. The crash of a server leaves the workers at work on what they have claimed."""
        if n < 1:
            return []
        if not self._found_work:
            # Without the write lock: whether a claim might find something.
            seen = claiming.view(self.engine.look, claimer, self.engine.clock())
            if not (seen.lanes or seen.late):
                return []
        try:
            return self._claim(claimer, n, alone=False)
        except NotAlone:
            return self._claim(claimer, n, alone=True)

    def _claim(self, claimer: Claimer, n: int, *, alone: bool) -> list[Claim]:
        while True:
            durable = self.engine.shared
            with self._writing(durable=durable, polite=True, alone=alone) as (tx, ledger):
                # The clock as it was last heard will do: whoever is late by less is seen next time.
                seen = claiming.view(tx.all, claimer, self.engine.clock())
                if tx.alone or seen.late:
                    tidy.must_be_alone(tx)
                    if tidy.expire(tx, ledger, self.config) == tidy.BATCH:
                        continue  # there may be more, and none of them may start
                if not workers.may_claim(claimer.worker, seen.asked):
                    return []
                lanes = seen.lanes if not tx.alone else None
                if tx.alone:
                    tidy.promote(tx, ledger)
                    ledger.settle_keys()
                claims = claiming.claim(tx, ledger, claimer, n, self._turns, lanes)
                self._found_work = len(claims) == n
                return claims

    @again
    def finish(self, reports: Sequence[Report]) -> list[State | None]:
        """What became of each job; None for a report that came too late and changed nothing."""
        try:
            return self._finish(reports, alone=self._ends_tied)
        except NotAlone:
            return self._finish(reports, alone=True)

    def _finish(self, reports: Sequence[Report], *, alone: bool) -> list[State | None]:
        with self._writing(polite=True, alone=alone) as (tx, ledger):
            states, self._ends_tied = finishing.finish(tx, ledger, reports, self.config)
            return states

    def progress(self, claim: Claim, fraction: float, note: str | None = None) -> bool:
        """Whether the run still holds the job and the progress was taken."""
        with self._writing(durable=False, polite=True, alone=False) as (tx, ledger):
            taken = tx.run("set_progress", id=claim.id, worker=claim.worker, run=claim.run,
                           progress=fraction, note=note)  # fmt: skip
            if taken:
                ledger.told(claim.id, "progress")
            return bool(taken)

    def environment(self, env: int) -> str | None:
        with self.engine.read() as tx:
            row = tx.row("environment", id=env)
            return None if row is None else row[0]

    def conditions(self) -> list[str]:
        """The conditions jobs wait for, their own and those of their queues."""
        with self.engine.read() as tx:
            return [row[0] for row in tx.rows("conditions")]

    @again
    def declare(self, tasks: Mapping[str, Declared]) -> None:
        """What tasks say of themselves, from one who has imported them; written if it is news."""
        if not tasks:
            return
        with self.engine.read() as tx:
            if not declared.news(tx, tasks):
                return
        with self.engine.write(durable=False, polite=True) as tx:
            declared.declare(tx, declared.news(tx, tasks))

    def declared(self, task: str) -> Declared:
        with self.engine.read() as tx:
            return declared.declared(tx, (task,)).get(task, declared.SILENT)

    def next_due(self) -> int | None:
        """Until when, in Unix milliseconds, nothing happens by itself."""
        with self.engine.read() as tx:
            row = tx.row("next_due", now=tx.now)
            return None if row is None else row[0]

    # Workers

    def register(self, info: WorkerInfo) -> int:
        with self.engine.write(durable=True, alone=False) as tx:
            return workers.register(tx, info, self.program)

    def heartbeat(self, worker: int, lease_ms: int | None = None) -> None:
        """A sign of life; NotFound for a worker that was given up as lost."""
        if not self.beat(worker, lease_ms):
            raise errors.NotFound(
                f"Worker {worker} is not registered, or was given up as lost: register it anew."
            )

    def beat(self, worker: int, lease_ms: int | None = None) -> bool:
        """As heartbeat; False for a worker that was given up as lost."""
        with self.engine.write(durable=False, alone=False) as tx:
            return workers.beat(tx, worker, lease_ms)

    def pulse(self, worker: int, silence_ms: int) -> bool:
        """A sign of life that nobody holds up, and for how long there may be none; False for a
        worker that was given up as lost."""
        return bool(self.engine.at_once("pulse", id=worker, silence_ms=silence_ms))

    def drain(self, worker: int, *, now: bool = False) -> None:
        """Ask a worker to finish what it holds and end; or to end now."""
        with self.engine.write(durable=True, alone=False) as tx:
            state = "stopping" if now else "draining"
            if not tx.run("set_worker_state", id=worker, state=state):
                raise errors.NotFound(
                    f"There is no worker {worker} that runs: svcq worker list shows those that do."
                )
        self.engine.ring()

    def orders(self, worker: int) -> Orders:
        return workers.orders(self.engine.look, worker)

    def workers(self, *, ended: bool = False) -> list[Worker]:
        with self.engine.read() as tx:
            return workers.workers(tx, ended=ended)

    def cancel_requests(self, worker: int) -> list[tuple[int, int]]:
        """(job, run) that this worker holds and someone wants stopped."""
        with self.engine.read() as tx:
            return [(job, run) for job, run in tx.rows("cancel_requests", worker=worker)]

    def leave(self, worker: int) -> None:
        """A worker that holds nothing any more ends."""
        with self.engine.write(durable=True, alone=False) as tx:
            tx.run("end_worker", id=worker, now=tx.now)

    def runs_of(self, worker: int) -> list[tuple[int, int]]:
        """(job, run) that a worker holds."""
        with self.engine.read() as tx:
            return [(job, run) for job, run in tx.rows("runs_of_worker", worker=worker)]

    def id(self) -> str:
        """Tells this store's jobs apart from those of another one on the same machine."""
        with self.engine.read() as tx:
            row = tx.row("meta", key="store_id")
            return "" if row is None else str(row[0])

    @again
    def rescue(self, worker: int, outcome: Outcome) -> list[int]:
        """Take back what a lost worker held, once its process trees are dead."""
        with self._writing() as (tx, ledger):
            return workers.rescue(tx, ledger, worker, outcome, self.config)

    @again
    def rescue_silent(self, worker: int, beat: int, outcome: Outcome) -> list[int] | None:
        """The same for a worker of another machine that has not raised its number for its lease;
        None when it has done so meanwhile, and keeps what it holds."""
        with self._writing() as (tx, ledger):
            if not workers.give_up(tx, worker, beat):
                return None
            return workers.rescue(tx, ledger, worker, outcome, self.config)

    def stranded(self) -> list[tuple[int, int]]:
        """Workers, with their numbers, that have ended and still hold jobs."""
        with self.engine.read() as tx:
            return [(worker, beat) for worker, beat in tx.rows("stranded")]

    @again
    def rescue_lapsed(self, outcome: Outcome) -> list[int]:
        """The same for workers written by hand whose lease has run out."""
        with self.engine.read() as tx:
            if not tx.rows("lapsed_leases", now=tx.now):
                return []
        with self._writing() as (tx, ledger):
            lapsed = [row[0] for row in tx.rows("lapsed_leases", now=tx.now)]
            return [
                job
                for worker in lapsed
                for job in workers.rescue(tx, ledger, worker, outcome, self.config)
            ]

    # What people do with jobs

    @again
    def cancel(self, job: int, reason: str = "cancelled by request") -> State:
        with self._writing() as (tx, ledger):
            return moves.cancel(tx, ledger, job, reason)

    @again
    def suspend(self, job: int, *, paused: bool = True) -> None:
        with self._writing() as (tx, ledger):
            moves.suspend(tx, ledger, job, paused=paused)

    @again
    def hold(self, job: int) -> State:
        with self._writing() as (tx, ledger):
            return moves.hold(tx, ledger, job)

    @again
    def release(self, job: int) -> State:
        with self._writing() as (tx, ledger):
            return moves.release(tx, ledger, job)

    @again
    def retry(self, job: int) -> State:
        with self._writing() as (tx, ledger):
            return moves.retry(tx, ledger, job)

    @again
    def copy(self, job: int) -> int:
        """A new job like an old one, without its name, unique key and parents; its id."""
        with self._writing() as (tx, ledger):
            return moves.copy(tx, ledger, job, self._aging)

    @again
    def move(self, job: int, *, to_front: bool = True) -> None:
        with self._writing() as (tx, ledger):
            moves.move(tx, ledger, job, to_front=to_front)

    @again
    def edit(self, job: int, new: NewJob, said: Collection[str]) -> State:
        with self._writing() as (tx, ledger):
            return editing.edit(tx, ledger, job, new, said, self._aging)

    # Queues

    @again
    def set_queue(self, name: str, settings: Mapping[str, Any]) -> Queue:
        with self.engine.write(durable=True) as tx:
            stale_ranks = queues.save_queue(tx, name, settings, self._aging)
            queue = queues.read_queue(tx, name)
        if stale_ranks:
            self._rerank(name)
        self.engine.ring()
        return queue

    def _rerank(self, name: str) -> None:
        with self.engine.read() as tx:
            ids = [row[0] for row in tx.rows("pending_in", queue=name)]
        for start in range(0, len(ids), queues.RERANK_BATCH):
            with self._writing() as (tx, ledger):
                queues.rerank(tx, ledger, name, ids[start : start + queues.RERANK_BATCH])

    @again
    def pause(self, queue: str, *, paused: bool = True) -> None:
        with self.engine.write(durable=True) as tx:
            queues.pause(tx, queue, paused=paused)
        self.engine.ring()

    def queue(self, name: str) -> Queue:
        with self.engine.read() as tx:
            return queues.read_queue(tx, name)

    def queues(self) -> list[Queue]:
        with self.engine.read() as tx:
            return queues.read_queues(tx)

    @again
    def delete_queue(self, name: str) -> None:
        with self.engine.write(durable=True) as tx:
            self.engine.settle(tx)  # nobody may be about to add a job to it
            queues.delete_queue(tx, name)

    # Time

    @again
    def promote(self) -> int:
        """Let scheduled and retrying jobs go whose time has come; a claim does the same."""
        with self._writing(durable=False) as (tx, ledger):
            return tidy.promote(tx, ledger)

    @again
    def expire(self) -> int:
        """Let those end that were to start by now and did not; a claim does the same."""
        with self.engine.read() as tx:
            if not tx.rows("expired", now=tx.now, n=1):
                return 0
        with self._writing() as (tx, ledger):
            return tidy.expire(tx, ledger, self.config)

    @again
    def cleanup(self) -> int:
        """Remove what is past its retention, in small steps; return how many jobs went."""
        removed = sum(self._clean(state) for state in sorted(FINISHED))
        with self.engine.write(durable=True) as tx:
            tidy.sweep(tx, self.config)
        while self._forget_changes():
            time.sleep(_BATCH_PAUSE)
        self.engine.tidy()
        return removed

    def _forget_changes(self) -> bool:
        with self.engine.write(durable=True) as tx:
            return tidy.forget_changes(tx, self.config)

    def _clean(self, state: State) -> int:
        default = getattr(self.config.retention, state)
        removed, after, after_id = 0, 0, 0
        with self.engine.read() as tx:
            settings = {queue.name: queue.options for queue in queues.read_queues(tx)}
        keep = {q: o[f"keep_{state}"] for q, o in settings.items() if f"keep_{state}" in o}
        shortest = min([default, *keep.values()])
        while True:
            with self.engine.read() as tx:
                rows: Any = tx.rows(
                    "finished_before", state=state, before=tx.now - shortest, after=after,
                    after_id=after_id, parent_tie=ends.PARENT, n=tidy.BATCH,
                )  # fmt: skip
                past = tidy.past_retention(rows, keep, default, tx.now)
            if past:
                with self._writing() as (tx, ledger):
                    removed += tidy.remove_finished(tx, ledger, past)
            if len(rows) < tidy.BATCH:
                return removed
            after, after_id, _ = rows[-1]
            time.sleep(_BATCH_PAUSE)

    @again
    def purge(self, states: Collection[State], queue: str | None = None) -> int:
        """Remove all jobs in the given states, whatever their age; never what a worker holds."""
        if State.PROCESSING in states:
            raise errors.InvalidInput(
                "Jobs that are processing cannot be purged: cancel them first."
            )
        removed = 0
        # Children before their parents, which stay while someone waits for them.
        for state in sorted(states, key=lambda state: (state in FINISHED, state)):
            after = 0
            while True:
                with self._writing() as (tx, ledger):
                    ids, gone = tidy.purge(tx, ledger, state, queue, after)
                removed += gone
                if len(ids) < tidy.BATCH:
                    break
                after = ids[-1]
                time.sleep(_BATCH_PAUSE)
        return removed

    # Looking

    def get(self, job: int, connection: Any = None) -> Job:
        """A job; with `connection`, as the caller's transaction sees it."""
        opened = self.engine.read()
        if connection is not None:
            opened = self.engine.borrowed(connection, alone=False)
        with opened as tx:
            return read.get_job(tx, job, self.config)

    def find_named(self, name: str) -> int:
        with self.engine.read() as tx:
            return read.find_named(tx, name)

    def state(self, job: int) -> State:
        """The cheapest look at a job."""
        with self.engine.read() as tx:
            row = tx.row("state_of", id=job)
        if row is None:
            raise errors.NotFound(f"There is no job {job}: it never was, or it was removed.")
        return State(row[0])

    def known(self, jobs: Collection[int]) -> set[int]:
        """Those of them that are still there."""
        with self.engine.read() as tx:
            return {job for job, _ in tx.rows("states_of", ids=json.dumps(sorted(jobs)))}

    def runs(self, job: int) -> list[Run]:
        with self.engine.read() as tx:
            return read.list_runs(tx, job)

    def environment_of(self, job: int) -> dict[str, str] | None:
        with self.engine.read() as tx:
            return read.environment_of(tx, job)

    def facts(self, job: int) -> Facts:
        """What explains where a job stands."""
        with self.engine.read() as tx:
            return facts.gather(tx, job, self.config)

    def first_in_line(self, n: int) -> list[Job]:
        """The pending jobs that start next, as far as their ranks tell."""
        with self.engine.read() as tx:
            return facts.first_in_line(tx, n, self.config)

    def changes(self, cursor: int, limit: int = 1000, until: int = _LAST) -> list[Change]:
        with self.engine.read() as tx:
            return read.changes_after(tx, cursor, limit, until)

    def writers(self) -> frozenset[str]:
        """The transactions that may yet commit changes with numbers below those that are seen."""
        with self.engine.read() as tx:
            return frozenset(row[0] for row in tx.rows("writers"))

    def last_change(self) -> int:
        with self.engine.read() as tx:
            row = tx.row("last_change")
            return 0 if row is None else row[0]

    def oldest_change(self) -> int:
        """The first number that is still kept."""
        with self.engine.read() as tx:
            row = tx.row("last_change")
            return 0 if row is None else row[1]

    def clocks(self) -> Standing:
        """Who fires schedules, and what comes next."""
        with self.engine.read() as tx:
            others = machines.services(tx, self.engine)
            return clocks.standing(tx, f"{self.bells}/clocks", others, self.config.directory)

    def token_of(self, service: Service) -> str:
        with self.engine.read() as tx:
            return machines.token_of(tx, service)

    def services(self) -> list[Service]:
        """Of all machines that share the store; none where it is not shared."""
        with self.engine.read() as tx:
            return machines.services(tx, self.engine)

    def write_mark(self) -> tuple[int, int]:
        """A cheap look at whether anything was written: differs from the last one if so."""
        return self.engine.write_mark()

    def counts(self, queue: str | None = None) -> dict[str, int]:
        with self.engine.read() as tx:
            return stats.counts(tx, queue)

    def stats(self, queue: str | None = None, minutes: int = 60) -> list[QueueStats]:
        with self.engine.read() as tx:
            return stats.stats(tx, queue, minutes)

    def rollups(self, since: int) -> list[Rollup]:
        """The sums of every minute since one, counted from 1970."""
        with self.engine.read() as tx:
            return stats.rollups(tx, since)

    def size(self) -> int:
        """How much of the disk it takes, in bytes."""
        return self.engine.size()

    def activity(self, queue: str | None = None, minutes: int = 60) -> list[Activity]:
        with self.engine.read() as tx:
            return stats.activity(tx, queue, minutes)

    # The store as a whole

    def backup(self, target: Path, *, environments: bool = False) -> None:
        """An online copy, checked; environments stay behind unless asked for."""
        from svcq.store.backup import back_up

        back_up(self.engine, target, self.config, environments=environments)

    def export(self, *, environments: bool = False) -> Iterator[str]:
        """Lines of JSON, from one consistent view that others can go on writing under."""
        view = self.engine.fresh()
        with closing(view), view.read() as tx:
            yield from transfer.export(tx, environments=environments)

    @again
    def import_lines(self, lines: Iterable[str]) -> int:
        """Add what an export wrote, all or none; how many jobs there were."""
        with self._writing() as (tx, ledger):
            importer = transfer.Importer(tx, ledger, self._aging)
            for line in lines:
                importer.take(line)
            return importer.finish()

    # Last in the class: its name hides the built-in one from what follows.

    def list(self, wanted: Filter) -> list[Job]:
        with self.engine.read() as tx:
            return read.list_jobs(tx, wanted, self.config)
