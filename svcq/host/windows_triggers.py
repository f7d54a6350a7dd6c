"""Windows: times as the triggers of its Task Scheduler.

A trigger begins in the local time of the machine, at one time of day. Whatever wakes a schedule
once too often does no harm, since it then looks whether a time has come; so minutes of an hour are
said by a repetition, which begins anew with each hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from svcq.errors import Refused
from svcq.host.wanted import Interval, Once, Pattern, Times
from svcq.host.windows_tasks import element

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MOST = 48
"""Triggers that a task can have."""

_FIRST_DAY = "2020-01-01"  # a day that has been
_MINUTE, _LONGEST = 60_000, 31 * 86_400_000
_YEARS = 3  # for which two zones must agree
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WEEKS = ("1", "2", "3", "4", "Last")


def triggers(times: Times, jitter_ms: int = 0) -> list[ET.Element]:
    """All that it takes; refused where Windows has no words for it."""
    match times:
        case Once(at):
            found = [_time_trigger(_utc(at), None, jitter_ms)]
        case Interval():
            found = [_interval(times, jitter_ms)]
        case Pattern():
            found = list(_pattern(times, jitter_ms))
    if len(found) > MOST:
        raise Refused(
            f"These times take {len(found)} triggers of the Task Scheduler, which takes {MOST}: "
            "give simpler ones, or leave it to svcq."
        )
    return found


def _utc(ms: int) -> str:
    """Never before its time: the scheduler knows whole seconds."""
    return datetime.fromtimestamp(-(-ms // 1000), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _interval(one: Interval, jitter_ms: int) -> ET.Element:
    if one.every % 1000 or not _MINUTE <= one.every <= _LONGEST:
        raise Refused(
            "The Task Scheduler repeats in whole seconds, from a minute to 31 days: give an "
            "interval that is one, or leave it to svcq."
        )
    return _time_trigger(_utc(one.since), one.every // 1000, jitter_ms)


def _time_trigger(begin: str, every: int | None, jitter_ms: int) -> ET.Element:
    repeats = [] if every is None else [_repetition(every, None)]
    return element("TimeTrigger", *_base(begin, repeats, jitter_ms))


def _base(begin: str, repeats: list[ET.Element], jitter_ms: int) -> list[ET.Element]:
    """In the order of the schema: what all triggers have, then what a delay adds."""
    delay = [element("RandomDelay", _duration(-(-jitter_ms // 1000)))] if jitter_ms else []
    start = element("StartBoundary", begin)
    return [element("Enabled", "true"), start, *repeats, *delay]


def _repetition(every: int, lasting: int | None) -> ET.Element:
    parts = [element("Interval", _duration(every))]
    if lasting is not None:
        parts.append(element("Duration", _duration(lasting)))
    return element("Repetition", *parts, element("StopAtDurationEnd", "false"))


def _duration(seconds: int) -> str:
    """As XML writes it: P1DT2H3M4S."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if n)
    return f"P{f'{days}D' if days else ''}{'T' + clock if clock else ''}"


# Patterns


def _pattern(one: Pattern, jitter_ms: int) -> Iterator[ET.Element]:
    check_zone(one.zone)
    for hour in sorted(one.hours):
        for minute, every, lasting in _minutes(sorted(one.minutes)):
            begin = f"{_FIRST_DAY}T{hour:02}:{minute:02}:00"
            for days in _days(one):
                repeats = [] if every is None else [_repetition(every, lasting)]
                yield element("CalendarTrigger", *_base(begin, repeats, jitter_ms), days)


def _minutes(minutes: list[int]) -> Iterator[tuple[int, int | None, int]]:
    """Those of an hour: each one, or as a first one that repeats, in seconds."""
    steps = {after - before for before, after in pairwise(minutes)}
    if len(minutes) > 2 and len(steps) == 1:
        step = steps.pop()
        yield minutes[0], step * 60, (minutes[-1] - minutes[0] + 1) * 60
    else:
        yield from ((minute, None, 0) for minute in minutes)


def _days(one: Pattern) -> Iterator[ET.Element]:
    any_day, any_weekday = len(one.days) == 31, len(one.weekdays) == 7
    any_month = len(one.months) == 12
    if any_day and any_weekday and any_month:
        yield element("ScheduleByDay", element("DaysInterval", "1"))
    elif one.either_day:
        yield from (_by_days(one), _by_weekdays(one))
    elif any_weekday:
        yield _by_days(one)
    elif any_day:
        yield _by_weekdays(one)
    else:
        raise Refused(
            "The Task Scheduler cannot say a day of the month that must also be a day of the week: "
            "give one of the two, or leave it to svcq."
        )


def _by_days(one: Pattern) -> ET.Element:
    days = (element("Day", str(day)) for day in sorted(one.days))
    return element("ScheduleByMonth", element("DaysOfMonth", *days), _months(one))


def _by_weekdays(one: Pattern) -> ET.Element:
    names = (element(_WEEKDAYS[day]) for day in sorted(one.weekdays))
    of_week = element("DaysOfWeek", *names)
    if len(one.months) == 12:
        return element("ScheduleByWeek", element("WeeksInterval", "1"), of_week)
    weeks = element("Weeks", *(element("Week", week) for week in _WEEKS))
    return element("ScheduleByMonthDayOfWeek", weeks, of_week, _months(one))


def _months(one: Pattern) -> ET.Element:
    return element("Months", *(element(_MONTHS[month - 1]) for month in sorted(one.months)))


def check_zone(zone: ZoneInfo, *, local: ZoneInfo | None = None) -> None:
    """Refuse a zone whose clocks do not go as those of the machine do."""
    from tzlocal import get_localzone

    ours = get_localzone() if local is None else local
    if str(ours) == str(zone):
        return
    now = datetime.now(UTC)
    for week in range(52 * _YEARS):
        then = now + timedelta(weeks=week)
        if then.astimezone(zone).utcoffset() != then.astimezone(ours).utcoffset():
            raise Refused(
                f"The Task Scheduler goes by the clock of this machine ({ours}), and the schedule "
                f"by that of {zone}: give it --tz {ours}, or leave it to svcq."
            )
