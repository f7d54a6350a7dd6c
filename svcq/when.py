"""Times as people say them: `03:00`, `tomorrow 3pm`, `fri 18:30`, `2031-05-01 03:00`.

All of it is in the zone of the machine, unless another is named. Days are counted on the calendar,
not in hours, so that `tomorrow 03:00` is right on the days when clocks change; a time that such a
day skips is the one as much later, and of one that comes twice the first that is not past is meant.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo

from svcq.errors import InvalidInput
from svcq.times import parse_duration

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(am|pm)?")
_EXAMPLES = "03:00, tomorrow 03:00, fri 18:30, 2031-05-01 03:00 or 2031-05-01T03:00+02:00"


def parse_time(
    text: str, now: datetime | None = None, *, zone: tzinfo | None = None, past: bool = False
) -> datetime:
    """A time to come; refuses one that is past, unless that may be."""
    now = _aware(now) if zone is None else _aware(now).astimezone(zone)
    words = text.strip().lower()
    if words == "now":
        return now
    if words.startswith("in "):
        return now + timedelta(milliseconds=parse_duration(words[3:].replace(" ", ""), "time"))
    moment = _iso(text.strip(), zone) or _next(words, now, zone)
    if moment is None:
        raise InvalidInput(f"The time {text!r} is not understood: give {_EXAMPLES}.")
    if moment < now and not past:
        raise InvalidInput(
            f"The time {text!r} is past ({moment:%Y-%m-%d %H:%M:%S}): give one to come."
        )
    return moment


def parse_past(text: str, now: datetime | None = None) -> datetime:
    """A time that has been: `2h` (ago), `today`, `yesterday 09:00`, `mon`, `09:00`, a date."""
    now = _aware(now)
    words = text.strip().lower().removesuffix(" ago")
    try:
        return now - timedelta(milliseconds=parse_duration(words.replace(" ", ""), "time"))
    except InvalidInput:
        moment = _iso(text.strip()) or _last(words, now)
    if moment is None:
        raise InvalidInput(
            f"The time {text!r} is not understood: "
            "give 2h, today, yesterday 09:00, mon, 09:00 or 2031-05-01."
        )
    return moment


def _aware(now: datetime | None) -> datetime:
    return datetime.now().astimezone() if now is None else now


def _iso(text: str, zone: tzinfo | None = None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return _local(moment, zone) if moment.tzinfo is None else moment
    except (ValueError, OverflowError, OSError):
        return None


def _local(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """The instant of a local time. Not by astimezone alone, which is wrong in a skipped hour."""
    if zone is not None:
        return datetime.fromtimestamp(moment.replace(tzinfo=zone).timestamp(), zone)
    return datetime.fromtimestamp(moment.timestamp()).astimezone()


def _next(words: str, now: datetime, zone: tzinfo | None) -> datetime | None:
    day, clock = _split(words)
    if clock is None:
        return None
    today = now.date()
    if day == "":
        return _first_from(now, [today, today + timedelta(days=1)], clock, zone)
    if day in ("today", "tomorrow"):
        return _first_from(now, [today + timedelta(days=day == "tomorrow")], clock, zone)
    weekday = _weekday(day)
    if weekday is None:
        return None
    ahead = (weekday - today.weekday()) % 7
    days = [today + timedelta(days=ahead), today + timedelta(days=ahead + 7)]
    return _first_from(now, days, clock, zone)


def _last(words: str, now: datetime) -> datetime | None:
    day, clock = _split(words)
    today = now.date()
    if clock is None:
        if day == "" or " " in words:
            return None
        clock = time()
    if day in ("today", "yesterday"):
        return _local(datetime.combine(today - timedelta(days=day == "yesterday"), clock))
    weekday = today.weekday() if day == "" else _weekday(day)
    if weekday is None:
        return None
    behind = (today.weekday() - weekday) % 7
    moment = _local(datetime.combine(today - timedelta(days=behind), clock))
    if moment <= now:
        return moment
    step = 1 if day == "" else 7
    return _local(datetime.combine(today - timedelta(days=behind + step), clock))


def _first_from(now: datetime, days: list[date], clock: time, zone: tzinfo | None) -> datetime:
    moments = [
        _local(datetime.combine(day, clock.replace(fold=fold)), zone)
        for day in days for fold in (0, 1)
    ]  # fmt: skip
    return next((moment for moment in moments if moment >= now), moments[0])


def _split(words: str) -> tuple[str, time | None]:
    """`fri 18:30` as its day and its time of day; the day is empty where there is none."""
    day, _, rest = words.partition(" ")
    if day and not day[0].isdigit():
        rest = rest.strip().removeprefix("at ").strip()
        return day, _clock(rest) if rest else None
    return "", _clock(words)


def _clock(text: str) -> time | None:
    found = _CLOCK.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        return None
    hour, minute, second = (int(found[part] or 0) for part in (1, 2, 3))
    if found[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[4] == "pm" else 0)
    try:
        return time(hour, minute, second)
    except ValueError:
        return None


def _weekday(word: str) -> int | None:
    if len(word) < 3:
        return None
    return next((n for n, day in enumerate(_DAYS) if day.startswith(word.rstrip("."))), None)
