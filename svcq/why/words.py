"""The words in which it is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from svcq.jobs import Job
from svcq.times import DAY, HOUR, MINUTE, SECOND

NAMED = 3  # jobs named one by one in a sentence
_LONGEST_ERROR = 200


class Cause(NamedTuple):
    """The answer before it has a job's number and state in front of it."""

    word: str
    says: str
    at: int | None = None
    jobs: tuple[int, ...] = ()


def because(job: Job) -> str:
    """The last error, in brackets; nothing when there was none."""
    if not job.error:
        return ""
    return f" ({first_line(job.error)})"


def names_of(ids: Sequence[int], total: int) -> str:
    """`job 7`, `jobs 7 and 9`, `jobs 7, 9, 11 and 4 more`."""
    if not ids:
        return counted(total, "job")
    words = [str(one) for one in ids[:NAMED]]
    if total > len(words):
        words.append(f"{total - len(words):,} more")
    return f"{'job' if total == 1 else 'jobs'} {joined(words)}"


def joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def span(ms: int) -> str:
    """As one would say it: `350 ms`, `40 s`, `4 min`, `1 h 30 min`, `3 d`."""
    if ms < SECOND:
        return f"{ms} ms"
    if ms < 90 * SECOND:
        return f"{round(ms / SECOND)} s"
    if ms < HOUR:
        return f"{round(ms / MINUTE)} min"
    big, small, unit, part = (DAY, HOUR, "d", "h") if ms >= 2 * DAY else (HOUR, MINUTE, "h", "min")
    whole, rest = divmod(round(ms / small), big // small)
    return f"{whole} {unit} {rest} {part}" if rest else f"{whole} {unit}"


def clock_time(moment: datetime | None) -> str:
    """A time as the clock on the wall shows it."""
    return "an unknown time" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * SECOND)


def first_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    # Of a traceback the last line has the error; a sentence has but one.
    line = lines[-1] if len(lines) > 1 and lines[0].startswith("Traceback") else (lines or [""])[0]
    line = line.strip().rstrip(".")
    return line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}..."
