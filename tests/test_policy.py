"""Options: every one is checked when it is given, with a sentence that names the value."""

from __future__ import annotations

from typing import Any

import pytest

from svcq.config import JobDefaults
from svcq.errors import InvalidArguments, InvalidInput
from svcq.policy import (
    OPTION_NAMES,
    NewJob,
    Options,
    Plan,
    encode_json,
    make_plan,
    policy_of,
    said_fields,
)

SURROGATE = "a\udc80b"
NO_TEXT = ["", 5, b"x", "a\0b", SURROGATE]
NO_NAME = [*NO_TEXT, "a b", "-a", "a/b", "x" * 101]
NO_DURATION = [-1, "soon", float("nan"), float("inf"), 10**12, True, [5]]
NO_BOOL = [1, "yes", []]
NO_JOBS = [0, -3, "7", [1, "7"], [True], 1.5, [0], list(range(1, 1002)), {1}]
NO_CODES = ["0", 0, [0, "1"], [2**40], [1.5], [True]]
NO_SIZE = ["much", 10, "10", -5, True, "5X", 2**60]

BAD: dict[str, list[Any]] = {
    "queue": NO_NAME,
    "name": [*NO_TEXT, "123", "x" * 256],
    "tags": ["word", 5, ["a b"], [""], [5], ["x"] * 51, [SURROGATE]],
    "priority": [1001, -1001, 1.5, "3", True],
    "delay": NO_DURATION,
    "run_at": ["soon", float("nan"), 1e18, True, [5], ""],
    "expires": NO_DURATION,
    "hold": NO_BOOL,
    "max_attempts": [0, -1, 1001, 2.5, "3", True],
    "backoff": ["random", "", 5, []],
    "backoff_base": [-1, 86_401, float("nan"), "2", True],
    "backoff_cap": NO_DURATION,
    "jitter": [-0.1, 1.1, float("nan"), "0.1", True],
    "timeout": NO_DURATION,
    "grace": NO_DURATION,
    "on_lost": ["maybe", 1, []],
    "max_losses": [-1, 1001, 0.5, "3"],
    "max_interruptions": [-1, 10**7, 0.5, "3"],
    "success": NO_CODES,
    "retry_on": NO_CODES,
    "reject": NO_CODES,
    "unique_key": [*NO_TEXT, "x" * 256],
    "unique_for": NO_DURATION,
    "on_duplicate": ["ignore", 1, []],
    "after": NO_JOBS,
    "after_any": NO_JOBS,
    "if_parent_fails": ["explode", 1, []],
    "when": [*NO_TEXT, "x" * 256],
    "host": NO_NAME,
    "concurrency_key": [*NO_TEXT, "x" * 256],
    "concurrency": [0, -1, 10**7, 1.5, True],
    "notify": NO_BOOL,
    "tty": NO_BOOL,
    "max_output": NO_SIZE,
    "when_over": ["burst", 1],
    "keep_awake": ["sometimes", True],
    "nice": [-21, 20, 1.5, "3"],
    "cpus": [0, 5000, 0.5],
    "memory": NO_SIZE,
    "cwd": [*NO_TEXT, "/" + "x" * 4096],
    "env": [["A=1"], "A=1", {"A": 1}, {"A=B": "1"}, {"": "1"}, {"A": "\0"}, {"A": SURROGATE}],
}
# What an option cannot be given without.
COMPANY = {"unique_for": {"unique_key": "k"}, "concurrency": {"concurrency_key": "k"}}


def plan_of(**options: Any) -> Plan:
    return make_plan(Options(**options), default_queue="default")


