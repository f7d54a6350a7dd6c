"""The client: the only door for callers. Command line, tray, page and programs all come in here."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from svcq.adder import Adder, encode_command
from svcq.config import Config
from svcq.errors import InvalidInput, NotFound, WaitTimeout, shown
from svcq.hands import HandWorker
from svcq.jobs import FINISHED, Change, Job, Run, State
from svcq.policy import (
    MAX_SOUGHT,
    NewJob,
    Plan,
    check_int,
    check_name,
    clean_text,
    make_plan,
    policy_of,
    read_options,
    said_fields,
    shown_policy,
)
from svcq.scheduling import Scheduling
from svcq.times import Duration, Moment, moment, parse_duration, parse_moment

if TYPE_CHECKING:
    from svcq.adder import Lent
    from svcq.changes import Follower
    from svcq.client.elsewhere import Elsewhere
    from svcq.logs import Log
    from svcq.store import Activity, Added, Queue, QueueStats, Worker
    from svcq.store.clocks import Standing
    from svcq.why import Why

JobId = int | str | Job
"""A job, its id, or its name."""


class Queueable(Protocol):
    """A task, with its options: how a call of it becomes a job."""

    def plan(self, default_queue: str, owner: str | None) -> Plan: ...

    def new_job(
        self, plan: Plan, limit: int, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> NewJob: ...


class Client(Adder, HandWorker, Scheduling):
    """Queues, schedules, watches, steers and, for workers written by hand, runs jobs.

    One client serves all threads of a process, and goes on working after a fork. Who does not own
    the store gets one that asks the service instead: at `socket`, or where the variable
    SVCQ_SOCKET says, or at that of the whole machine where the home is its home.
    """

    remote = False  # whether it asks the service

    def __new__(cls, *_: Any, **where: Any) -> Self:
        if cls is Client and where.get("config") is None and where.get("store") is None:
            from svcq.door import find_socket

            if find_socket(where.get("home"), where.get("socket")) is not None:
                from svcq.client.remote import RemoteClient

                return object.__new__(RemoteClient)  # type: ignore[return-value]
        return object.__new__(cls)

    def __init__(
        self,
        *,
        home: str | os.PathLike[str] | None = None,
        store: str | os.PathLike[str] | None = None,
        config: Config | None = None,
        clock: Callable[[], int] | None = None,
        socket: str | os.PathLike[str] | None = None,
    ) -> None:
        del socket  # it has been looked at
        Adder.__init__(self, home=home, store=store, config=config, clock=clock)
        HandWorker.__init__(self)
        self._like: dict[int, _Likeness] = {}

    def using(self, connection: Lent) -> Client:
        """A client whose `enqueue`, `enqueue_many` and `command` are part of your transaction.

        The connection must be on the store's own file, or by psycopg 3 to its database. The jobs
        exist when you commit; on PostgreSQL, workers are then woken at once.
        """
        twin = object.__new__(Client)
        twin.__dict__.update(self.__dict__)
        twin._connection = connection
        return twin

    def acting_for(self, owner: str | None) -> Client:
        """A client whose jobs belong to someone else: the service's, when another user asks."""
        twin = object.__new__(Client)
        twin.__dict__.update(self.__dict__)
        twin._owner = owner
        # What others see may be hidden from us; whoever runs the job will find out.
        twin._sees_directories = owner == self._owner
        return twin

    # Queueing

    def enqueue(self, task: Queueable, /, *args: Any, **kwargs: Any) -> Job:
        """Queue a call of a task. When this returns, the job is on the disk."""
        plan = self._plan(task)
        new = task.new_job(plan, self.config.jobs.max_payload, args, kwargs)
        (added,) = self.add((new,))
        like = self._like.get(id(plan))
        return (like and like.another(added, args, kwargs)) or self.as_job(added, new)

    def enqueue_many(self, task: Queueable, calls: Sequence[Mapping[str, Any]], /) -> list[int]:
        """Queue many calls by named arguments, all or none, in one transaction; their ids."""
        plan = self._plan(task)
        limit = self.config.jobs.max_payload
        jobs = [task.new_job(plan, limit, (), _named(call, task)) for call in calls]
        return [added.id for added in self.add(jobs)]

    def command(self, command: Sequence[str] | str, **options: Any) -> Job:
        """Queue a command: a list of words, or a line for the shell. See svcq.Options."""
        new = self.new_command(command, **options)
        (added,) = self.add((new,))
        return self.as_job(added, new)

    def _plan(self, task: Queueable) -> Plan:
        if not hasattr(task, "plan"):
            raise InvalidInput(f"{task!r} is not a task: put @svcq.task above its definition.")
        return task.plan(self.config.queue, self._owner)

    def as_job(self, added: Added, new: NewJob) -> Job:
        """The new job as a look at the store would show it, without the look."""
        if not added.created:
            return self.store.get(added.id, self._connection)
        plan = new.plan
        args, kwargs = json.loads(new.args) if new.args else ([], {})
        policy = policy_of(self.config.jobs, added.queue_options, plan.policy)
        run_at = added.at + plan.delay_ms if plan.delay_ms else plan.run_at
        job = Job(
            id=added.id,
            queue=plan.queue,
            state=added.state,
            name=plan.name,
            priority=plan.priority,
            max_attempts=policy.max_attempts,
            created_at=moment(added.at),
            run_at=None if run_at is None else moment(run_at),
            expires_at=None if plan.expires_ms is None else moment(added.at + plan.expires_ms),
            tags=plan.tags,
            owner=plan.owner,
            command=json.loads(new.command) if new.command else None,
            task=new.task or None,
            args=args,
            kwargs=kwargs,
            options=shown_policy(plan.policy),
            cwd=plan.cwd,
            host=plan.host or None,
            condition=plan.condition or None,
            concurrency_key=plan.key or None,
            unique_key=plan.unique_key,
            after=tuple(sorted({*plan.after, *plan.after_any})),
        )
        if new.task and plan.usual:
            if len(self._like) > 100:
                self._like.clear()
            self._like[id(plan)] = _Likeness(plan, added.queue_options, job)
        return job

    # Watching

    def get(self, job: JobId) -> Job:
        return self.store.get(self._id(job))

    def runs(self, job: JobId) -> list[Run]:
        """The runs of a job that failed or left something to show, oldest first."""
        job_id = self._id(job)
        runs = self.store.runs(job_id)
        if not runs:
            self.store.state(job_id)  # says so when there is no such job
        return runs

    def why(self, job: JobId) -> str:
        """One or two sentences that say why a job is where it is."""
        return self.explain(job).text

    def explain(self, job: JobId) -> Why:
        """The same, with the numbers behind the sentences."""
        from svcq.why import why

        return why(self.store, self._id(job))

    def first_in_line(self, n: int = 100) -> list[Job]:
        """The pending jobs that start next, each queue by its own order."""
        return self.store.first_in_line(check_int(n, "number of jobs", 1, 10_000))

    def environment(self, job: JobId) -> dict[str, str] | None:
        """The environment a command was queued with; it may hold secrets. None if it has none."""
        return self.store.environment_of(self._id(job))

    def wait(self, job: JobId, timeout: Duration | None = None) -> Job:
        """Wait until a job has ended, and return it; WaitTimeout when it takes too long."""
        from svcq.changes import wait_for_write

        job_id = self._id(job)
        limit = None if timeout is None else parse_duration(timeout, "timeout") / 1000
        deadline = None if limit is None else time.monotonic() + limit
        while True:
            mark = self.store.write_mark()
            state = self.store.state(job_id)
            if state in FINISHED:
                return self.store.get(job_id)
            left = 60.0 if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeout(
                    f"Job {job_id} is still {state} after {timeout}: "
                    "wait longer, or ask why it has not ended."
                )
            wait_for_write(self.store, mark, min(left, 60))

    def output(self, job: JobId, run: int) -> Log:
        """What a run of a job has written, to be read also while it is."""
        from svcq.logs import Log, log_file

        number = check_int(run, "run", 0, 1 << 31)
        log = Log(log_file(self.config.home, self._id(job), number))
        if self.config.store_is_shared and log.size() is None:
            elsewhere = self.output_elsewhere(job, number)
            if elsewhere is not None and elsewhere.log is not None:
                return elsewhere.log
        return log

    def output_elsewhere(self, job: JobId, run: int) -> Elsewhere | None:
        """Where another machine keeps the output of a run, and whether it can be had; None for
        what ran here."""
        if not self.config.store_is_shared:
            return None
        from svcq.client.elsewhere import find

        return find(self.store, self._id(job), run)

    def counts(self, queue: str | None = None) -> dict[str, int]:
        """How many jobs are in each state."""
        return self.store.counts(_text(queue, "queue"))

    def stats(self, queue: str | None = None, *, minutes: int = 60) -> list[QueueStats]:
        return self.store.stats(_text(queue, "queue"), check_int(minutes, "minutes", 1, 525_600))

    def activity(self, queue: str | None = None, *, minutes: int = 60) -> list[Activity]:
        return self.store.activity(_text(queue, "queue"), check_int(minutes, "minutes", 1, 525_600))

    def changes(self, after: int = 0, *, limit: int = 1000) -> list[Change]:
        """What happened since a change's number; the last one's number is the next cursor."""
        after = check_int(after, "cursor", 0, 1 << 62)
        return self.store.changes(after, check_int(limit, "limit", 1, 100_000))

    def mark(self) -> tuple[int, int]:
        """A cheap look at whether anything has happened: differs from the last one if so."""
        return self.store.write_mark()

    def follow(self, after: int | None = None) -> Follower:
        """Changes as they come, from a cursor or from now on."""
        from svcq.changes import Follower

        return Follower(
            self.store, None if after is None else check_int(after, "cursor", 0, 1 << 62)
        )

    def workers(self, *, ended: bool = False) -> list[Worker]:
        return self.store.workers(ended=ended)

    def clock(self) -> Standing:
        """Who fires schedules, and what comes next."""
        return self.store.clocks()

    def stop_worker(self, worker: int, *, now: bool = False) -> None:
        """Let a worker finish what it holds and end; `now` gives back what it runs."""
        self.store.drain(worker, now=now)

    # Steering

    def cancel(self, job: JobId) -> Job:
        """Stop a job: at once if it waits; if it runs, when its process has ended."""
        job_id = self._id(job)
        self.store.cancel(job_id)
        return self.store.get(job_id)

    def retry(self, job: JobId, *, copy: bool = False) -> Job:
        """Run an ended job again: the same job once more, or a new one like it."""
        job_id = self._id(job)
        if copy:
            return self.store.get(self.store.copy(job_id))
        self.store.retry(job_id)
        return self.store.get(job_id)

    def suspend(self, job: JobId, *, paused: bool = True) -> Job:
        """Let a running command stand still; with `paused=False` let it go on."""
        job_id = self._id(job)
        self.store.suspend(job_id, paused=paused)
        return self.store.get(job_id)

    def hold(self, job: JobId) -> Job:
        job_id = self._id(job)
        self.store.hold(job_id)
        return self.store.get(job_id)

    def release(self, job: JobId) -> Job:
        job_id = self._id(job)
        self.store.release(job_id)
        return self.store.get(job_id)

    def move(self, job: JobId, *, to_front: bool = True) -> Job:
        """Put a pending job first, or last, in its queue."""
        job_id = self._id(job)
        self.store.move(job_id, to_front=to_front)
        return self.store.get(job_id)

    def edit(
        self, job: JobId, *, command: Sequence[str] | str | None = None, **options: Any
    ) -> Job:
        """Change a job that waits: its command, or any of svcq.Options."""
        job_id = self._id(job)
        said = read_options(options)
        if said.cwd is not None:
            said = self._in_directory(said)
        plan = make_plan(said, default_queue=self.config.queue, owner=self._owner)
        fields = set(said_fields(said))
        text = None
        if command is not None:
            text = encode_command(command, self.config.jobs.max_payload)
            fields.add("command")
        self.store.edit(job_id, NewJob(plan, command=text), fields)
        return self.store.get(job_id)

    def retry_dead(self, queue: str | None = None) -> int:
        """Run all dead jobs again, but for those whose unique key is taken; how many there were."""
        from svcq.client.letters import retry_dead

        return retry_dead(self, _text(queue, "queue"))

    def purge(self, state: State | str | Collection[State | str], queue: str | None = None) -> int:
        """Remove all jobs in these states for good; how many there were."""
        return self.store.purge(_states(state), _text(queue, "queue"))

    def cleanup(self) -> int:
        """Remove what is past its retention; how many jobs there were."""
        return self.store.cleanup()

    # Queues

    def queue(self, name: str, **settings: Any) -> Queue:
        """A queue's settings, after changing those that are given; None removes one.

        paused, weight, concurrency, rate ("10/1m"), aging ("1h" or "never"), dead_letter,
        keep_completed, keep_dead, keep_cancelled, and the job policies max_attempts, backoff,
        backoff_base, backoff_cap, jitter, timeout, grace, on_lost, max_losses,
        max_interruptions, success, retry_on, reject, notify.
        """
        name = check_name(name, "queue")
        return self.store.set_queue(name, settings) if settings else self.store.queue(name)

    def queues(self) -> list[Queue]:
        return self.store.queues()

    def delete_queue(self, name: str) -> None:
        self.store.delete_queue(check_name(name, "queue"))

    def pause(self, queue: str) -> None:
        """Start nothing more from a queue; what runs goes on."""
        self.store.pause(check_name(queue, "queue"))

    def resume(self, queue: str) -> None:
        self.store.pause(check_name(queue, "queue"), paused=False)

    # The store as a whole

    def backup(self, target: str | os.PathLike[str], *, environments: bool = False) -> None:
        """Copy the store to a new file while it is in use."""
        self.store.backup(
            Path(clean_text(os.fspath(target), "file", 4096)), environments=environments
        )

    def export(self, *, environments: bool = False) -> Iterator[str]:
        """Everything in the store as lines of JSON."""
        return self.store.export(environments=environments)

    def import_lines(self, lines: Iterable[str]) -> int:
        """Add what `export` wrote; how many jobs there were."""
        return self.store.import_lines(lines)

    def _id(self, job: JobId) -> int:
        if isinstance(job, Job):
            return job.id
        if isinstance(job, str):
            if not job.isdecimal():
                return self.store.find_named(check_found(job))
            # Python reads no more digits than this at once, and no id has as many.
            job = int(job) if len(job) < 20 else job
        return check_int(job, "job id", 1, 1 << 62)

    # Last in the class: its name hides the built-in one from what follows.

    def list(
        self,
        *,
        state: State | str | Collection[State | str] | None = None,
        queue: str | None = None,
        task: str | None = None,
        tag: str | None = None,
        owner: str | None = None,
        since: Moment | None = None,
        grep: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Jobs, newest first; finished ones of one state by their end, due ones by their time.

        `before` is the id of the last job of the page before.
        """
        from svcq.store import Filter

        wanted = Filter(
            states=None if state is None else _states(state),
            queue=_text(queue, "queue"),
            task=_text(task, "task"),
            tag=_text(tag, "tag"),
            owner=_text(owner, "owner"),
            since_ms=None if since is None else parse_moment(since, "since"),
            grep=_text(grep, "text to look for"),
            before=None if before is None else check_int(before, "job id", 1, 1 << 62),
            limit=check_int(limit, "limit", 1, 100_000),
        )
        return self.store.list(wanted)


_ID, _CREATED, _ARGS, _KWARGS, _OPTIONS = map(
    Job._fields.index, ("id", "created_at", "args", "kwargs", "options")
)
_PLAIN = frozenset({str, int, float, bool, type(None)})


class _Likeness:
    """A usual call as a job. Others by the same plan differ from it in little, and are made so."""

    def __init__(self, plan: Plan, queue_options: str, job: Job) -> None:
        self._plan = plan  # kept, so that its id stays its own
        self._queue_options = queue_options
        self._values = list(job)

    def another(self, added: Added, args: Sequence[Any], kwargs: dict[str, Any]) -> Job | None:
        """None where its queue says something else by now, or only JSON can tell what becomes of
        the arguments (tuples, keys)."""
        if not (
            added.queue_options == self._queue_options
            and _PLAIN.issuperset(map(type, kwargs.values()))
            and (not args or _PLAIN.issuperset(map(type, args)))
        ):
            return None
        values = self._values.copy()
        values[_ID] = added.id
        values[_CREATED] = moment(added.at)
        values[_ARGS] = [*args]
        values[_KWARGS] = kwargs
        values[_OPTIONS] = values[_OPTIONS].copy()
        return Job._make(values)


_default: Client | None = None


def default_client() -> Client:
    """The client that `task.enqueue(...)` uses: of this account's home, unless configured."""
    if _default is None:
        set_default_client(Client())
    assert _default is not None
    return _default


def configure(**where: Any) -> Client:
    """Choose the default client; takes what Client takes."""
    client = Client(**where)
    set_default_client(client)
    return client


def set_default_client(client: Client | None) -> Client | None:
    """Replace the default client and return the one before."""
    global _default
    before, _default = _default, client
    return before


def _named(call: Mapping[str, Any], task: Queueable) -> dict[str, Any]:
    if not isinstance(call, Mapping):
        raise InvalidInput(
            f"The call {shown(call)} of {task!r} is not a mapping: "
            "give its arguments by their names."
        )
    return dict(call)


def check_found(name: str) -> str:
    """The name of a job that may be there."""
    try:
        return clean_text(name, "name")
    except InvalidInput as error:  # it cannot be the name of a job, so no job has it
        raise NotFound(str(error)) from None


def _text(value: str | None, what: str) -> str | None:
    return None if value is None else clean_text(value, what, MAX_SOUGHT)


def _states(state: State | str | Collection[State | str]) -> list[State]:
    several = isinstance(state, Collection) and not isinstance(state, str | Mapping)
    given: Collection[Any] = state if several else [state]
    known = list(State)
    unknown = [one for one in given if one not in known]
    if unknown:
        raise InvalidInput(f"There is no state {shown(unknown[0])}: use {', '.join(State)}.")
    return [State(one) for one in given]
