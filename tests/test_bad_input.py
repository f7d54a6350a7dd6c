"""What a caller can get wrong: each is one sentence, leaves no trace, and harms nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import svcq
from svcq.client import Client
from svcq.errors import (
    DependencyCycle,
    InvalidArguments,
    InvalidInput,
    NameTaken,
    NotFound,
    UniqueTaken,
)
from tests.clients import open_client, refused

SURROGATE = "caf\udce9"


@svcq.task
def anything(*args: Any, **kwargs: Any) -> None: ...


@svcq.task
def strict(first: int, /, second: int, *, third: int = 3) -> None: ...


@svcq.task
def plain(to: str, subject: str = "") -> None: ...


def contains_itself() -> dict[str, Any]:
    knot: dict[str, Any] = {}
    knot["self"] = knot
    return knot


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


NOT_JSON = {
    "object": object(),
    "nan": float("nan"),
    "inf": float("-inf"),
    "nan inside": {"a": [float("nan")]},
    "nan as a key": {float("nan"): 1},
    "bytes": b"raw",
    "set": {1, 2},
    "path": Path("/"),
    "function": len,
    "contains itself": contains_itself(),
    "nested": nested(200_000),
    "key": {(1, 2): 3},
    "number too long to write": 10**5000,
    "surrogate": SURROGATE,
    "surrogate key": {SURROGATE: 1},
    "surrogate inside": [{"a": [SURROGATE]}],
    "nul": "a\0b",
    "nul key": {"\0": 1},
    "nul after a backslash": "\\\0",
}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
def test_arguments_that_are_not_json(client: Client, value: Any) -> None:
    with refused(client, InvalidArguments, anything.name):
        client.enqueue(anything, value)
    with refused(client, InvalidArguments, anything.name):
        client.enqueue(anything, named=value)
    with refused(client, InvalidArguments, anything.name):
        client.enqueue_many(anything, [{"fine": 1}, {"named": value}])


def test_text_that_looks_like_a_nul_is_fine(client: Client) -> None:
    job = client.enqueue(anything, "\\u0000", "\\\\u0000")
    assert client.get(job).args == ["\\u0000", "\\\\u0000"]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((1,), {}),
        ((1, 2, 3), {}),
        ((), {"first": 1, "second": 2}),
        ((1,), {"second": 2, "fourth": 4}),
        ((1, 2), {"second": 2}),
    ],
    ids=["none", "missing", "too many", "positional-only by name", "unknown name", "twice"],
)
def test_arguments_that_do_not_fit_the_function(
    client: Client, args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    with refused(client, InvalidArguments, "strict", "second"):
        client.enqueue(strict, *args, **kwargs)


@pytest.mark.parametrize("kwargs", [{}, {"subject": "x"}, {"to": "a", "cc": "b"}, {1: 2}], ids=str)
def test_named_arguments_that_do_not_fit(client: Client, kwargs: Any) -> None:
    with refused(client, InvalidArguments, "plain(to: 'str', subject: 'str' = '')"):
        client.enqueue_many(plain, [kwargs])


def test_arguments_that_do_fit(client: Client) -> None:
    client.enqueue(strict, 1, 2)
    client.enqueue(strict, 1, second=2, third=3)
    client.enqueue(plain, "a")
    client.enqueue(plain, to="a", subject="b")
    client.enqueue(anything)
    client.enqueue(anything, 1, 2, three=3)
    client.enqueue_many(anything, [{}, {"any": 1}])
    assert client.counts()["pending"] == 8


@pytest.mark.parametrize("call", [None, 5, "to", ["to"], {"to"}], ids=repr)
def test_calls_that_are_not_named_arguments(client: Client, call: Any) -> None:
    with refused(client, InvalidInput, "plain", call):
        client.enqueue_many(plain, [call])


@pytest.mark.parametrize("task", [len, "svcq.task", None], ids=repr)
def test_what_is_not_a_task(client: Client, task: Any) -> None:
    with refused(client, InvalidInput, task):
        client.enqueue(task)
    with refused(client, InvalidInput, task):
        client.enqueue_many(task, [])


def test_a_payload_over_the_limit(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[jobs]\nmax_payload = 2000\n")
    with open_client(home) as client:
        for call in (
            lambda: client.enqueue(anything, "ü" * 1000),
            lambda: client.enqueue_many(anything, [{}, {"a": "x" * 2000}]),
            lambda: client.command(["echo", "x" * 2000]),
            lambda: client.command("x" * 2000),
        ):
            with refused(client, InvalidArguments, "2,000", "max_payload"):
                call()
        with refused(client, InvalidArguments, "1,048,576"):
            client.command("true", env={"BIG": "x" * (1 << 20)})
        client.enqueue(anything, "x" * 1900)
        (claim,) = client.fetch("default")
        with refused(client, InvalidArguments, "2,000"):
            client.complete(claim, "x" * 2000)
        assert client.complete(claim, "x").state == "completed"


ABSURD_DURATIONS = [
    -1, -0.001, float("nan"), float("inf"), 10**30, "1 fortnight", "-5m", "", "x" * 5000,
    "9" * 400, "101y", "999999w", True, [5], b"5",
]  # fmt: skip


@pytest.mark.parametrize("value", ABSURD_DURATIONS, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("option", ["delay", "expires", "timeout", "grace", "backoff_cap"])
def test_absurd_durations(client: Client, option: str, value: Any) -> None:
    with refused(client, InvalidInput, option, repr(value)[:50]):
        client.command("true", **{option: value})


def test_a_timeout_of_nothing(client: Client) -> None:
    with refused(client, InvalidInput, "would end every run at once"):
        client.command("true", timeout=0)


def test_an_exit_code_with_two_meanings(client: Client) -> None:
    with refused(client, InvalidInput, "3 is in success and in reject"):
        client.command("true", success=[0, 3], reject=[3])


@pytest.mark.parametrize(
    "value",
    ["tomorrow", "", float("nan"), float("inf"), 1e300, -1e300, True, [1], "2031-13-01", b"2031"],
    ids=repr,
)
def test_absurd_times(client: Client, value: Any) -> None:
    with refused(client, InvalidInput, "run_at", value):
        client.command("true", run_at=value)


BAD_OPTIONS: list[tuple[dict[str, Any], object]] = [
    ({"queue": ""}, ""),
    ({"queue": "a b"}, "a b"),
    ({"queue": 5}, 5),
    ({"queue": "-x"}, "-x"),
    ({"queue": "q" * 101}, "q" * 20),
    ({"queue": SURROGATE}, SURROGATE),
    ({"name": ""}, ""),
    ({"name": "123"}, "123"),
    ({"name": "²"}, "²"),
    ({"name": "a\0"}, "a\0"),
    ({"name": SURROGATE}, SURROGATE),
    ({"name": "n" * 256}, "256"),
    ({"tags": "red"}, "red"),
    ({"tags": [SURROGATE]}, SURROGATE),
    ({"tags": ["a\0"]}, "a\0"),
    ({"tags": [""]}, ""),
    ({"tags": [5]}, 5),
    ({"tags": [str(i) for i in range(51)]}, "50"),
    ({"priority": 1001}, 1001),
    ({"priority": "high"}, "high"),
    ({"priority": 1.5}, 1.5),
    ({"hold": "yes"}, "yes"),
    ({"max_attempts": 0}, 0),
    ({"backoff": "never"}, "never"),
    ({"backoff": ["fixed"]}, ["fixed"]),
    ({"backoff_base": float("nan")}, "nan"),
    ({"jitter": 2}, 2),
    ({"on_lost": "panic"}, "panic"),
    ({"success": "0"}, "0"),
    ({"success": 0}, 0),
    ({"retry_on": ["x"]}, "x"),
    ({"reject": [2**40]}, 2**40),
    ({"unique_key": ""}, ""),
    ({"unique_key": "a\0"}, "a\0"),
    ({"unique_key": SURROGATE}, SURROGATE),
    ({"unique_for": 5}, "unique_key"),
    ({"unique_key": "k", "on_duplicate": "merge"}, "merge"),
    ({"after": 404}, 404),
    ({"after": [0]}, 0),
    ({"after": "1"}, "1"),
    ({"after": [True]}, True),
    ({"after": list(range(1, 1002))}, "1,001"),
    ({"after_any": [2**63]}, 2**63),
    ({"after": {1}}, "after"),
    ({"if_parent_fails": "cry"}, "cry"),
    ({"when": ""}, ""),
    ({"when": SURROGATE}, SURROGATE),
    ({"host": "a/b"}, "a/b"),
    ({"host": SURROGATE}, SURROGATE),
    ({"concurrency_key": SURROGATE}, SURROGATE),
    ({"concurrency_key": "a\0"}, "a\0"),
    ({"concurrency_key": "k", "concurrency": 0}, 0),
    ({"concurrency": 1}, "concurrency_key"),
    ({"notify": 1}, 1),
    ({"delay": 5, "run_at": 5}, 5),
    ({"env": "A=1"}, "environment"),
    ({"env": {"A": 1}}, "A"),
    ({"env": {5: "x"}}, 5),
    ({"env": {"": "x"}}, ""),
    ({"env": {"A=B": "x"}}, "A=B"),
    ({"env": {"A": "a\0"}}, "A"),
    ({"env": {"A": SURROGATE}}, "A"),
    ({"env": {SURROGATE: "x"}}, SURROGATE),
    ({"cwd": "no/such/place"}, "no/such/place"),
    ({"cwd": __file__}, __file__),
    ({"cwd": "a\0b"}, "a\\x00b"),
    ({"cwd": SURROGATE}, "caf"),
    ({"cwd": 5}, 5),
    ({"cwd": ""}, ""),
    ({"colour": "red"}, "colour"),
]


@pytest.mark.parametrize(("options", "named"), BAD_OPTIONS, ids=lambda value: repr(value)[:40])
def test_options_that_cannot_be(client: Client, options: dict[str, Any], named: object) -> None:
    with refused(client, svcq.SvcqError, named):
        client.command("true", **options)
    if "cwd" not in options:  # a task runs where its worker does
        with refused(client, svcq.SvcqError, named):
            client.enqueue(anything.options(**options))
    job = client.command("true", priority=1)
    with refused(client, svcq.SvcqError, named):
        client.edit(job, **options)
    assert client.get(job) == job


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("dealy", "delay"),
        ("max_atempts", "max_attempts"),
        ("quue", "queue"),
        ("retryon", "retry_on"),
    ],
)
def test_an_option_that_is_misspelt(client: Client, wrong: str, right: str) -> None:
    with refused(client, InvalidInput, wrong, f"did you mean {right}?"):
        client.command("true", **{wrong: 1})
    with refused(client, InvalidInput, wrong, f"did you mean {right}?"):
        anything.options(**{wrong: 1})


@pytest.mark.parametrize(
    "command",
    [
        "", "  ", [], [""], ["  ", "a"], [5], ["a", None], None, 5, b"ls", {"a": 1}, [["a"]],
        ["a"] * 5000 + [5],
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_commands_that_are_none(client: Client, command: Any) -> None:
    with refused(client, InvalidInput, repr(command)[:50]):
        client.command(command)


@pytest.mark.parametrize(
    "command", ["a\0b", ["a", "\0"], f"rm {SURROGATE}", ["rm", SURROGATE]], ids=repr
)
def test_commands_that_no_system_could_run(client: Client, command: Any) -> None:
    with refused(client, InvalidInput, "command"):
        client.command(command)


def test_the_current_directory_is_gone(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(InvalidInput, match="current directory was removed"):
        client.command("true")
    assert client.command("true", cwd="/").cwd == "/"


def test_a_parent_that_was_removed(client: Client) -> None:
    parent = client.command("true")
    client.purge("pending")
    with refused(client, NotFound, parent.id):
        client.command("true", after=[parent.id])


def test_jobs_that_would_wait_for_each_other(client: Client) -> None:
    first = client.command("true")
    second = client.command("true", after=first.id)
    third = client.command("true", after=second.id)
    for parent in (first, second, third):
        with refused(client, DependencyCycle, first.id, parent.id):
            client.edit(first, after=[parent.id])


def test_two_live_jobs_with_one_name(client: Client) -> None:
    job = client.command("true", name="daily")
    other = client.command("true")
    with refused(client, NameTaken, "daily", job.id):
        client.command("true", name="daily")
    with refused(client, NameTaken, "daily", job.id):
        client.edit(other, name="daily")
    client.cancel(job)
    assert client.command("true", name="daily").name == "daily"
    with refused(client, NameTaken, "daily"):
        client.retry(job)


def test_a_unique_key_that_is_taken(client: Client) -> None:
    job = client.command("true", unique_key="k")
    other = client.command("true", unique_key="other")
    with refused(client, UniqueTaken, "k", job.id):
        client.command("true", unique_key="k", on_duplicate="refuse")
    with refused(client, UniqueTaken, "k", job.id):
        client.edit(other, unique_key="k")
    client.cancel(job)
    client.command("true", unique_key="k")
    with refused(client, UniqueTaken, "k"):
        client.retry(job)


BAD_SETTINGS: list[tuple[dict[str, Any], object]] = [
    ({"weight": 0}, 0),
    ({"concurrency": -1}, -1),
    ({"rate": "fast"}, "fast"),
    ({"rate": "0/1m"}, 0),
    ({"rate": "5/0s"}, "5/0s"),
    ({"rate": (1, 2, 3)}, (1, 2, 3)),
    ({"aging": "1ms"}, "1ms"),
    ({"dead_letter": "a b"}, "a b"),
    ({"dead_letter": "mail"}, "mail"),
    ({"keep_dead": "long"}, "long"),
    ({"max_attempts": 0}, 0),
    ({"wieght": 2}, "did you mean weight?"),
    ({"conccurrency": 2}, "did you mean concurrency?"),
    ({"timout": 2}, "did you mean timeout?"),
    ({"paused": "maybe"}, "maybe"),
]


@pytest.mark.parametrize(("settings", "named"), BAD_SETTINGS, ids=repr)
def test_settings_that_a_queue_cannot_have(
    client: Client, settings: dict[str, Any], named: object
) -> None:
    with refused(client, InvalidInput, named):
        client.queue("mail", **settings)


@pytest.mark.parametrize("name", ["", "a b", SURROGATE, "a\0", 5, None], ids=repr)
def test_names_that_a_queue_cannot_have(client: Client, name: Any) -> None:
    for verb in (
        lambda: client.queue(name, weight=2),
        lambda: client.queue(name),
        lambda: client.pause(name),
        lambda: client.resume(name),
        lambda: client.delete_queue(name),
    ):
        with refused(client, svcq.SvcqError):
            verb()


@pytest.mark.parametrize("minutes", [0, -1, "x", 1.5, 10**9], ids=repr)
def test_spans_of_time_that_no_statistics_have(client: Client, minutes: Any) -> None:
    with refused(client, InvalidInput, minutes):
        client.stats(minutes=minutes)
    with refused(client, InvalidInput, minutes):
        client.activity(minutes=minutes)


def test_cursors_and_limits_that_are_none(client: Client) -> None:
    for call in (
        lambda: client.changes("x"),  # type: ignore[arg-type]
        lambda: client.changes(-1),
        lambda: client.changes(0, limit=0),
        lambda: client.follow("x"),  # type: ignore[arg-type]
        lambda: client.fetch(n=0),
        lambda: client.fetch(n="all"),  # type: ignore[arg-type]
        lambda: client.fetch(lease=-5),
        lambda: client.fetch(5),  # type: ignore[arg-type]
        lambda: client.counts(5),  # type: ignore[arg-type]
        lambda: client.counts(SURROGATE),
        lambda: client.stats(SURROGATE),
        lambda: client.activity(SURROGATE),
        lambda: client.purge("pending", queue=SURROGATE),
    ):
        with refused(client, InvalidInput):
            call()


def test_a_setting_that_is_misspelt_is_not_removed_either(client: Client) -> None:
    with refused(client, InvalidInput, "wieght"):
        client.queue("mail", wieght=None)
