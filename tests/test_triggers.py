"""When a schedule fires, and what has passed, against counting one by one."""

from __future__ import annotations

from itertools import islice, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svcq.times import DAY, HOUR, MINUTE, SECOND
from svcq.triggers import MOST_COUNTED, Trigger

NOW = 1_800_000_000_000


@settings(deadline=None, max_examples=60)
@given(
    every=st.integers(1, 5000),
    anchor=st.integers(-20_000, 20_000),
    after=st.integers(-30_000, 30_000),
    start=st.none() | st.integers(-20_000, 20_000),
    end=st.none() | st.integers(-20_000, 40_000),
)
def test_an_interval(
    every: int, anchor: int, after: int, start: int | None, end: int | None
) -> None:
    anchor = anchor if start is None else start
    trigger = Trigger(every=every, anchor=anchor, start=start, end=end)
    times = [anchor + n * every for n in range(60_000 // every + 2)]
    expected = [at for at in times if at > after and (end is None or at <= end)]
    assert list(islice(trigger.after(after), 5)) == expected[:5]
    assert trigger.next_after(after) == (expected[0] if expected else None)


@settings(deadline=None, max_examples=60)
@given(
    trigger=st.one_of(
        st.integers(1, 400).map(lambda n: Trigger(every=n * MINUTE, anchor=NOW)),
        st.sampled_from(["*/7 * * * *", "0,30 2 * * *", "15 */5 * * 1-5"]).map(
            lambda cron: Trigger(cron=cron, zone="Europe/Paris")
        ),
    ),
    span=st.integers(0, 6 * DAY),
    keep=st.integers(1, 10),
    end=st.none() | st.integers(0, 6 * DAY),
)
def test_what_has_passed(trigger: Trigger, span: int, keep: int, end: int | None) -> None:
    first = trigger.next_after(NOW)
    assert first is not None
    trigger = trigger._replace(end=None if end is None else first + end)
    until = first + span
    times = list(takewhile(lambda at: at <= until, trigger.after(first - 1)))
    passed = trigger.passed(first, until, keep)
    assert passed.number == len(times)
    assert passed.latest == tuple(times[-keep:])


@pytest.mark.parametrize(
    "trigger",
    [
        Trigger(every=SECOND, anchor=NOW),
        Trigger(cron="* * * * *", zone="America/New_York"),
        Trigger(cron="* 3 * * *", zone="America/New_York"),
        Trigger(cron="* * 1 * *", zone="UTC"),
    ],
)
def test_so_many_that_nobody_counts_them(trigger: Trigger) -> None:
    first = trigger.next_after(NOW)
    assert first is not None
    until = first + 1500 * DAY + 11 * HOUR
    passed = trigger.passed(first, until, 5)
    assert passed.number == MOST_COUNTED
    assert len(passed.latest) == 5
    near = list(takewhile(lambda at: at <= until, trigger.after(until - 40 * DAY)))
    assert passed.latest == tuple(near[-5:])


def test_nothing_has_passed_where_a_zone_changed_its_mind() -> None:
    trigger = Trigger(cron="0 3 * * *", zone="UTC")
    assert trigger.passed(NOW + 1, NOW + MINUTE, 3) == (0, ())


def test_a_moment() -> None:
    trigger = Trigger(at=NOW)
    assert trigger.next_after(NOW - 1) == NOW
    assert trigger.next_after(NOW) is None
    assert trigger.passed(NOW, NOW + DAY, 3) == (1, (NOW,))


def test_between_start_and_end() -> None:
    trigger = Trigger(cron="0 * * * *", zone="UTC", start=NOW + HOUR, end=NOW + 3 * HOUR)
    assert list(trigger.after(0)) == [NOW + HOUR, NOW + 2 * HOUR, NOW + 3 * HOUR]
    assert trigger.next_after(NOW + 3 * HOUR) is None


@pytest.mark.parametrize(
    ("trigger", "follows"),
    [
        (Trigger(every=1), True),
        (Trigger(cron="*/5 2 * * *"), True),
        (Trigger(cron="5 2 * * *"), False),
        (Trigger(at=1), False),
    ],
)
def test_what_follows_the_clock(trigger: Trigger, follows: bool) -> None:
    assert trigger.follows_the_clock is follows
