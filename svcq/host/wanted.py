"""What a scheduler of the system is to start, and when, in words that every system understands."""

# No annotations from __future__: as text, each one of a NamedTuple is compiled at every start.

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo  # slow to import, and `svcq status` asks for no zone


class Pattern(NamedTuple):
    """As crontab(5) has it; see svcq.cron for what the last three mean."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    either_day: bool
    fixed: bool
    zone: "ZoneInfo"


class Interval(NamedTuple):
    """Every so many milliseconds, counted from an instant in Unix milliseconds."""

    every: int
    since: int


class Once(NamedTuple):
    """At one instant, in Unix milliseconds."""

    at: int


Times = Pattern | Interval | Once


class Timer(NamedTuple):
    """A schedule that the system's own scheduler is to wake."""

    schedule: str
    home: str  # of the svcq it belongs to: others may have a schedule of that name
    times: Times
    program: tuple[str, ...]
    env: Mapping[str, str]
    jitter_ms: int = 0
    wake: bool = False  # the machine, too, where it sleeps