def test_every_option_has_its_bad_values_here() -> None:
    assert set(BAD) == set(OPTION_NAMES)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        pytest.param(option, value, id=f"{option} {i}")
        for option, values in BAD.items()
        for i, value in enumerate(values)
    ],
)
def test_a_value_that_makes_no_sense_is_named(option: str, value: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_of(**{**COMPANY.get(option, {}), option: value})
    sentence = str(caught.value)
    assert sentence.startswith("The ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 500
    sentence.encode()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("priority", 1001, "1001 is not a whole number from -1,000 to 1,000"),
        ("queue", "a b", "'a b' is not a name: use letters"),
        ("name", "123", "'123' is all digits, like an id: add a letter"),
        ("delay", -5, "-5 is out of range: give 0 seconds to 100 years"),
        ("backoff", "random", "'random' is unknown: use exponential or linear or fixed"),
        ("unique_key", "x" * 300, "has 300 characters: give at most 255"),
        ("cwd", "a\0b", "contains a NUL character"),
        ("after", list(range(1, 1002)), "names 1,001 jobs: give at most 1,000"),
    ],
)
def test_a_sentence_has_the_value_and_the_remedy(option: str, value: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_of(**{option: value})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay": 5, "run_at": 1_900_000_000}, "Both delay 5 and run_at 1900000000"),
        ({"unique_for": 5}, "unique_for is given without unique_key"),
        ({"concurrency": 5}, "concurrency is given without concurrency_key"),
    ],
)
def test_options_that_do_not_go_together_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        plan_of(**options)


def test_a_plan_is_in_the_units_of_the_store() -> None:
    plan = plan_of(
        delay="1m", expires=60, tags=["b", "a", "b"], after=3, after_any=[5, 4, 5],
        timeout="2m", unique_key="k", unique_for="1h",
    )  # fmt: skip
    assert (plan.delay_ms, plan.expires_ms, plan.unique_ms) == (60_000, 60_000, 3_600_000)
    assert (plan.tags, plan.after, plan.after_any) == (("a", "b"), (3,), (5, 4))
    assert plan.policy == '{"timeout":120000}'
    assert plan_of().plain


def test_options_over_others_speak_where_they_say_something() -> None:
    base = Options(queue="mail", priority=3, hold=False)
    merged = Options(priority=0).over(base)
    assert (merged.queue, merged.priority, merged.hold) == ("mail", 0, False)
    assert Options().over(base) == base


def test_what_was_said_is_known_by_the_names_of_the_plan() -> None:
    said = said_fields(Options(queue="a", delay=1, timeout=2, hold=False, when="idle>10m"))
    assert said == {"queue", "delay_ms", "policy", "held", "condition"}


def test_a_policy_is_the_job_over_the_queue_over_the_configuration() -> None:
    policy = policy_of(
        JobDefaults(), '{"max_attempts":5,"jitter":0.5}', '{"max_attempts":9,"of_tomorrow":1}'
    )
    assert (policy.max_attempts, policy.jitter) == (9, 0.5)
    assert policy.backoff == JobDefaults().backoff


def test_a_wait_never_overflows() -> None:
    policy = policy_of(JobDefaults(), '{"backoff_base":86400,"jitter":0,"backoff_cap":1000}')
    assert {policy.retry_delay(n) for n in (1, 64, 1000, 10**6)} == {1000}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1, 2}, "are not JSON"),
        (float("nan"), "are not JSON"),
        ([object()], "are not JSON"),
        ("a\0", "contain a NUL"),
        ({"a\0": 1}, "contain a NUL"),
        (SURROGATE, "a lone surrogate"),
        ("x" * 2000, r"take 2,002 bytes, over the limit of 1,000"),
        ("é" * 600, r"take 1,202 bytes, over the limit of 1,000"),
    ],
)
def test_arguments_that_cannot_be_kept_are_refused(value: Any, words: str) -> None:
    with pytest.raises(InvalidArguments, match=words):
        encode_json(value, "arguments", 1000)


def test_arguments_that_contain_themselves_are_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (loop, deep):
        with pytest.raises(InvalidArguments, match=r"The arguments .*: pass"):
            encode_json(value, "arguments", 1 << 20)


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", "\\", "é", {"a": [1, None, True, 2.5]}])
def test_what_only_looks_wrong_is_kept(value: Any) -> None:
    import json

    assert json.loads(encode_json(value, "arguments", 1000)) == value


def test_a_job_is_a_task_or_a_command() -> None:
    assert NewJob(Plan("q"), "send").kind == "task"
    assert NewJob(Plan("q"), command='["ls"]').kind == "command"
