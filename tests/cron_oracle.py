"""When cron fires, found the slow way: a daemon that wakes every minute, as cron(8) tells it.

Written from the manual pages alone; shares no code with svcq.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


def minutes_of(zone: str, begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Every minute between two instants: the instant, and what the clock on the wall shows."""
    found, at, there = [], begin.astimezone(UTC), ZoneInfo(zone)
    while at < end:
        found.append((at, at.astimezone(there).replace(tzinfo=None, fold=0)))
        at += MINUTE
    return found


def firings(expression: str, minutes: Sequence[tuple[datetime, datetime]]) -> list[datetime]:
    fields = tuple(expression.lower().split())
    wildcard = fields[0][0] == "*" or fields[1][0] == "*"
    fired = []
    latest = minutes[0][1] - MINUTE  # the latest wall time that was dealt with
    for at, wall in minutes:
        if wildcard:
            if matches(fields, wall):
                fired.append(at)
            continue
        due = False
        while latest < wall:  # nothing in a repeated hour, more than one minute after a skipped one
            latest += MINUTE
            due = matches(fields, latest) or due
        if due:
            fired.append(at)
    return fired


def matches(fields: tuple[str, ...], wall: datetime) -> bool:
    minute, hour, day, month, weekday = fields
    if not (has(minute, wall.minute, 0, 59) and has(hour, wall.hour, 0, 23)):
        return False
    if not has(month, wall.month, 1, 12):
        return False
    of_month = has(day, wall.day, 1, 31)
    sunday_first = (wall.weekday() + 1) % 7
    of_week = has(weekday, sunday_first, 0, 7) or (sunday_first == 0 and has(weekday, 7, 0, 7))
    if day[0] != "*" and weekday[0] != "*":
        return of_month or of_week
    return of_month and of_week


@cache
def has(field: str, value: int, low: int, high: int) -> bool:
    for element in field.split(","):
        span, _, step = element.partition("/")
        first, last = low, high
        if span != "*":
            begin, dash, end = span.partition("-")
            first = number(begin)
            last = number(end) if dash else first
        if first <= value <= last and (value - first) % int(step or 1) == 0:
            return True
    return False


def number(word: str) -> int:
    if word in MONTHS:
        return MONTHS.index(word) + 1
    return DAYS.index(word) if word in DAYS else int(word)
