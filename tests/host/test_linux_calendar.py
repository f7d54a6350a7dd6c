"""What a timer of systemd is told, against what systemd makes of it and what crontab(5) means."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svcq.cron import Cron, parse_cron
from svcq.errors import InvalidInput, Refused
from svcq.host.linux_calendar import calendar_lines
from svcq.host.wanted import Interval, Once, Pattern

# An hour at night, an hour at night elsewhere, half an hour, an hour at midnight, and by the moon;
# the last two have their standard time in summer.
ZONES = [
    "UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Santiago",
    "Africa/Casablanca", "Europe/Dublin",
]  # fmt: skip
EXPRESSIONS = [
    "0 3 * * *", "30 2 * * *", "0,30 0-3 * * *", "15 1,2 * * *", "0 0 * * *", "59 23 * * *",
    "*/10 * * * *", "*/15 1-4 * * *", "0 * * * *", "7 */2 * * *", "45 0-2/1 * * *",
    "0 3 * * 0", "30 2 * * 7", "0 0 13 * 5", "0 4 1-7 * 1", "*/30 2 */10 * 1", "0 12 31 * *",
    "30 1 29 2 *", "20 2 * 3,10,11 sun", "5-59/20 22-23 * * *", "@weekly", "@monthly", "@yearly",
]  # fmt: skip
ELAPSE = re.compile(r"(?:Next elapse|Iter\. #\d+): \w{3} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")


def pattern(cron: Cron) -> Pattern:
    return Pattern(
        cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays, cron.either_day,
        cron.fixed, cron.zone,
    )  # fmt: skip


def elapses(lines: Sequence[str], begin: datetime, end: datetime) -> set[datetime]:
    """When systemd says that these lines come by."""
    return {at for line in lines for at in _elapses_of(line, begin, end)}


@cache
def _elapses_of(line: str, begin: datetime, end: datetime) -> list[datetime]:
    # It looks for what comes after, and an instant on the minute is meant as well.
    base = f"{begin - timedelta(seconds=1):%Y-%m-%d %H:%M:%S} UTC"
    n = 8
    while True:
        said = subprocess.run(
            ["systemd-analyze", "calendar", f"--iterations={n}", f"--base-time={base}", line],
            env={"TZ": "UTC", "LC_ALL": "C", "PATH": "/usr/bin:/bin"},
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        found = [datetime.fromisoformat(f"{at}Z") for at in ELAPSE.findall(said.stdout)]
        if len(found) < n or found[-1] >= end:
            return [at for at in found if at < end]
        n *= 4


def fires(cron: Cron, begin: datetime, end: datetime) -> set[datetime]:
    found, ms = [], round(begin.timestamp() * 1000) - 1
    while (at := cron.next_after(ms)) is not None and at < end.timestamp() * 1000:
        found.append(datetime.fromtimestamp(at / 1000, UTC))
        ms = at
    return set(found)


def changes_of(cron: Cron, year: int) -> list[datetime]:
    hours = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(365 * 24)]
    offsets = [at.astimezone(cron.zone).utcoffset() for at in hours]
    return [at for at, one, next_one in zip(hours, offsets, offsets[1:], strict=False)
            if one != next_one]  # fmt: skip


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_systemd_comes_by_at_every_time_when_clocks_change(expression: str, zone: str) -> None:
    cron = parse_cron(expression, zone)
    lines = calendar_lines(pattern(cron))
    for change in changes_of(cron, 2027) or [datetime(2027, 2, 27, tzinfo=UTC)]:
        begin, end = change - timedelta(days=1), change + timedelta(days=2)
        wanted, found = fires(cron, begin, end), elapses(lines, begin, end)
        assert wanted <= found
        # Too often only in the hour of the change itself.
        assert all(abs(at - change) <= timedelta(hours=2) for at in found - wanted)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", ["30 2 * * *", "0 0 13 * 5", "40 */6 * * 1-5"])
def test_in_a_year_systemd_comes_by_too_often_on_few_days_alone(expression: str, zone: str) -> None:
    cron = parse_cron(expression, zone)
    begin, end = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
    wanted, found = fires(cron, begin, end), elapses(calendar_lines(pattern(cron)), begin, end)
    assert wanted <= found
    # A zone that goes by the moon may change on most Sundays.
    assert len({at.date() for at in found - wanted}) <= (53 if zone.startswith("Africa") else 1)


FIELD = st.sampled_from


@settings(max_examples=60, deadline=None)
@given(
    FIELD(["*", "*/7", "0", "30", "0,15,59", "5-20/5"]), FIELD(["*", "*/3", "0", "2", "1-3", "23"]),
    FIELD(["*", "*/9", "1", "28-31", "13"]), FIELD(["*", "3,10,11", "*/5", "feb"]),
    FIELD(["*", "0", "7", "1-5", "*/2", "sat,sun"]), st.sampled_from(ZONES),
    st.datetimes(datetime(2026, 8, 1), datetime(2037, 1, 1)),  # noqa: DTZ001
)  # fmt: skip
def test_systemd_comes_by_at_every_time(
    minute: str, hour: str, day: str, month: str, weekday: str, zone: str, begin: datetime
) -> None:
    try:
        cron = parse_cron(f"{minute} {hour} {day} {month} {weekday}", zone)
    except InvalidInput:  # a day that no month has
        return
    begin = begin.replace(second=0, microsecond=0, tzinfo=UTC)
    first = cron.next_after(round(begin.timestamp() * 1000))
    assert first is not None
    begin = datetime.fromtimestamp(first / 1000, UTC) - timedelta(hours=1)
    end = begin + timedelta(days=1)
    assert fires(cron, begin, end) <= elapses(calendar_lines(pattern(cron)), begin, end)


@pytest.mark.parametrize("every", [10, 60, 90, 900, 2700, 5400, 6 * 3600, 86_400, 7 * 86_400])
def test_intervals_come_by_when_they_should(every: int) -> None:
    since = datetime(2026, 12, 30, 11, 7, 33, 250_000, tzinfo=UTC)
    lines = calendar_lines(Interval(every * 1000, round(since.timestamp() * 1000)))
    begin = datetime(2027, 3, 1, tzinfo=UTC)
    end = begin + timedelta(seconds=every * 40)
    first = since + timedelta(milliseconds=750)  # never before its time
    past = int((begin - first).total_seconds() // every) + 1
    wanted = [first + timedelta(seconds=every * (past + n)) for n in range(40)]
    assert elapses(lines, begin, end) == {at for at in wanted if at < end}


@pytest.mark.parametrize("every", [7 * 60_000, 2 * 86_400_000, 1500, 500, 86_400_001])
def test_what_the_calendar_cannot_say_is_refused(every: int) -> None:
    with pytest.raises(Refused, match="cannot say this interval"):
        calendar_lines(Interval(every, 0))


def test_too_many_lines_are_refused() -> None:
    with pytest.raises(Refused, match="more than 48"):
        calendar_lines(Interval(86_400_000 // 675, 0))  # 128 seconds


def test_one_time_is_said_in_utc() -> None:
    at = datetime(2031, 5, 1, 1, 0, 0, 1000, tzinfo=UTC)
    lines = calendar_lines(Once(round(at.timestamp() * 1000)))
    assert lines == ["2031-05-01 01:00:01 UTC"]
    begin = datetime(2031, 4, 30, tzinfo=UTC)
    assert elapses(lines, begin, begin + timedelta(days=2)) == {at.replace(second=1, microsecond=0)}
