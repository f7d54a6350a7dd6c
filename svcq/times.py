"""Times and durations: milliseconds inside, words and ISO 8601 outside."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from svcq.errors import InvalidInput, shown

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

# Past this, a delay is a mistake in units more often than a wish.
LONGEST = 100 * 365 * DAY

# In seconds: 1970, and the year 3000, well before the end of what datetimes can hold.
EARLIEST = 0
LATEST = 32_503_680_000

_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")

Duration = float | str | timedelta
Moment = datetime | float | str


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def parse_duration(value: Duration, what: str = "duration") -> int:
    """`90`, `"90s"`, `"1h30m"` or a timedelta as milliseconds."""
    match value:
        case bool():
            ms = None
        case int() | float():
            ms = _finite_ms(value * SECOND)
        case timedelta():
            ms = value // timedelta(milliseconds=1)
        case str():
            ms = _parse_words(value.strip().lower())
        case _:
            ms = None
    if ms is None:
        raise InvalidInput(
            f"The {what} {shown(value)} is not a duration: "
            'give seconds, or words such as "90s", "5m", "1h30m", "7d".'
        )
    if not 0 <= ms <= LONGEST:
        raise InvalidInput(
            f"The {what} {shown(value)} is out of range: give 0 seconds to 100 years."
        )
    return ms


def _parse_words(text: str) -> int | None:
    if _DURATION.fullmatch(text):
        return _finite_ms(sum(float(n) * _UNITS[unit] for n, unit in _PART.findall(text)))
    try:
        return _finite_ms(float(text) * SECOND)
    except ValueError:
        return None


def _finite_ms(ms: float) -> int | None:
    return round(ms) if abs(ms) < 1e18 else None


def format_duration(ms: int) -> str:
    """The two largest units: `1h30m`, `2d`, `350ms`."""
    if ms < SECOND:
        return f"{ms}ms"
    parts = []
    for unit in ("w", "d", "h", "m", "s"):
        count, ms = divmod(ms, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


def parse_moment(value: Moment, what: str = "time") -> int:
    """A datetime, Unix seconds or ISO 8601 text, local where it names no zone, as milliseconds."""
    moment: datetime | None = None
    try:
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value, UTC)
        if moment is not None and EARLIEST <= moment.timestamp() <= LATEST:
            return round(moment.timestamp() * SECOND)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidInput(
        f"The {what} {shown(value)} is not a time from 1970 to 3000: give a datetime, "
        "Unix seconds, or ISO 8601 text such as 2031-05-01T03:00:00+02:00."
    )


def moment(ms: int) -> datetime:
    """Milliseconds as callers see them: an aware datetime in UTC."""
    return datetime.fromtimestamp(ms / SECOND, UTC)


def iso(ms: int | None) -> str | None:
    """UTC ISO 8601 with milliseconds, as every JSON of svcq writes times."""
    if ms is None:
        return None
    return moment(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
