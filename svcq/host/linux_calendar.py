"""Linux: times as the calendar of systemd writes them, systemd.time(7).

A timer may wake the schedule it belongs to once too often, for that looks whether one of its times
has come; it may never miss one. systemd leaves out what a change of clocks skips, and what it
repeats, where crontab(5) fires: such instants get lines of their own, which come by on every
possible day of that change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from svcq.errors import Refused
from svcq.host.wanted import Interval, Once, Pattern, Times

MOST_LINES = 48
# The rules of zones repeat within these years. Always the same ones, or a timer made this year
# would look edited in the next.
_YEARS = (2026, 2066)
_DAY = 24 * 60 * 60
_WEEK = 7 * _DAY
_WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_ALL_WEEKDAYS, _ALL_DAYS, _ALL_MONTHS = range(7), range(1, 32), range(1, 13)
_ALL_HOURS, _ALL_MINUTES = range(24), range(60)


def calendar_lines(times: Times) -> list[str]:
    """The values of OnCalendar= that together come by at all of the times."""
    match times:
        case Once():
            at = datetime.fromtimestamp(_whole_second(times.at), UTC)
            return [f"{at:%Y-%m-%d %H:%M:%S} UTC"]
        case Interval():
            lines = list(_interval(times))
        case Pattern():
            lines = [*_pattern(times), *_around_changes(times)]
    if len(lines) > MOST_LINES:
        raise Refused(
            f"These times take {len(lines)} lines of systemd's calendar, more than {MOST_LINES}: "
            "give simpler ones, or leave it to svcq."
        )
    return lines


def _whole_second(ms: int) -> int:
    """Never before its time."""
    return -(-ms // 1000)


# Patterns


def _pattern(one: Pattern) -> Iterator[str]:
    days, months = _listed(one.days, _ALL_DAYS), _listed(one.months, _ALL_MONTHS)
    weekdays = _weekdays(one.weekdays)
    for clock in _clocks(one):
        if one.either_day:
            yield f"*-{months}-{days} {clock}"
            yield f"{weekdays}*-{months}-* {clock}"
        else:
            yield f"{weekdays}*-{months}-{days} {clock}"


def _clocks(one: Pattern) -> Iterator[str]:
    """Its times of day. What is skipped on some day stands apart: at such a time systemd 252 gives
    up the rest of the line's day (in Morocco, where summer time counts as the usual one)."""
    skipped = {
        (wall // 3600 % 24, wall // 60 % 60)
        for change in _changes(one.zone)
        for wall in range(change.second + change.before, change.second + change.after, 60)
    }
    hours = {hour for hour, _ in skipped} & one.hours
    minutes = {minute for hour, minute in skipped if hour in hours} & one.minutes
    if not minutes:
        hours = set()
    groups = [
        (one.hours - hours, one.minutes), (hours, minutes), (hours, one.minutes - minutes)
    ]  # fmt: skip
    for some_hours, some_minutes in groups:
        if some_hours and some_minutes:
            clock = f"{_listed(some_hours, _ALL_HOURS)}:{_listed(some_minutes, _ALL_MINUTES)}"
            yield f"{clock}:00 {one.zone}"


def _listed(values: Collection[int], every: range) -> str:
    """`*`, `05`, `00,15,30,45`, `00..01,03..23`."""
    if len(values) == len(every):
        return "*"
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(f"{run[0]:02}" if len(run) == 1 else f"{run[0]:02}..{run[-1]:02}"
                    for run in runs)  # fmt: skip


def _weekdays(values: Collection[int]) -> str:
    if len(values) == len(_ALL_WEEKDAYS):
        return ""
    return ",".join(_WEEKDAYS[day] for day in sorted(values)) + " "


# Changes of clocks


class _Change(NamedTuple):
    """When the clocks of a zone change, as far as a rule can tell: in UTC."""

    month: int
    weekday: int
    second: int  # of the day
    before: int  # offsets from UTC, in seconds
    after: int


def _around_changes(one: Pattern) -> Iterator[str]:
    """What systemd leaves out, and the pattern means."""
    for change, days in sorted(_changes(one.zone).items()):
        if one.fixed and change.after > change.before:
            skipped = range(change.second + change.before, change.second + change.after, 60)
            seconds = [change.second] if _any_at(one, skipped) else []
        elif not one.fixed and change.after < change.before:
            again = range(change.second, change.second + change.before - change.after, 60)
            seconds = [second for second in again if _any_at(one, [second + change.after])]
        else:
            continue
        yield from _lines_on(change, days, seconds)


def _any_at(one: Pattern, walls: Iterable[int]) -> bool:
    """Whether it may fire at one of these seconds of a day."""
    return any(
        second // 3600 % 24 in one.hours and second // 60 % 60 in one.minutes for second in walls
    )


def _lines_on(change: _Change, days: frozenset[int], seconds: list[int]) -> Iterator[str]:
    minutes = defaultdict(set)
    for second in seconds:
        minutes[second // 3600].add(second // 60 % 60)
    for hour, found in minutes.items():
        clock = f"{hour % 24:02}:{_listed(found, _ALL_MINUTES)}:{change.second % 60:02} UTC"
        if hour >= 24:  # past midnight, as no zone has it today: on any day, then
            yield f"*-*-* {clock}"
        else:
            day = _listed(range(min(days), max(days) + 1), _ALL_DAYS)
            yield f"{_WEEKDAYS[change.weekday]} *-{change.month:02}-{day} {clock}"


@lru_cache
def _changes(zone: ZoneInfo) -> dict[_Change, frozenset[int]]:
    """The changes to come, with the days of the month they fall on."""
    found: defaultdict[_Change, set[int]] = defaultdict(set)
    for at, before, after in _transitions(zone):
        when = datetime.fromtimestamp(at, UTC)
        found[_Change(when.month, when.isoweekday() % 7, at % _DAY, before, after)].add(when.day)
    return {change: frozenset(days) for change, days in found.items()}


def _transitions(zone: ZoneInfo) -> Iterator[tuple[int, int, int]]:
    begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in _YEARS)
    before = _offset(zone, begin)
    for at in range(begin + _WEEK, end, _WEEK):
        after = _offset(zone, at)
        if after != before:
            low, high = at - _WEEK, at
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
            yield high, before, after
            before = after


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = datetime.fromtimestamp(second, zone).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


# Intervals


def _interval(one: Interval) -> Iterator[str]:
    every, rest = divmod(one.every, 1000)
    if rest or not (_DAY % every == 0 or every == _WEEK):
        raise Refused(
            "systemd's calendar cannot say this interval, which fits no whole number of times into "
            "a day: give one that does, such as 10m, 45m or 6h, or --cron, or leave it to svcq."
        )
    since = _whole_second(one.since)
    weekday = ""
    if every == _WEEK:
        weekday = _weekdays([datetime.fromtimestamp(since, UTC).isoweekday() % 7])
    day = [(since + n * every) % _DAY for n in range(max(_DAY // every, 1))]
    for hours, minutes, seconds in _grouped(day):
        clock = ":".join(map(_listed, (hours, minutes, seconds),
                             (_ALL_HOURS, _ALL_MINUTES, _ALL_MINUTES)))  # fmt: skip
        yield f"{weekday}*-*-* {clock} UTC"


_Clock = tuple[frozenset[int], frozenset[int], frozenset[int]]


def _grouped(day: list[int]) -> Iterator[_Clock]:
    """Times of a day as hours, minutes and seconds that all go together."""
    hours_at: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for second in day:
        hours_at[second // 60 % 60, second % 60].add(second // 3600)
    minutes_at: defaultdict[tuple[frozenset[int], int], set[int]] = defaultdict(set)
    for (minute, second), hours in hours_at.items():
        minutes_at[frozenset(hours), second].add(minute)
    seconds_at: defaultdict[tuple[frozenset[int], frozenset[int]], set[int]] = defaultdict(set)
    for (hours_found, second), minutes in minutes_at.items():
        seconds_at[hours_found, frozenset(minutes)].add(second)
    for (hours_found, minutes_found), seconds in sorted(seconds_at.items(), key=_first):
        yield hours_found, minutes_found, frozenset(seconds)


def _first(group: tuple[tuple[frozenset[int], frozenset[int]], set[int]]) -> tuple[int, ...]:
    (hours, minutes), seconds = group
    return min(hours), min(minutes), min(seconds)
