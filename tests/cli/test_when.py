"""Times as people say them, on ordinary days and on those when clocks change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from svcq.errors import InvalidInput
from svcq.when import parse_past, parse_time

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(autouse=True)
def _in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)


def same(moment: datetime, expected: datetime) -> bool:
    return moment.timestamp() == expected.timestamp()


WEDNESDAY = "2031-01-15 12:00"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("03:00", "2031-01-16 03:00"),
        ("13:30", "2031-01-15 13:30"),
        ("12:00", "2031-01-15 12:00"),
        ("23:59:59", "2031-01-15 23:59:59"),
        ("3pm", "2031-01-15 15:00"),
        ("3:30 pm", "2031-01-15 15:30"),
        ("12am", "2031-01-16 00:00"),
        ("today 18:00", "2031-01-15 18:00"),
        ("Tomorrow 03:00", "2031-01-16 03:00"),
        ("tomorrow at 3am", "2031-01-16 03:00"),
        ("fri 18:30", "2031-01-17 18:30"),
        ("friday 18:30", "2031-01-17 18:30"),
        ("wed 18:30", "2031-01-15 18:30"),
        ("wed 08:00", "2031-01-22 08:00"),
        ("in 90m", "2031-01-15 13:30"),
        ("in 1h 30m", "2031-01-15 13:30"),
        ("now", "2031-01-15 12:00"),
        ("2031-05-01 03:00", "2031-05-01 03:00"),
        ("2031-05-01T03:00", "2031-05-01 03:00"),
        ("2031-05-01", "2031-05-01 00:00"),
    ],
)
def test_times_to_come(said: str, meant: str) -> None:
    assert same(parse_time(said, at(WEDNESDAY)), at(meant))


def test_a_zone_is_heard() -> None:
    moment = parse_time("2031-05-01T03:00+00:00", at(WEDNESDAY))
    assert same(moment, at("2031-05-01 05:00"))


@pytest.mark.parametrize(
    "said",
    ["", " ", "soon", "3", "25:00", "12:60", "13pm", "0am", "tomorrow", "fri", "fri 25:00",
     "xyz 03:00", "we 03:00", "2031-13-01", "2031-05-01 25:00", "in", "in a while", "03:00 04:00",
     "9999999999999", "tomorrow yesterday", "\x00"],
)  # fmt: skip
def test_nonsense_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput, match=r"not understood|not a duration"):
        parse_time(said, at(WEDNESDAY))


@pytest.mark.parametrize("said", ["today 11:59", "2031-01-15 11:59", "2001-01-01", "0001-01-01"])
def test_the_past_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput, match=r"is past|not understood"):
        parse_time(said, at(WEDNESDAY))


def test_tomorrow_is_a_day_of_the_calendar_when_clocks_go_forward() -> None:
    # On 2031-03-30, 02:00 becomes 03:00.
    evening = at("2031-03-29 12:00")
    moment = parse_time("tomorrow 12:00", evening)
    assert same(moment, at("2031-03-30 12:00"))
    assert moment.timestamp() - evening.timestamp() == timedelta(hours=23).total_seconds()


def test_a_time_that_is_skipped_is_as_much_later() -> None:
    assert same(parse_time("02:30", at("2031-03-29 20:00")), at("2031-03-30 03:30"))


def test_of_a_time_that_comes_twice_the_next_is_meant() -> None:
    # On 2031-10-26, 03:00 becomes 02:00 again.
    first, second = at("2031-10-26 02:30"), at("2031-10-26 02:30", fold=1)
    assert same(parse_time("02:30", at("2031-10-25 20:00")), first)
    assert same(parse_time("02:30", at("2031-10-26 02:40")), second)
    assert same(parse_time("02:30", at("2031-10-26 02:10", fold=1)), second)
    assert same(parse_time("02:30", at("2031-10-26 02:40", fold=1)), at("2031-10-27 02:30"))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2h", "2031-01-15 10:00"),
        ("2h ago", "2031-01-15 10:00"),
        ("1h 30m", "2031-01-15 10:30"),
        ("today", "2031-01-15 00:00"),
        ("yesterday", "2031-01-14 00:00"),
        ("yesterday 09:00", "2031-01-14 09:00"),
        ("09:00", "2031-01-15 09:00"),
        ("13:00", "2031-01-14 13:00"),
        ("mon", "2031-01-13 00:00"),
        ("wed", "2031-01-15 00:00"),
        ("wed 13:00", "2031-01-08 13:00"),
        ("2031-01-01", "2031-01-01 00:00"),
    ],
)
def test_times_that_were(said: str, meant: str) -> None:
    assert same(parse_past(said, at(WEDNESDAY)), at(meant))


@pytest.mark.parametrize("said", ["", "once", "mon 99:99", "today x", "yesterday now"])
def test_nonsense_about_the_past_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput, match=r"not understood"):
        parse_past(said, at(WEDNESDAY))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2031-05-01 03:00", "2031-05-01T03:00+09:00"),
        ("2031-05-01T03:00+00:00", "2031-05-01T03:00+00:00"),
        ("tomorrow 00:30", "2026-07-17T00:30+09:00"),
        ("23:00", "2026-07-16T23:00+09:00"),
        ("in 2h", "2026-07-15T20:00+00:00"),
    ],
)
def test_another_zone_can_be_named(said: str, meant: str) -> None:
    # In Tokyo it is the sixteenth already.
    now = datetime.fromisoformat("2026-07-15T18:00+00:00")
    assert parse_time(said, now, zone=ZoneInfo("Asia/Tokyo")) == datetime.fromisoformat(meant)


def test_another_zone_has_changes_of_its_own() -> None:
    york, now = ZoneInfo("America/New_York"), datetime.fromisoformat("2027-03-14T00:00+00:00")
    skipped = parse_time("2027-03-14 02:30", now, zone=york)
    assert skipped.isoformat() == "2027-03-14T03:30:00-04:00"


def test_what_is_past_may_be_meant() -> None:
    assert same(parse_time("2020-01-01", at(WEDNESDAY), past=True), at("2020-01-01T00:00"))
