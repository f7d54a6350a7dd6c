"""Times that repeat, as crontab(5) writes them, and when they come next.

Five fields: minute, hour, day of month, month, day of week; lists, ranges, steps, three-letter
names, 0 and 7 both Sunday. A field that starts with * is unrestricted. Where both days are
restricted, one of them must match; otherwise both must. `CRON_TZ=Zone ` in front names the zone.

When clocks change, cron(8) tells two kinds apart, and so do we:

- A fixed time (neither minute nor hour starts with *) fires once for each day it names. Times in a
  skipped hour fire at the first instant after it, together: several of them are one firing. Times
  in a repeated hour fire the first time alone.
- With a wildcard in minute or hour, the wall clock is followed minute by minute as it really
  goes: what is skipped does not fire, what is repeated fires again, so that `*/10 * * * *` keeps
  its ten minutes. @hourly is such a one.

cron(8) holds changes of three hours and more for corrections of the clock. Those of a zone are
never that, so all are treated alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from svcq.errors import InvalidInput, shown
from svcq.times import LATEST, SECOND

_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LAST_DAY = datetime.fromtimestamp(LATEST, UTC).date()
_PREFIX = "CRON_TZ="
_MINUTE = 60
_DAY = 24 * 60 * _MINUTE
_PART = re.compile(r"(?:(\*)|([0-9]{1,4}|[a-z]{3})(?:-([0-9]{1,4}|[a-z]{3}))?)(?:/([0-9]{1,4}))?")


class _Field(NamedTuple):
    title: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # of the values from `low` on

    def allowed(self) -> str:
        named = f", or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"{self.low} to {self.high}{named}"


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _WEEKDAYS),
)


class Cron(NamedTuple):
    """A checked expression in its zone."""

    text: str  # the five fields, or the @name
    zone: ZoneInfo
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    either_day: bool  # both days are restricted: one of them is enough
    fixed: bool  # neither minute nor hour has a wildcard

    def next_after(self, ms: int) -> int | None:
        """The first firing after an instant, in Unix milliseconds; None past the year 3000."""
        return next(self.after(ms), None)

    def after(self, ms: int) -> Iterator[int]:
        """All firings after an instant, in order."""
        for second in (
            self._fixed_from(ms // SECOND) if self.fixed else self._walk_from(ms // SECOND)
        ):
            if second * SECOND > ms:  # several fixed times of a skipped hour are one firing
                ms = second * SECOND
                yield ms

    def _fixed_from(self, second: int) -> Iterator[int]:
        """Firings in order, from the local day of a Unix second on."""
        clock = [
            time(hour, minute) for hour in sorted(self.hours) for minute in sorted(self.minutes)
        ]
        day = self._local(second).date()
        while day < _LAST_DAY:
            if self._on(day):
                for at in clock:
                    yield self._instant(datetime.combine(day, at))
            day += timedelta(days=1)

    def _walk_from(self, second: int) -> Iterator[int]:
        """Firings in order, from a Unix second on, as the wall clock really goes."""
        second -= self._local(second).second
        while second < LATEST:
            local = self._local(second)
            if not self._on(local.date()):
                left = _DAY - (local.hour * 60 + local.minute) * _MINUTE
                second = self._ahead(second, local, left)
            elif local.hour not in self.hours:
                second = self._ahead(second, local, (60 - local.minute) * _MINUTE)
            else:
                if local.minute in self.minutes:
                    yield second
                second += _MINUTE

    def _ahead(self, second: int, local: datetime, step: int) -> int:
        """A long step, but a minute only where clocks change within it."""
        even = self._local(second + step).utcoffset() == local.utcoffset()
        return second + (step if even else _MINUTE)

    def _on(self, day: date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        matches = (in_month or in_week) if self.either_day else (in_month and in_week)
        return matches and day.month in self.months

    def _instant(self, wall: datetime) -> int:
        """The Unix second of a local time: the first of two; after the gap for one in it."""
        second = _unix(wall, self.zone)
        if self._local(second).replace(tzinfo=None) == wall:
            return second
        # Read with the offsets after and before the change, a skipped time lies on both sides.
        before, after = _unix(wall.replace(fold=1), self.zone), second
        offset = self._local(after).utcoffset()
        while after - before > 1:
            middle = (before + after) // 2
            if self._local(middle).utcoffset() == offset:
                after = middle
            else:
                before = middle
        return after

    def _local(self, second: int) -> datetime:
        return datetime.fromtimestamp(second, self.zone)


def _unix(wall: datetime, zone: ZoneInfo) -> int:
    return int(wall.replace(tzinfo=zone).timestamp())


def parse_cron(text: str, zone: str = "UTC") -> Cron:
    """A crontab(5) expression; `CRON_TZ=Zone ` in front of it wins over `zone`."""
    if not isinstance(text, str):
        raise InvalidInput(f"The cron expression {shown(text)} is not text: give five fields.")
    expression = text.strip()
    if expression.startswith(_PREFIX):
        zone, _, expression = expression.removeprefix(_PREFIX).partition(" ")
        expression = expression.strip()
    fields = _expand(expression).split()
    if len(fields) != len(_FIELDS):
        raise InvalidInput(
            f"The cron expression {shown(text)} has {len(fields)} fields: give five "
            "(minute, hour, day of month, month, day of week), or a name such as @daily."
        )
    minutes, hours, days, months, weekdays = map(_read_field, _FIELDS, fields)
    star = [field.startswith("*") for field in fields]
    cron = Cron(
        " ".join(expression.split()), find_zone(zone), minutes, hours, days, months,
        frozenset(day % 7 for day in weekdays),
        either_day=not star[2] and not star[4], fixed=not star[0] and not star[1],
    )  # fmt: skip
    # Every date falls on every weekday in some year, so that the month alone decides.
    if not cron.either_day and min(days) > max(_LONGEST_MONTH[month - 1] for month in months):
        raise InvalidInput(
            f"The cron expression {shown(text)} never fires: no month {fields[3]} "
            f"has a day {fields[2]}; give a day that exists."
        )
    return cron


def find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        raise InvalidInput(
            f"There is no time zone {shown(name)}: give an IANA name such as Europe/Paris or UTC."
        ) from None


def _expand(expression: str) -> str:
    if not expression.startswith("@"):
        return expression
    if expression == "@reboot":
        raise InvalidInput(
            "The cron expression '@reboot' names no time: give five fields, or one of "
            f"{', '.join(_NICKNAMES)}."
        )
    if expression not in _NICKNAMES:
        raise InvalidInput(
            f"There is no cron name {shown(expression)}: use one of {', '.join(_NICKNAMES)}."
        )
    return _NICKNAMES[expression]


def _read_field(field: _Field, text: str) -> frozenset[int]:
    return frozenset(value for part in text.split(",") for value in _read_part(field, part, text))


def _read_part(field: _Field, part: str, text: str) -> range:
    found = _PART.fullmatch(part.lower())
    if found is None:
        raise _wrong(field, text, "is not understood")
    star, first, last, step = found.groups()
    if step is not None and int(step) == 0:
        raise _wrong(field, text, "has a step of 0, which leads nowhere")
    if star:
        return range(field.low, field.high + 1, int(step or 1))
    if step is not None and last is None:
        raise _wrong(field, text, f"has a step after the one value {first}, not after a range")
    low = _read_value(field, first, text)
    high = low if last is None else _read_value(field, last, text)
    if low > high:
        raise _wrong(field, text, f"has a range that ends before it begins ({first}-{last})")
    return range(low, high + 1, int(step or 1))


def _read_value(field: _Field, word: str, text: str) -> int:
    if word in field.names:
        return field.low + field.names.index(word)
    if not word.isdigit() or not field.low <= int(word) <= field.high:
        raise _wrong(field, text, f"has {word}, which is out of range")
    return int(word)


def _wrong(field: _Field, text: str, problem: str) -> InvalidInput:
    return InvalidInput(
        f"The {field.title} {shown(text)} of the cron expression {problem}: give "
        f"{field.allowed()}, *, lists (1,5), ranges (1-5) or steps (*/2, 1-5/2)."
    )
