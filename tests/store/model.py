"""The rules of the store once more: plain dicts and loops, slow, and written apart from svcq.store.

It shares only the words with the program (states, outcomes, errors). test_model.py drives it and a
real store side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from svcq.errors import (
    DependencyCycle,
    InvalidInput,
    NameTaken,
    NotFound,
    Refused,
    SvcqError,
    UniqueTaken,
    WrongState,
)
from svcq.jobs import FINISHED, WAITING, How, State

_ENDED_BADLY = FINISHED - {State.COMPLETED}


class Defaults(NamedTuple):
    """What the configuration says where jobs and queues are silent; times in milliseconds."""

    max_attempts: int
    backoff_ms: int
    max_losses: int
    max_interruptions: int
    aging_ms: int
    keep_ms: int  # every finished state alike


@dataclass(kw_only=True)
class Wish:
    """A job as its caller describes it."""

    queue: str
    task: str = "work"  # empty for a command
    priority: int = 0
    key: str = ""
    key_limit: int | None = None
    host: str = ""
    condition: str = ""
    delay_ms: int = 0
    expires_ms: int | None = None
    held: bool = False
    max_attempts: int | None = None
    name: str | None = None
    unique_key: str | None = None
    unique_ms: int | None = None
    on_duplicate: str = "existing"
    after: tuple[int, ...] = ()
    after_any: tuple[int, ...] = ()
    if_parent_fails: str = "cancel"


@dataclass
class Edge:
    """What a job needs of one it comes after, and whether it has got it."""

    needs: str
    met: bool


@dataclass(kw_only=True)
class Job:
    id: int
    queue: str
    task: str
    priority: int
    key: str
    host: str
    condition: str
    max_attempts: int | None
    name: str | None
    unique_key: str | None
    if_parent_fails: str
    run_at: int | None
    expires_at: int | None
    parents: dict[int, Edge]
    copy_of: int | None = None
    state: State = State.PENDING
    reason: str | None = None
    ready_at: int | None = None
    rank: int | None = None
    run: int = 0
    worker: int | None = None
    finished_at: int | None = None
    cancel_requested: bool = False
    tally: Counter[str] = field(default_factory=Counter)

    @property
    def kind(self) -> str:
        return "task" if self.task else "command"

    @property
    def live(self) -> bool:
        return self.state not in FINISHED

    @property
    def waits_on(self) -> int:
        return sum(not edge.met for edge in self.parents.values())


@dataclass
class Queue:
    aging_ms: int
    paused: bool = False
    concurrency: int | None = None
    rate: tuple[int, int] | None = None  # starts, milliseconds
    next_start: Fraction = Fraction(0)
    dead_letter: str | None = None
    max_attempts: int | None = None


@dataclass
class Holder:
    """Who has a unique key or a name, and until when it stays taken after the end."""

    job: int
    until: int | None


class Run(NamedTuple):
    """A claim: one run of a job by one worker."""

    job: int
    run: int
    worker: int


class Asker(NamedTuple):
    """A worker that asks for jobs, and which it can take."""

    worker: int
    host: str = ""
    kinds: Collection[str] = ("task", "command")
    holding: Collection[str] = ()


class End(NamedTuple):
    """How a run ended; `delay_ms` of a snooze, or of a retry that names its own."""

    how: How
    delay_ms: int | None = None


class Model:
    def __init__(self, defaults: Defaults, clock: Callable[[], int]) -> None:
        self.defaults = defaults
        self._clock = clock
        self.jobs: dict[int, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.key_limits: dict[str, int] = {}
        self.taken: dict[tuple[str, str], Holder] = {}  # (queue, or empty for names; key)
        self.told: list[tuple[int, str]] = []
        self.last_id = 0

    @property
    def now(self) -> int:
        return self._clock()

    # Adding

    def enqueue(self, wishes: Sequence[Wish]) -> list[tuple[int, State, bool]]:
        """(id, state, created) of each."""
        first = self.last_id + 1
        self.last_id += len(wishes)
        return [self._add(job, wish) for job, wish in enumerate(wishes, first)]

    def _add(self, job_id: int, wish: Wish) -> tuple[int, State, bool]:
        if wish.unique_key is not None:
            holder = self._take_unique(job_id, wish)
            if holder is not None:
                return holder.id, holder.state, False
        if wish.name is not None:
            self._take_name(job_id, wish.name)
        job = Job(
            id=job_id,
            queue=wish.queue,
            task=wish.task,
            priority=wish.priority,
            key=wish.key,
            host=wish.host,
            condition=wish.condition,
            max_attempts=wish.max_attempts,
            name=wish.name,
            unique_key=wish.unique_key,
            if_parent_fails=wish.if_parent_fails,
            run_at=self.now + wish.delay_ms if wish.delay_ms else None,
            expires_at=None if wish.expires_ms is None else self.now + wish.expires_ms,
            parents=self._edges(wish.after, wish.after_any),
        )
        self._limit_key(wish.key, wish.key_limit)
        self._insert(job, held=wish.held)
        self._cancel_after_failed(job, wish.after)
        return job.id, job.state, True

    def _cancel_after_failed(self, job: Job, after: Iterable[int]) -> None:
        """As if the job had been there when its parent failed."""
        bad = [parent for parent in sorted(after) if self.jobs[parent].state in _ENDED_BADLY]
        if bad and job.if_parent_fails == "cancel":
            self._end(job, State.CANCELLED, _because_of(bad[0], self.jobs[bad[0]].state))

    def _insert(self, job: Job, *, held: bool = False) -> None:
        self._queue(job.queue)
        self.jobs[job.id] = job
        self._set_state(job, State.HELD if held else self._waiting_state(job))

    def _queue(self, name: str) -> Queue:
        return self.queues.setdefault(name, Queue(self.defaults.aging_ms))

    def _edges(self, after: Iterable[int], after_any: Iterable[int]) -> dict[int, Edge]:
        needs = dict.fromkeys(after_any, "end") | dict.fromkeys(after, "success")
        return {parent: Edge(need, self._is_met(parent, need)) for parent, need in needs.items()}

    def _is_met(self, parent: int, need: str) -> bool:
        state = self._get(parent).state
        return state is State.COMPLETED or (need == "end" and state in FINISHED)

    def _limit_key(self, key: str, limit: int | None) -> None:
        if key:
            self.key_limits[key] = limit or self.key_limits.get(key, 1)

    def forget_idle_keys(self) -> None:
        """The end of every verb: a limit goes with the last unfinished job of its key."""
        used = {job.key for job in self.jobs.values() if job.live}
        self.key_limits = {key: limit for key, limit in self.key_limits.items() if key in used}

    # Unique keys and names

    def _holder(self, scope: str, key: str) -> Holder | None:
        holder = self.taken.get((scope, key))
        if holder is None:
            return None
        job = self.jobs.get(holder.job)
        in_window = holder.until is not None and holder.until > self.now
        return holder if in_window or (job is not None and job.live) else None

    def _take_unique(self, job_id: int, wish: Wish) -> Job | None:
        """Take the key; the job that has it where the caller is content with that one."""
        assert wish.unique_key is not None
        holder = self._holder(wish.queue, wish.unique_key)
        if holder is not None:
            if holder.job == job_id:
                return None
            job = self.jobs.get(holder.job)
            if job is not None and wish.on_duplicate == "existing":
                return job
            runs = job is not None and job.state is State.PROCESSING
            if wish.on_duplicate != "replace" or runs:
                raise UniqueTaken("taken", holder.job)
            if job is not None and job.live:
                self._end(job, State.CANCELLED, "replaced by a newer job")
        until = None if wish.unique_ms is None else self.now + wish.unique_ms
        self.taken[wish.queue, wish.unique_key] = Holder(job_id, until)
        return None

    def _take_name(self, job_id: int, name: str) -> None:
        holder = self._holder("", name)
        if holder is not None and holder.job != job_id:
            raise NameTaken("taken", holder.job)
        self.taken["", name] = Holder(job_id, None)

    def _free(self, job: Job, scope: str, key: str | None) -> None:
        holder = self.taken.get((scope, key or ""))
        if key is None or holder is None or holder.job != job.id:
            return
        if holder.until is None or holder.until <= self.now:
            del self.taken[scope, key]

    # States

    def _waiting_state(self, job: Job) -> State:
        if job.waits_on:
            return State.BLOCKED
        if job.run_at is not None and job.run_at > self.now:
            return State.SCHEDULED
        return State.PENDING

    def _set_state(self, job: Job, state: State, reason: str | None = None) -> None:
        if state is State.PENDING and job.ready_at is None:
            due = job.run_at if job.state is State.SCHEDULED else None
            job.ready_at = self.now if due is None else due
        job.state = state
        job.reason = reason
        self.told.append((job.id, state))
        self._rank(job)
        if state in FINISHED:
            job.finished_at = self.now
            job.expires_at = None
        else:
            job.finished_at = None

    def _rank(self, job: Job) -> None:
        job.rank = None
        if job.state is State.PENDING:
            assert job.ready_at is not None
            job.rank = job.ready_at - job.priority * self.queues[job.queue].aging_ms

    def _end(self, job: Job, state: State, reason: str | None) -> None:
        self._set_state(job, state, reason)
        self._free(job, job.queue, job.unique_key)
        self._free(job, "", job.name)
        for child in self._children(job):
            edge = child.parents[job.id]
            if state is State.COMPLETED or edge.needs == "end":
                edge.met = True
                if child.state is State.BLOCKED and not child.waits_on:
                    self._set_state(child, self._waiting_state(child))
            elif child.state in (State.BLOCKED, State.HELD) and child.if_parent_fails == "cancel":
                self._end(child, State.CANCELLED, _because_of(job.id, state))

    def _children(self, parent: Job) -> Iterator[Job]:
        for job in sorted(self.jobs.values(), key=lambda job: job.id):
            if parent.id in job.parents:
                yield job

    def _die(self, job: Job, reason: str) -> None:
        self._end(job, State.DEAD, reason)
        letters = self.queues[job.queue].dead_letter
        if letters is None or job.copy_of is not None:
            return
        self.last_id += 1
        self._insert(
            Job(
                id=self.last_id,
                queue=letters,
                task=job.task,
                priority=job.priority,
                key="",
                host="",
                condition="",
                max_attempts=job.max_attempts,
                name=None,
                unique_key=None,
                if_parent_fails="cancel",
                run_at=None,
                expires_at=None,
                parents={},
                copy_of=job.id,
            )
        )

    # Claiming

    def line(self, queue: str, asker: Asker) -> list[Job]:
        """Whom the queue would give to this worker now, the first to go first."""
        if queue not in self.queues or self._is_closed(self.queues[queue], queue):
            return []
        fitting = [
            job
            for job in self.jobs.values()
            if job.state is State.PENDING
            and job.queue == queue
            and job.kind in asker.kinds
            and job.host in ("", asker.host)
            and (not job.condition or job.condition in asker.holding)
            and (not job.key or self.running(key=job.key) < self.key_limits[job.key])
        ]
        return sorted(fitting, key=lambda job: (job.rank, job.id))

    def _is_closed(self, settings: Queue, queue: str) -> bool:
        if settings.paused:
            return True
        if settings.concurrency is not None and self.running(queue=queue) >= settings.concurrency:
            return True
        if settings.rate is None:
            return False
        starts, period = settings.rate
        next_start = max(settings.next_start, Fraction(self.now))
        return next_start + Fraction(period, starts) > self.now + period

    def running(self, *, queue: str | None = None, key: str | None = None) -> int:
        return sum(
            job.state is State.PROCESSING and queue in (None, job.queue) and key in (None, job.key)
            for job in self.jobs.values()
        )

    def start(self, job: Job, worker: int) -> Run:
        settings = self.queues[job.queue]
        if settings.rate is not None:
            starts, period = settings.rate
            settings.next_start = max(settings.next_start, Fraction(self.now))
            settings.next_start += Fraction(period, starts)
        self._set_state(job, State.PROCESSING)
        job.run += 1
        job.worker = worker
        job.expires_at = None
        return Run(job.id, job.run, worker)

    # The ends of runs

    def finish(self, reports: Sequence[tuple[Run, End]]) -> list[State | None]:
        return [self._finish(run, end) for run, end in reports]

    def _finish(self, run: Run, end: End) -> State | None:
        job = self.jobs.get(run.job)
        if job is None or job.state is not State.PROCESSING:
            return None
        if (job.run, job.worker) != (run.run, run.worker):
            return None
        asked_to_stop, job.cancel_requested = job.cancel_requested, False
        if end.how is How.COMPLETED:
            self._end(job, State.COMPLETED, None)
            return job.state
        job.run_at = None
        if end.how is How.CANCELLED or asked_to_stop:
            self._end(job, State.CANCELLED, "cancelled while it ran")
        elif end.how is How.REJECTED:
            self._die(job, "rejected")
        else:
            self._run_again_or_die(job, end)
        return job.state

    def _run_again_or_die(self, job: Job, end: End) -> None:
        said = self.defaults
        if end.how is How.SNOOZED:
            job.tally["snoozes"] += 1
            job.run_at = self.now + (end.delay_ms or 0)
            self._set_state(job, self._waiting_state(job))
        elif end.how is How.INTERRUPTED:
            self._go_back(job, "interruptions", said.max_interruptions, "interrupted too often")
        elif end.how is How.LOST:
            self._go_back(job, "losses", said.max_losses, "lost too often")
        else:
            job.tally["failures"] += 1
            if job.tally["failures"] >= self._max_attempts(job):
                timed_out = end.how is How.TIMED_OUT
                self._die(job, "timed out" if timed_out else "out of attempts")
                return
            delay = said.backoff_ms if end.delay_ms is None else end.delay_ms
            job.run_at = self.now + delay
            self._set_state(job, State.RETRYING)

    def _go_back(self, job: Job, counted: str, limit: int, reason: str) -> None:
        job.tally[counted] += 1
        if job.tally[counted] > limit:
            self._die(job, reason)
        else:
            self._set_state(job, self._waiting_state(job))

    def _max_attempts(self, job: Job) -> int:
        return (
            job.max_attempts
            or self.queues[job.queue].max_attempts
            or self.defaults.max_attempts
        )  # fmt: skip

    def rescue(self, worker: int, end: End) -> list[int]:
        held = [
            Run(job.id, job.run, worker)
            for job in sorted(self.jobs.values(), key=lambda job: job.id)
            if job.state is State.PROCESSING and job.worker == worker
        ]
        self.finish([(run, end) for run in held])
        return [run.job for run in held]

    def progress(self, run: Run) -> bool:
        job = self.jobs.get(run.job)
        holds = job is not None and job.state is State.PROCESSING
        if job is None or not holds or (job.run, job.worker) != (run.run, run.worker):
            return False
        self.told.append((job.id, "progress"))
        return True

    # What people do

    def _get(self, job: int) -> Job:
        if job not in self.jobs:
            raise NotFound(f"no job {job}")
        return self.jobs[job]

    def cancel(self, job_id: int) -> State:
        job = self._get(job_id)
        if not job.live:
            raise WrongState("ended")
        if job.state is State.PROCESSING:
            if not job.cancel_requested:
                job.cancel_requested = True
                self.told.append((job.id, "cancel_requested"))
        else:
            self._end(job, State.CANCELLED, "cancelled by request")
        return job.state

    def hold(self, job_id: int) -> State:
        job = self._get(job_id)
        if job.state not in WAITING or job.state is State.HELD:
            raise WrongState("cannot be held")
        self._set_state(job, State.HELD)
        return job.state

    def release(self, job_id: int) -> State:
        job = self._get(job_id)
        if job.state is not State.HELD:
            raise WrongState("not held")
        self._set_state(job, self._waiting_state(job))
        return job.state

    def retry(self, job_id: int) -> State:
        job = self._get(job_id)
        if job.state is State.RETRYING:
            job.run_at = None
            self._set_state(job, self._waiting_state(job))
        elif job.live:
            raise WrongState("not ended")
        else:
            self._revive(job)
        return job.state

    def _revive(self, job: Job) -> None:
        if job.unique_key is not None:
            wish = Wish(queue=job.queue, unique_key=job.unique_key, on_duplicate="refuse")
            self._take_unique(job.id, wish)
        if job.name is not None:
            self._take_name(job.id, job.name)
        self._limit_key(job.key, None)
        job.ready_at = job.run_at = None
        job.tally.clear()
        self._set_state(job, self._waiting_state(job))
        cancelled = []
        for child in self._children(job):
            edge = child.parents[job.id]
            if child.state in (State.BLOCKED, State.HELD):
                edge.met = False
            elif child.state is State.CANCELLED and child.reason in _causes(job.id):
                edge.met = False
                cancelled.append(child)
        for child in cancelled:
            if not child.live:  # it may have come back with a sibling that it also comes after
                self._revive(child)

    def move(self, job_id: int, *, to_front: bool) -> None:
        job = self._get(job_id)
        if job.state is not State.PENDING:
            raise WrongState("not pending")
        ranks = [
            other.rank
            for other in self.jobs.values()
            if other.queue == job.queue and other.rank is not None
        ]
        job.rank = min(ranks) - 1 if to_front else max(ranks) + 1
        self.told.append((job.id, "moved"))

    def edit(self, job_id: int, wish: Wish, said: Collection[str]) -> State:
        """Replace the properties named in `said` by those of the wish."""
        job = self._get(job_id)
        if job.state not in WAITING:
            raise WrongState("not waiting")
        before = job.queue, job.unique_key, job.name
        place = job.queue, job.priority
        for name in ("queue", "priority", "key", "host", "condition", "name", "unique_key"):
            if name in said:
                setattr(job, name, getattr(wish, name))
        self._queue(job.queue)
        self._swap_keys(job, before)
        if "after" in said:
            if set(wish.after) & self._descendants(job_id):
                raise DependencyCycle("cycle")
            job.parents = self._edges(wish.after, ())
        self._limit_key(job.key, wish.key_limit if "key" in said else None)
        if "delay_ms" in said:
            job.run_at = self.now + wish.delay_ms
        if "expires_ms" in said and wish.expires_ms is not None:
            job.expires_at = self.now + wish.expires_ms
        self.told.append((job.id, "edited"))
        self._place_after_edit(job, same_place=(job.queue, job.priority) == place)
        if "after" in said:
            self._cancel_after_failed(job, wish.after)
        return job.state

    def _swap_keys(self, job: Job, before: tuple[str, str | None, str | None]) -> None:
        queue, unique_key, name = before
        if (queue, unique_key) != (job.queue, job.unique_key):
            self._free(job, queue, unique_key)
            if job.unique_key is not None:
                wish = Wish(queue=job.queue, unique_key=job.unique_key, on_duplicate="refuse")
                self._take_unique(job.id, wish)
        if name != job.name:
            self._free(job, "", name)
            if job.name is not None:
                self._take_name(job.id, job.name)

    def _descendants(self, job_id: int) -> set[int]:
        found = {job_id}
        while True:
            more = {job.id for job in self.jobs.values() if found & job.parents.keys()} - found
            if not more:
                return found
            found |= more

    def _place_after_edit(self, job: Job, *, same_place: bool) -> None:
        state = State.HELD if job.state is State.HELD else self._waiting_state(job)
        if job.state is State.RETRYING and state is State.SCHEDULED:
            state = State.RETRYING
        if state is State.PENDING and job.ready_at is None:
            job.ready_at = self.now
        if state is job.state:
            if state is not State.PENDING or not same_place:
                self._rank(job)
        else:
            self._set_state(job, state)

    # Queues

    def set_queue(
        self,
        name: str,
        *,
        concurrency: int | None,
        rate: tuple[int, int] | None,
        aging_ms: int,
        dead_letter: str | None,
        max_attempts: int | None,
    ) -> None:
        if dead_letter == name:
            raise InvalidInput("its own dead letter queue")
        queue = self._queue(name)
        if dead_letter is not None and dead_letter not in self.queues:
            self._queue(dead_letter).paused = True
        if rate != queue.rate:
            queue.next_start = Fraction(0)
        queue.concurrency, queue.rate = concurrency, rate
        queue.dead_letter, queue.max_attempts = dead_letter, max_attempts
        if aging_ms != queue.aging_ms:
            queue.aging_ms = aging_ms
            for job in self.jobs.values():
                if job.queue == name:
                    self._rank(job)

    def pause(self, name: str, *, paused: bool) -> None:
        if name not in self.queues:
            raise NotFound("no queue")
        self.queues[name].paused = paused

    def delete_queue(self, name: str) -> None:
        if name not in self.queues:
            raise NotFound("no queue")
        if any(job.queue == name for job in self.jobs.values()):
            raise Refused("has jobs")
        if any(queue.dead_letter == name for queue in self.queues.values()):
            raise Refused("gets dead letters")
        del self.queues[name]

    # Time

    def expire(self) -> int:
        expired = [
            job
            for job in sorted(self.jobs.values(), key=lambda job: (job.expires_at or 0, job.id))
            if job.expires_at is not None and job.expires_at <= self.now
        ]
        for job in expired:
            if job.live:  # the end of a parent may have cancelled it
                self._die(job, "expired")
        return len(expired)

    def promote(self) -> int:
        due = [
            job
            for job in self.jobs.values()
            if job.state in (State.SCHEDULED, State.RETRYING)
            and job.run_at is not None
            and job.run_at <= self.now
        ]
        for job in due:
            self._set_state(job, self._waiting_state(job))
        return len(due)

    def purge(self, states: Collection[State], queue: str | None) -> int:
        if State.PROCESSING in states:
            raise InvalidInput("a worker has them")
        removed = 0
        for state in sorted(states, key=lambda state: (state in FINISHED, state)):
            going = [
                job
                for job in sorted(self.jobs.values(), key=lambda job: job.id)
                if job.state is state and queue in (None, job.queue)
            ]
            for job in going:
                if job.live:
                    self._end(job, State.CANCELLED, "purged")
            removed += self._remove(going)
        return removed

    def cleanup(self) -> int:
        before = self.now - self.defaults.keep_ms
        removed = self._remove(
            [
                job
                for job in self.jobs.values()
                if job.finished_at is not None and job.finished_at <= before
            ]
        )
        for scope, key in list(self.taken):
            holder = self.taken[scope, key]
            if holder.until is not None and self._holder(scope, key) is None:
                del self.taken[scope, key]
        return removed

    def _remove(self, jobs: Iterable[Job]) -> int:
        """Forget finished jobs, except those that another job still waits for."""
        awaited = {
            parent
            for job in self.jobs.values()
            if job.live
            for parent, edge in job.parents.items()
            if not edge.met
        }
        going = {job.id for job in jobs} - awaited
        for job in going:
            del self.jobs[job]
        for other in self.jobs.values():
            other.parents = {p: edge for p, edge in other.parents.items() if p not in going}
        return len(going)

    # Looking

    def counts(self) -> Counter[tuple[str, str]]:
        return Counter((job.queue, job.state) for job in self.jobs.values())

    def snapshot(self) -> Model:
        """A copy to return to when a verb fails half-way: every verb is all or nothing."""
        from copy import deepcopy

        copy = Model(self.defaults, self._clock)
        for name in ("jobs", "queues", "key_limits", "taken", "told", "last_id"):
            setattr(copy, name, deepcopy(getattr(self, name)))
        return copy


def _because_of(parent: int, state: State) -> str:
    return f"job {parent}, which it comes after, is {state}"


def _causes(parent: int) -> set[str]:
    return {_because_of(parent, state) for state in FINISHED}


def error_class(call: Callable[[], object]) -> tuple[object, type[SvcqError] | None]:
    """What a verb answered, or the class of the error it raised."""
    try:
        return call(), None
    except SvcqError as error:
        return None, type(error)
