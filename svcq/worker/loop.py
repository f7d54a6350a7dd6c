"""A worker: one process with n slots. Claim, run, report; asleep until there is something to do.

The store is spoken to in a thread of its own, so that a slow disk never delays a timeout. What has
ended is written in one transaction with whatever else has ended by then; the next claim follows
in the same turn.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from svcq.config import Config, Project
from svcq.environment import environment_of_jobs
from svcq.errors import StoreAway, SvcqError
from svcq.host import processes
from svcq.jobs import Claim, Outcome, cancelled, failed, interrupted, snoozed
from svcq.later import import_all
from svcq.policy import policy_of
from svcq.store import Declared, Orders, Report, Store, open_store
from svcq.trouble import Trouble
from svcq.worker.ahead import Ahead
from svcq.worker.awake import keep_awake
from svcq.worker.command import CommandRun
from svcq.worker.conditions import Conditions
from svcq.worker.heartbeat import Jobs
from svcq.worker.leases import Neighbours
from svcq.worker.membership import Membership
from svcq.worker.neighbours import has_keeper, look_after
from svcq.worker.places import Places, marker_of, runners_marker
from svcq.worker.talk import Said, Talk
from svcq.worker.tasks import TaskPool
from svcq.worker.trees import Tree

LOOK = 1.0  # seconds between looks at a store that nobody rang for
PACE = 0.01  # seconds between turns while short commands run that were claimed ahead
TELL = 0.1  # seconds for which progress is gathered before it is told


class Settings(NamedTuple):
    """How a worker is to work."""

    slots: int = 2
    queues: tuple[str, ...] = ("*",)
    projects: tuple[Project, ...] = ()  # whose tasks it runs; none: commands alone
    say: Callable[[str], None] = print
    kept: bool = False  # by a service: it ends some time after that has gone
    accept: str = "both"  # tasks, commands or both


class Worker:
    def __init__(self, config: Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._places = Places(config.home)
        self._store = _open(config, settings)
        self._store_id = self._store.id()
        self._running: dict[int, CommandRun] = {}
        self._ahead = Ahead(settings.slots, self._return_ahead)
        self._reports: list[Report] = []
        self._pools: list[TaskPool] = []
        self._told: dict[int, tuple[Claim, float, str | None]] = {}
        self._declared: dict[str, Declared] = {}  # of tasks: what the store has yet to hear
        self._seen: set[asyncio.Future[None]] = set()
        self._wake = asyncio.Event()
        self._trouble = Trouble(settings.say)
        self._draining = False
        self._interrupted = False
        self._telling = False
        self._thread = ThreadPoolExecutor(1, "store")
        self._conditions = Conditions()
        self._own_environment: Mapping[str, str] = {}

    async def run(self) -> None:
        """Work until drained."""
        self._loop = loop = asyncio.get_running_loop()
        # Before anyone can know of it: whoever sees it in the store may ask it to end.
        deaf = processes.hear_end_in(loop, self.interrupt)
        self._join()
        self._member.bell.watch(loop, self._rung)
        try:
            keeper = self.drain if self._settings.kept else None
            neighbours = Neighbours(self._store, self._places, self._settings.say, self.id)
            self._keep(
                look_after(neighbours, self._store, self._places, self._settings.say, keeper,
                           lambda: self._room()[0] <= 0)
            )  # fmt: skip
            self._keep(keep_awake(self._wishes, self._member.awake_note, self._settings.say))
            await self._warm()
            while not self._done():
                await self._turn()
                if not self._done():
                    await self._sleep()
        finally:
            self._member.bell.unwatch()
            await self._leave()
            deaf()

    async def _warm(self) -> None:
        """A worker imports all it needs before its first claim."""
        import_all()
        warm = asyncio.gather(*(pool.warm() for pool in self._pools))
        while not (warm.done() or self._draining):
            woken = asyncio.ensure_future(self._wake.wait())
            await asyncio.wait((warm, woken), return_when="FIRST_COMPLETED")
            woken.cancel()
            self._wake.clear()
        warm.cancel()

    def drain(self) -> None:
        """Take nothing new, finish what runs, then end."""
        if self._draining:
            return  # it is told at every turn, and would never sleep
        self._draining = True
        self._return_ahead()
        self._wake.set()

    def interrupt(self, reason: str) -> None:
        """End now: what runs goes back unharmed."""
        if self._interrupted:
            return
        self._interrupted = True
        self.drain()
        self._give_back(reason)

    def _give_back(self, reason: str) -> None:
        """What runs goes back unharmed."""
        self._return_ahead()
        for run in self._running.values():
            run.interrupt(reason)
        for pool in self._pools:
            pool.interrupt(reason)

    def _interrupt_from_afar(self, reason: str) -> None:
        with suppress(RuntimeError):  # the worker has ended meanwhile
            self._loop.call_soon_threadsafe(self._give_back, reason)

    def _kill(self) -> None:
        """All that runs is dead when this returns, whatever the loop is at; not in its thread."""
        for run in list(self._running.values()):
            run.kill()
        if self._pools:
            Tree(runners_marker(self._store_id, self.id), None, None).kill()

    def _done(self) -> bool:
        return self._draining and not (self._held() or self._reports or self._talk.kept)

    def _held(self) -> int:
        return len(self._running) + len(self._ahead) + sum(map(len, self._pools))

    def _wishes(self) -> set[str]:
        """What the jobs that run say of sleep."""
        said = {run.keep_awake for run in self._running.values()}
        return said.union(*(pool.keep_awake() for pool in self._pools))

    # Coming and going

    def _join(self) -> None:
        slots, accept = self._settings.slots, self._settings.accept
        projects = self._settings.projects if accept != "commands" else ()
        self._member = Membership(
            self._store, self._places, slots, self._settings.say,
            kept=self._settings.kept, alone=True,
        )  # fmt: skip
        self.id = self._member.id
        if self._settings.kept and not has_keeper(self._places):
            self.drain()  # the service was stopped while we came up, and nobody else would tell us
        self._own_environment = environment_of_jobs(os.environ)
        kinds = [kind for kind in ("command", "task") if accept in ("both", f"{kind}s")]
        if not projects:
            kinds = [kind for kind in kinds if kind == "command"]
        if not kinds:
            self._settings.say("This worker takes tasks alone, and no project has any for it.")
        claimer = self._member.claimer(self._settings.queues, kinds, self._conditions)
        self._talk = Talk(
            self._store, self._places.spool, claimer, self._conditions, self._condition_holds
        )
        self._pools = [
            TaskPool(
                project, self._config.home,
                {**self._own_environment, "SVCQ_HOME": str(self._config.home)}, self._member.lock,
                runners_marker(self._store_id, self.id), self._member.nursery,
                self._config.jobs, self._settings.slots, self._ended, self._progress,
                self._hear_declared, self._settings.say,
            )
            for project in projects
        ]  # fmt: skip
        if self._member.heartbeat is not None:
            self._member.heartbeat.guard(Jobs(self._interrupt_from_afar, self._kill))

    async def _leave(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools))
        self._member.leave(holds_jobs=bool(self._held() or self._reports or self._talk.kept))
        self._thread.shutdown()
        self._store.close()

    # One turn

    async def _turn(self) -> None:
        known = self._known() if self._talk.doubtful else set()
        said = Said(
            self._reports, list(self._told.values()), dict(self._declared), known, *self._room()
        )
        self._reports, self._told = [], {}
        loop = asyncio.get_running_loop()
        try:
            heard = await loop.run_in_executor(self._thread, self._talk.speak, said)
        except (SvcqError, OSError) as error:
            self._talk.doubtful = True
            self._trouble.met(error)
            return
        self._trouble.over()
        for name in heard.declared:
            if self._declared[name] == said.declared[name]:
                del self._declared[name]
        self._obey(heard.orders)
        for claim in heard.claims:
            self._take(claim, heard.environments)
        for pool in self._pools:
            pool.pump()

    def _known(self) -> set[tuple[int, int]]:
        """(job, run) that this worker knows to be its own."""
        runs = (*self._running.values(), *self._ahead)
        commands = {(run.claim.id, run.claim.run) for run in runs}
        return commands.union(*(pool.runs() for pool in self._pools))

    def _obey(self, orders: Orders) -> None:
        for job in orders.cancel:
            if job in self._running:
                self._running[job].cancel()
            elif run := self._ahead.take(job):
                self._ended(run.claim, cancelled())
            for pool in self._pools:
                pool.cancel(job)
        for job, running in self._running.items():
            running.pause() if job in orders.pause else running.resume()
        if orders.state == "draining":
            self.drain()
        elif orders.state == "stopping":
            self.interrupt("its worker was stopped")
        elif orders.state == "ended":
            self.interrupt("its worker was given up as lost")

    def _room(self) -> tuple[int, Mapping[str, int]]:
        """Free slots, and how many short jobs of each kind could be taken beyond them."""
        if self._draining or self._member.cut_off:
            return 0, {}
        ahead = {"task": sum(pool.ahead() for pool in self._pools), "command": self._ahead.room()}
        return self._free(), ahead

    def _free(self) -> int:
        busy = len(self._running) + sum(pool.busy() for pool in self._pools)
        return self._settings.slots - busy

    def _take(self, claim: Claim, environments: Mapping[int, Mapping[str, str]]) -> None:
        marker = marker_of(self._store_id, claim.id, claim.run)
        if self._member.cut_off:
            # Claimed before we stood still, it may have been taken from us since.
            self._ended(claim, interrupted("its worker could not reach the store"))
            return
        if claim.task:
            self._pool_for(claim.task).begin(claim, marker)
            return
        policy = policy_of(self._config.jobs, claim.queue_options, claim.options)
        base = environments.get(claim.env or 0, self._own_environment)
        run = CommandRun(
            claim, policy, self._config.home, self._member.seats, self._member.nursery, marker,
            {**base, "SVCQ_HOME": self._config.directory}, self._config.jobs.max_payload,
            lambda fraction, note: self._progress(claim, fraction, note), self._settings.say,
        )  # fmt: skip
        if self._free() > 0:
            self._begin(run)
        elif self._draining:
            self._ended(claim, snoozed(0))
        else:
            self._ahead.put(run)

    def _begin(self, run: CommandRun) -> None:
        self._running[run.claim.id] = run
        self._keep(self._see_through(run))

    def _begin_ahead(self) -> None:
        while run := self._next_ahead():
            self._keep(self._see_through(run))

    def _return_ahead(self) -> None:
        """Not started, so nothing failed: they wait again, for anyone."""
        for run in self._ahead.clear():
            self._ended(run.claim, snoozed(0))

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        future = asyncio.ensure_future(work)
        self._seen.add(future)  # the loop itself keeps only weak references
        future.add_done_callback(self._seen.discard)

    def _pool_for(self, task: str) -> TaskPool:
        """The project that declares the task, or is likely to; else one that could not be asked."""
        pools = self._pools
        likely = [
            *(pool for pool in pools if pool.knows(task)),
            *(pool for pool in pools if pool.may_know(task)),
            *(pool for pool in pools if pool.broken),
        ]
        return likely[0] if likely else pools[0]

    async def _see_through(self, run: CommandRun) -> None:
        following: CommandRun | None = run
        while following is not None:
            # One that was claimed ahead follows here: a slot is not to wait for the event loop.
            run = following
            began = self._loop.time()
            try:
                outcome = await run.run()
            except Exception as error:  # noqa: BLE001 (a mistake of ours must not end the worker)
                outcome = failed(f"svcq itself failed: {type(error).__name__}: {error}")
            self._ahead.ended(self._loop.time() - began)
            self._ended(run.claim, outcome)
            following = self._next_ahead()
            self._begin_ahead()

    def _next_ahead(self) -> CommandRun | None:
        run = self._ahead.next() if self._free() > 0 else None
        if run is not None:
            self._running[run.claim.id] = run
        return run

    def _ended(self, claim: Claim, outcome: Outcome) -> None:
        self._running.pop(claim.id, None)
        self._reports.append(Report.of(claim, outcome))
        self._wake.set()

    def _hear_declared(self, tasks: Mapping[str, Declared]) -> None:
        self._declared.update(tasks)
        self._wake.set()

    def _progress(self, claim: Claim, fraction: float, note: str | None) -> None:
        self._told[claim.id] = (claim, fraction, note)
        if not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_later(TELL, self._tell)

    def _tell(self) -> None:
        self._telling = False
        self._wake.set()

    # Sleep

    def _rung(self) -> None:
        self._member.bell.heard()
        self._wake.set()

    def _condition_holds(self) -> None:
        with suppress(RuntimeError):  # the worker has ended meanwhile
            self._loop.call_soon_threadsafe(self._wake.set)

    async def _sleep(self) -> None:
        """Until rung, until something ended, until something is due; or a second at most."""
        loop = asyncio.get_running_loop()
        while not self._wake.is_set():
            try:
                await asyncio.wait_for(self._wake.wait(), self._patience())
            except TimeoutError:
                if await loop.run_in_executor(self._thread, self._talk.news):
                    break
        if len(self._ahead) > self._settings.slots:
            # There is enough to do meanwhile: one turn for many ends costs as much as for one.
            await asyncio.sleep(PACE)
        self._wake.clear()

    def _patience(self) -> float:
        return LOOK if self._draining else min(self._talk.quiet(), LOOK)


def _open(config: Config, settings: Settings) -> Store:
    """What a service has started waits for a server that does not answer yet."""
    trouble = Trouble(settings.say)
    while True:
        try:
            store = open_store(config)
            trouble.over()
            return store
        except StoreAway as error:
            if not settings.kept:
                raise
            trouble.met(error)
            time.sleep(LOOK)


def run_worker(config: Config, settings: Settings) -> None:
    """Run one worker in this process until it is drained or told to end."""
    processes.ignore_for_ourselves_alone()
    processes.adopt_orphans()

    async def main() -> None:
        await Worker(config, settings).run()

    asyncio.run(main())
