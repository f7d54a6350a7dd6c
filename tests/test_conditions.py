"""Conditions: what is understood, and what follows from the facts."""

from __future__ import annotations

import pytest

from svcq.conditions import Verdict, check_condition, judge
from svcq.errors import InvalidInput
from svcq.host.unknown import Unknown
from svcq.policy import Options, make_plan

MISSING = Unknown("a test does not say")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("ac-power", "ac-power"),
        (" AC-Power ", "ac-power"),
        ("unmetered", "unmetered"),
        ("battery>30", "battery>30"),
        ("battery > 30 %", "battery>30"),
        ("battery>30.50", "battery>30.5"),
        ("battery>100", "battery>100"),
        ("idle>10m", "idle>10m"),
        ("idle > 600", "idle>10m"),
        ("idle>1d1h1m", "idle>90060000ms"),
        ("load<2", "load<2"),
        ("load < 0.5", "load<0.5"),
        ("load<0.000001", "load<1e-06"),
    ],
)
def test_what_is_understood(given: str, kept: str) -> None:
    assert check_condition(given) == kept
    assert check_condition(kept) == kept


@pytest.mark.parametrize(
    "given",
    ["", "ac", "battery", "battery<30", "battery>101", "battery>-1", "battery>x", "idle", "idle>x",
     "idle<10m", "load>2", "load<nan", "load<2%", "load<", "ac-power,unmetered", None, 7],
)  # fmt: skip
def test_what_is_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match="is not understood: give ac-power, battery>30"):
        check_condition(given)


def test_a_job_keeps_a_condition_in_its_plain_form() -> None:
    assert make_plan(Options(when="battery > 30%"), default_queue="q").condition == "battery>30"
    with pytest.raises(InvalidInput, match="The condition 'ac-powr' is not understood"):
        make_plan(Options(when="ac-powr"), default_queue="q")


@pytest.mark.parametrize(
    ("condition", "facts", "verdict"),
    [
        ("ac-power", {"mains": True}, (True, "this machine is on mains power")),
        (
            "ac-power",
            {"mains": False, "battery": 43.0},
            (False, "this machine runs on battery, 43 %"),
        ),
        ("ac-power", {"mains": False, "battery": MISSING}, (False, "this machine runs on battery")),
        (
            "battery>30",
            {"battery": 20},
            (False, "the battery is at 20 %, and it waits for more than 30 %"),
        ),
        (
            "battery>30",
            {"battery": 30},
            (False, "the battery is at 30 %, and it waits for more than 30 %"),
        ),
        ("battery>30", {"battery": 31}, (True, "the battery is at 31 %")),
        (
            "idle>10m",
            {"idle": 0.0},
            (False, "this machine is in use, and it waits for more than 10m of idleness"),
        ),
        (
            "idle>10m",
            {"idle": 90.4},
            (
                False,
                "this machine has been idle for 1m30s, and it waits for more than 10m of idleness",
            ),
        ),
        ("idle>10m", {"idle": 601}, (True, "this machine has been idle for 10m1s")),
        ("load<2", {"load": 3.1}, (False, "the load is 3.10, and it waits for less than 2")),
        ("load<2", {"load": 0.25}, (True, "the load is 0.25")),
        ("unmetered", {"unmetered": True}, (True, "the network is not metered")),
        ("unmetered", {"unmetered": False}, (False, "the network is metered")),
        ("ac-power", {"mains": MISSING}, (None, "a test does not say")),
        ("battery>30", {"battery": MISSING}, (None, "a test does not say")),
        ("idle>10m", {"idle": MISSING}, (None, "a test does not say")),
        ("load<2", {"load": MISSING}, (None, "a test does not say")),
        ("unmetered", {"unmetered": MISSING}, (None, "a test does not say")),
    ],
)
def test_what_follows(
    condition: str, facts: dict[str, float | Unknown], verdict: tuple[bool | None, str]
) -> None:
    """What is not in `facts` must not be asked for: it may cost a process."""
    assert judge(condition, facts.__getitem__) == Verdict(*verdict)


def test_one_that_an_older_store_holds() -> None:
    holds, says = judge("full moon", {}.__getitem__)
    assert holds is None
    assert "understands it" in says
