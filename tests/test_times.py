"""Durations and moments, as people write them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from svcq.errors import InvalidInput
from svcq.times import DAY, LONGEST, format_duration, iso, now_ms, parse_duration, parse_moment


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (0, 0),
        (90, 90_000),
        (1.5, 1500),
        (0.0004, 0),
        ("90", 90_000),
        ("1.5", 1500),
        ("250ms", 250),
        ("90s", 90_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        (" 7D ", 7 * DAY),
        ("2w", 14 * DAY),
        (timedelta(minutes=2), 120_000),
        (timedelta(microseconds=1500), 1),
        ("36500d", LONGEST),
    ],
)
def test_a_duration_is_seconds_words_or_a_timedelta(value: float | str, ms: int) -> None:
    assert parse_duration(value) == ms


@pytest.mark.parametrize(
    "value",
    [
        -1, -0.5, "-1", 10**12, 10**400, "36501d", timedelta(-1), timedelta.max, float("inf"),
        float("nan"), "nan", "inf", "1e400", "", " ", "soon", "5 m", "5y", "m5", "1h-5m", "5mm",
        True, None, [5], {"s": 5}, b"5s", "5\0s", "5\ud800",
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_duration_is_named(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_duration(value, "delay")  # type: ignore[arg-type]
    sentence = str(caught.value)
    assert sentence.startswith(f"The delay {value!r}"[:30])
    assert sentence.endswith(".")
    assert "give" in sentence
    assert "\n" not in sentence
    sentence.encode()


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0ms"),
        (350, "350ms"),
        (1000, "1s"),
        (90_000, "1m30s"),
        (5_400_000, "1h30m"),
        (2 * DAY, "2d"),
        (15 * DAY + 3_600_000, "2w1d"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(ms: int, words: str) -> None:
    assert format_duration(ms) == words


MOMENT = 1_935_284_400_000


@pytest.mark.parametrize(
    "value",
    [
        datetime(2031, 4, 30, 3, 0, tzinfo=UTC),
        datetime(2031, 4, 30, 5, 0, tzinfo=timezone(timedelta(hours=2))),
        1_935_284_400,
        1_935_284_400.0,
        "2031-04-30T03:00:00Z",
        " 2031-04-30T05:00:00+02:00 ",
        "2031-04-30 03:00+00:00",
    ],
)
def test_a_moment_is_a_datetime_seconds_or_iso_text(value: datetime | float | str) -> None:
    assert parse_moment(value) == MOMENT


def test_a_moment_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-02:00")
    time.tzset()
    try:
        assert parse_moment("2031-04-30T05:00:00") == MOMENT
        assert parse_moment(datetime(2031, 4, 30, 5)) == MOMENT  # noqa: DTZ001
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "value",
    [
        "tomorrow", "", "2031-13-01", "2031-02-30T00:00", "12:00", float("nan"), float("inf"),
        1e18, -1e18, True, None, [1], b"2031-04-30", "2031-04-30\0",
        datetime.max.replace(tzinfo=UTC), 1_935_284_400_000,
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_what_is_no_moment_is_named(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_moment(value, "run_at")  # type: ignore[arg-type]
    sentence = str(caught.value)
    assert sentence.startswith(f"The run_at {value!r}"[:40])
    assert "give" in sentence
    assert sentence.endswith(".")


@pytest.mark.parametrize("ms", [0, MOMENT, MOMENT + 1, MOMENT + 999])
def test_a_moment_in_json_can_be_read_back(ms: int) -> None:
    shown = iso(ms)
    assert shown is not None
    assert shown.endswith("Z")
    assert parse_moment(shown) == ms


def test_no_moment_is_nothing() -> None:
    assert iso(None) is None


def test_now_is_in_milliseconds() -> None:
    assert abs(now_ms() - time.time() * 1000) < 60_000
