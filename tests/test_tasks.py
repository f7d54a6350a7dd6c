"""Tasks: functions that are called here or queued."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import svcq
from svcq.client import Client
from svcq.errors import InvalidArguments, InvalidInput, NotFound, Refused
from svcq.execute import execute
from svcq.jobs import Claim, How, Outcome
from svcq.policy import Options, make_plan
from svcq.tasks import Task, TaskCall, find_task, running_job
from tests.clients import assert_sentence


@svcq.task
def bare(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


@svcq.task()
def empty_parentheses() -> None: ...


@svcq.task(queue="mail", priority=3, task_name="mail.send")
def named(to: str) -> str:
    return f"to {to}"


@svcq.task
async def slow_add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


RAISED: dict[str, Callable[[], Exception]] = {
    "retry": svcq.Retry,
    "retry later": lambda: svcq.Retry("the server sleeps", delay="5m"),
    "reject": lambda: svcq.Reject("no such address"),
    "snooze": lambda: svcq.Snooze("1h"),
    "break": lambda: ValueError("it broke"),
    "odd text": lambda: ValueError("nul \0 surrogate \udce9"),
}
RETURNED = {"object": object(), "too much": "x" * 3000, "nothing": None, "value": {"a": (1, 2)}}


@svcq.task
def ends(how: str) -> Any:
    """Ends as it is told."""
    if how in RAISED:
        error = RAISED[how]()
        raise error
    return RETURNED[how]


class Here:
    """A job as a worker shows it to its task."""

    id, run, attempt = 7, 1, 1
    cancelled = False

    def progress(self, fraction: float, note: str | None = None) -> None:
        raise AssertionError("no task here tells of progress")


def run(task: Task[..., Any], *args: Any) -> tuple[Outcome, list[Exception]]:
    import json

    errors: list[Exception] = []
    claim = Claim(
        id=7, run=1, worker=1, queue="q", task=task.name, command=None,
        args=json.dumps([args, {}]), options="{}", queue_options="{}", name=None, cwd=None,
        env=None, failures=0, started_at=0,
    )  # fmt: skip
    return execute(claim, Here(), 2000, errors.append), errors


def test_a_task_is_called_like_its_function() -> None:
    assert bare(1) == 3
    assert bare(1, b=5) == 6
    assert named("a") == "to a"
    assert asyncio.run(slow_add(1, 2)) == 3
    with pytest.raises(TypeError):
        bare()  # type: ignore[call-arg]


def test_a_task_shows_what_it_wraps() -> None:
    assert inspect.signature(bare) == inspect.signature(bare.function)
    assert (bare.__name__, bare.__doc__) == ("bare", "Adds.")
    assert inspect.unwrap(bare) is bare.function
    assert "tests.test_tasks.bare" in repr(bare)


def test_a_task_is_found_by_its_name() -> None:
    assert bare.name == "tests.test_tasks.bare"
    assert find_task("tests.test_tasks.bare") is bare
    assert find_task("mail.send") is named
    assert find_task(empty_parentheses.name) is empty_parentheses
    with pytest.raises(NotFound) as caught:
        find_task("tests.test_tasks.named")
    assert_sentence(caught.value, "tests.test_tasks.named")


@pytest.mark.parametrize("wrong", [{"priority": "high"}, {"delay": -1}, {"colour": 1}], ids=str)
def test_a_mistake_shows_where_the_task_is_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:

        @svcq.task(**wrong)
        def broken() -> None: ...

    assert_sentence(caught.value, *wrong)
    with pytest.raises(NotFound):
        find_task(f"{__name__}.broken")


@pytest.mark.parametrize("name", ["", "a\0", "\ud800", "x" * 300, 5], ids=lambda n: repr(n)[:9])
def test_names_that_a_task_cannot_have(name: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        svcq.task(task_name=name)(lambda: None)
    assert_sentence(caught.value)


def test_only_a_function_is_a_task() -> None:
    for wrong in (5, "text", None):
        with pytest.raises(InvalidInput) as caught:
            svcq.task()(wrong)  # type: ignore[type-var]
        assert_sentence(caught.value, wrong)


def test_options_are_merged_and_the_task_stays_as_it_was(client: Client) -> None:
    urgent = named.options(priority=9, tags=["a"])
    later = urgent.options(delay=60, priority=1)
    assert isinstance(later, TaskCall)
    jobs = [client.enqueue(task, "x") for task in (named, urgent, later)]
    assert [(job.queue, job.priority, job.tags) for job in jobs] == [
        ("mail", 3, ()), ("mail", 9, ("a",)), ("mail", 1, ("a",)),
    ]  # fmt: skip
    assert [job.state for job in jobs] == ["pending", "pending", "scheduled"]
    assert {job.task for job in jobs} == {"mail.send"}
    assert client.enqueue(named, "x").priority == 3


def test_the_same_task_serves_clients_with_other_defaults(client: Client) -> None:
    assert client.enqueue(bare, 1).queue == "default"
    with Client(config=client.config._replace(queue="other")) as other:
        assert other.enqueue(bare, 1).queue == "other"


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ("retry", Outcome(How.FAILED, error="asked to be retried")),
        ("retry later", Outcome(How.FAILED, error="the server sleeps", delay_ms=300_000)),
        ("reject", Outcome(How.REJECTED, error="no such address")),
        ("snooze", Outcome(How.SNOOZED, delay_ms=3_600_000)),
        ("nothing", Outcome(How.COMPLETED)),
        ("value", Outcome(How.COMPLETED, result='{"a":[1,2]}')),
    ],
)
def test_what_a_task_does_on_purpose(how: str, outcome: Outcome) -> None:
    assert run(ends, how) == (outcome, [])


def test_an_exception_is_a_failure_that_says_where(client: Client) -> None:
    outcome, errors = run(ends, "break")
    assert (outcome.how, outcome.error) == (How.FAILED, "ValueError: it broke")
    assert outcome.tail is not None
    assert "raise error" in outcome.tail
    assert [str(error) for error in errors] == ["it broke"]


@pytest.mark.parametrize("how", ["object", "too much"])
def test_a_result_that_cannot_be_kept_is_a_failure(how: str) -> None:
    outcome, errors = run(ends, how)
    assert outcome.how is How.FAILED
    assert_sentence(errors[0], "result", ends.name)
    assert str(errors[0]) in str(outcome.error)


def test_a_coroutine_is_run_to_its_end() -> None:
    assert run(slow_add, 2, 3)[0].result == "5"


UNSAYABLE = object()  # a default that has no source text
SIGNATURES: list[Callable[..., None]] = [
    lambda: None,
    lambda a, b=UNSAYABLE: None,
    lambda a, /, b: None,
    lambda a, /, *, b=(): None,
    lambda *args, b: None,
    lambda a=1, **kwargs: None,
    lambda a, /, **a_too: None,
    functools.partial(lambda a, b, c: None, c=3),
    functools.partial(lambda a, b: None, 1),
]
CALLS: list[tuple[tuple[int, ...], dict[str, int]]] = [
    (args, dict.fromkeys(names, 0))
    for args in [(), (1,), (1, 2), (1, 2, 3)]
    for names in ["", "a", "b", "c", "ab", "bc", "abc"]
]


@pytest.mark.parametrize("function", SIGNATURES, ids=range(len(SIGNATURES)))
def test_what_a_task_may_be_queued_with_is_what_its_function_takes(
    function: Callable[..., None],
) -> None:
    task = Task(function, "tests.any", svcq.Options())
    for args, kwargs in CALLS:
        try:
            function(*args, **kwargs)
        except TypeError:
            with pytest.raises(InvalidArguments, match=r"^The arguments do not fit tests\.any\("):
                task.check_arguments(args, kwargs)
        else:
            task.check_arguments(args, kwargs)


@pytest.mark.parametrize("arguments", [(), (1, 2, 3)])
def test_arguments_that_no_longer_fit_are_rejected(arguments: tuple[int, ...]) -> None:
    """The function may have changed since the job was queued."""
    outcome, errors = run(bare, *arguments)
    assert (outcome.how, errors) == (How.REJECTED, [])
    assert "do not fit" in str(outcome.error)


def test_a_task_that_is_not_there_is_rejected() -> None:
    gone = Task(lambda: None, "tests.gone", svcq.Options())
    outcome, _ = run(gone)
    assert outcome.how is How.REJECTED
    assert "'tests.gone'" in str(outcome.error)


def test_delays_of_exceptions_are_checked_where_they_are_raised() -> None:
    for make in (lambda: svcq.Retry(delay=-1), lambda: svcq.Snooze("soon")):
        with pytest.raises(InvalidInput) as caught:
            make()
        assert_sentence(caught.value, "delay of")


def test_there_is_no_current_job_outside_of_one() -> None:
    with pytest.raises(Refused) as caught:
        svcq.current_job()
    assert_sentence(caught.value)


def test_the_current_job_is_gone_when_the_task_has_ended() -> None:
    seen: list[int] = []

    @svcq.task
    def look() -> None:
        seen.append(svcq.current_job().id)
        raise ValueError

    run(look)
    assert seen == [7]
    with pytest.raises(LookupError):
        running_job.get()


def test_odd_characters_in_an_error_do_not_cost_the_report(client: Client) -> None:
    job = client.enqueue(ends.options(max_attempts=1), "odd text")
    (claim,) = client.fetch()
    outcome = execute(claim, Here(), 2000)
    client.fail(claim, str(outcome.error))
    assert client.get(job).error == "ValueError: nul � surrogate ?"


# What is told of it to those who cannot import it


def test_its_words_can_be_said_again() -> None:
    when = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    options: dict[str, Any] = {
        "queue": "mail", "timeout": timedelta(minutes=2), "grace": "1m30s", "max_attempts": 2,
        "tags": ("a", "b"), "memory": "2G", "run_at": when,
    }  # fmt: skip
    task = svcq.task(**options, task_name="told.of", env={"KEY": "secret"}, cwd="/")(lambda: None)
    again = Options(**json.loads(task.words))
    assert again.env is None
    assert again.cwd is None
    assert make_plan(again, default_queue="x") == make_plan(Options(**options), default_queue="x")
    assert json.loads(task.policy) == {
        "timeout": 120_000, "grace": 90_000, "max_attempts": 2, "memory": 2 << 30,
    }  # fmt: skip


def test_a_time_and_a_delay_displace_each_other() -> None:
    later = svcq.task(delay=30, task_name="told.later")(lambda: None)
    assert later.options(run_at="2030-01-01T00:00Z").plan("default", None).delay_ms == 0
    at = svcq.task(run_at="2030-01-01T00:00Z", task_name="told.at")(lambda: None)
    assert at.options(delay=30).plan("default", None).run_at is None
