"""Tasks: Python functions that can be queued.

@svcq.task(queue="mail", max_attempts=5, timeout=60)
def send(to: str, subject: str) -> None: ...

send("a@example.org", "hi")                                    # runs here and now
send.enqueue("a@example.org", subject="hi")                    # runs in a worker
send.options(delay=30, priority=5).enqueue("a@example.org", subject="hi")
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

from svcq.client import default_client
from svcq.errors import InvalidArguments, InvalidInput, NotFound, Refused
from svcq.policy import (
    NewJob,
    Options,
    Plan,
    clean_text,
    encode_json,
    make_plan,
    read_options,
)
from svcq.times import Duration, parse_duration

if TYPE_CHECKING:
    from svcq.jobs import Job
    from svcq.schedules import Schedule

P = ParamSpec("P")
R = TypeVar("R")

_registry: dict[str, Task[..., Any]] = {}


class Retry(Exception):
    """Raised by a task: this attempt failed, try again after `delay` (or the usual backoff)."""

    svcq_outcome = "retry"  # how a runner, which may have another svcq or none, knows it

    def __init__(self, message: str = "asked to be retried", *, delay: Duration | None = None):
        super().__init__(message)
        self.delay_ms = None if delay is None else parse_duration(delay, "delay of Retry")


class Reject(Exception):
    """Raised by a task: it can never succeed, so do not try again."""

    svcq_outcome = "reject"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(Exception):
    """Raised by a task: nothing failed, run me again after `delay`."""

    svcq_outcome = "snooze"

    def __init__(self, delay: Duration) -> None:
        super().__init__(f"snoozed for {delay}")
        self.delay_ms = parse_duration(delay, "delay of Snooze")


class CurrentJob(Protocol):
    """The job a task runs in."""

    id: int
    run: int
    attempt: int

    def progress(self, fraction: float, note: str | None = None) -> None: ...

    @property
    def cancelled(self) -> bool:
        """Whether someone wants the job to stop; a task that looks can end cleanly."""
        ...


running_job: ContextVar[CurrentJob] = ContextVar("svcq_job")


def current_job() -> CurrentJob:
    """The job this code runs in."""
    try:
        return running_job.get()
    except LookupError:
        raise Refused(
            "No job is running here: current_job() is for code that a task calls."
        ) from None


class TaskCall:
    """A task with options: what a client can queue."""

    def __init__(self, task: Task[..., Any], options: Options) -> None:
        self.task = task
        self.said = options
        self._plans: dict[tuple[str, str | None], Plan] = {}

    def plan(self, default_queue: str, owner: str | None) -> Plan:
        plan = self._plans.get((default_queue, owner))
        if plan is None:
            plan = make_plan(self.said, default_queue=default_queue, owner=owner)
            self._plans[default_queue, owner] = plan
        return plan

    def new_job(
        self, plan: Plan, limit: int, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> NewJob:
        """A job of this task, its arguments checked against the function and for JSON."""
        task = self.task
        task.check_arguments(args, kwargs)
        return NewJob(plan, task.name, encode_json((args, kwargs), task.arguments_are, limit))

    def enqueue(self, *args: Any, **kwargs: Any) -> Job:
        """Queue a call of this task with the default client."""
        return default_client().enqueue(self, *args, **kwargs)

    def enqueue_many(self, calls: Sequence[Mapping[str, Any]]) -> list[int]:
        """Queue many calls in one transaction; each is a mapping of named arguments."""
        return default_client().enqueue_many(self, calls)

    def schedule(self, name: str, /, **how: Any) -> Schedule:
        """Queue this task again and again, with the default client: see Client.schedule."""
        return default_client().schedule(name, self, **how)

    def options(self, **options: Any) -> TaskCall:
        """The same task with more options; see svcq.Options for what there is."""
        return TaskCall(self.task, read_options(options).over(self.said))


class Task(TaskCall, Generic[P, R]):
    """A function that can be called here or queued."""

    def __init__(self, function: Callable[P, R], name: str, options: Options) -> None:
        super().__init__(self, options)
        self.function = function
        self.name = name
        self.arguments_are = f"arguments of {name}"
        self._signature = inspect.signature(function)
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__wrapped__ = function
        # A mistake shows where it was written.
        self.policy = make_plan(options, default_queue="default").policy
        self.words = _as_words(options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<svcq task {self.name}>"

    if TYPE_CHECKING:

        def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job: ...

    def check_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Refuse arguments that the function would not take."""
        try:
            self._stand_in(*args, **kwargs)
        except TypeError:
            self._explain(args, kwargs)

    @cached_property
    def _stand_in(self) -> Callable[..., None]:
        """Takes what the function takes, and does nothing: Python looks at the arguments of a call
        ten times as fast as `signature.bind`."""
        absent = inspect.Parameter.empty
        parameters = [
            parameter.replace(
                annotation=absent, default=absent if parameter.default is absent else None
            )
            for parameter in self._signature.parameters.values()
        ]
        names = str(inspect.Signature(parameters))[1:-1]
        stand_in: Callable[..., None] = eval(f"lambda {names}: None", {})  # noqa: S307 - names alone
        return stand_in

    def _explain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArguments(
                f"The arguments do not fit {self.name}{self._signature} ({error}): "
                "call it as its definition says."
            ) from None


def _as_words(options: Options) -> str:
    """The options as JSON, for those who queue the task by its name and cannot import it."""
    # A directory and variables are the caller's own, and may be none of others' business.
    said = {name: value for name, value in options.said().items() if name not in ("cwd", "env")}
    return json.dumps(said, default=_as_word)


def _as_word(value: object) -> float | str:
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...


@overload
def task(
    *, task_name: str | None = None, **options: Any
) -> Callable[[Callable[P, R]], Task[P, R]]: ...


def task(
    function: Callable[..., Any] | None = None, /, *, task_name: str | None = None, **options: Any
) -> Any:
    """Make a function a task. Options hold for every job of it; `task_name` replaces its path."""
    if function is not None:
        return _make_task(function, None, Options())
    checked = read_options(options)
    return lambda function: _make_task(function, task_name, checked)


def _make_task(function: Callable[P, R], task_name: str | None, options: Options) -> Task[P, R]:
    if not callable(function):
        raise InvalidInput(f"A task must be a function, not {function!r}.")
    name = task_name
    if name is None:
        name = f"{function.__module__}.{function.__qualname__}"
    made = Task(function, clean_text(name, "task name"), options)
    _registry[name] = made
    return made


def find_task(name: str) -> Task[..., Any]:
    """The task of that name among the modules imported so far."""
    try:
        return _registry[name]
    except KeyError:
        raise NotFound(
            f"No task is named {name!r} here: import the module that defines it first."
        ) from None


def known_tasks() -> dict[str, Task[..., Any]]:
    """All tasks of the modules imported so far, by name; a runner asks for them."""
    return dict(_registry)
