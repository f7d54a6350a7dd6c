"""Telling people how jobs ended: which ends are worth it, and in which words.

Pure. What jobs are called and what they say comes from anywhere, so all of it is made one plain
line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from svcq.jobs import Job, State
from svcq.times import format_duration

LONGEST_TITLE = 300
RULES = ("all", "failures", "never")
"""What is told of a queue's jobs; a job that was queued with `notify` has its own way."""

# Escape sequences, and what else a terminal would obey.
CODES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|.)|[\x00-\x1f\x7f-\x9f]"
)
# Invisible, or able to turn the order of what stands beside them; and halves of characters.
_UNSEEN = re.compile(r"[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_LOOKED_AT = 4  # times the length that is kept


def plain(text: str, longest: int = 100) -> str:
    """One line that shows what it is, and no more of it than fits."""
    words = CODES.sub(" ", text[: longest * _LOOKED_AT])
    words = " ".join(_UNSEEN.sub("", words).split())
    return words if len(words) <= longest else f"{words[: longest - 1].rstrip()}…"


def title_of(job: Job) -> str:
    return job.name or what_runs(job.task, job.command, job.args, job.kwargs)


def what_runs(task: str | None, command: Any, args: Any, kwargs: Any) -> str:
    """A command as one would type it, a task as one would call it."""
    if not task:
        line = command if isinstance(command, str) else shlex.join(command or ())
        return " ".join(line.split())[:LONGEST_TITLE]
    given = [repr(arg) for arg in args] + [f"{name}={value!r}" for name, value in kwargs.items()]
    return f"{task}({', '.join(given)})"[:LONGEST_TITLE]


# Which


def rule_of(queue: Mapping[str, Any] | None) -> str:
    """What a queue's own options say."""
    return "all" if (queue or {}).get("notify") else "failures"


def is_told(job: Job, rule: str, long_ms: int | None = None) -> bool:
    """Whether the end of a job is worth telling; a success that took `long_ms` is."""
    if job.state not in (State.COMPLETED, State.DEAD, State.CANCELLED):
        return False
    asked = job.options.get("notify")
    if asked is not None:
        return bool(asked)
    if rule == "never" or job.state is State.CANCELLED:
        return False
    if job.state is State.DEAD or rule == "all":
        return True
    return long_ms is not None and took_ms(job) >= long_ms


def took_ms(job: Job) -> int:
    if job.started_at is None or job.finished_at is None:
        return 0
    return max(round((job.finished_at - job.started_at).total_seconds() * 1000), 0)


# Words


def headline(job: Job, longest: int = 80) -> str:
    """`Failed: render scene 4`."""
    how = {State.COMPLETED: "Done", State.DEAD: "Failed", State.CANCELLED: "Cancelled"}
    return f"{how.get(job.state, job.state.value)}: {plain(title_of(job), longest)}"


def detail(job: Job, longest: int = 200) -> str:
    """`Job 12 in queue video: out of attempts: exit code 3, after 4m`."""
    where = f"Job {job.id}" + ("" if job.queue == "default" else f" in queue {job.queue}")
    lines = (job.error or "").strip().splitlines()
    # Of a traceback the last line has the error.
    error = lines[-1] if lines and lines[0].startswith("Traceback") else (lines or [""])[0]
    why = ": ".join(filter(None, (job.reason, plain(error, longest))))
    if job.state is State.COMPLETED:
        why = "completed"
    spent = took_ms(job)
    after = f" after {format_duration(spent - spent % 1000 or 1000)}" if spent >= 1000 else ""
    return plain(f"{where}: {why or job.state.value}{after}", longest)


def counted(n: int, thing: str = "job") -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def summary(failed: int, completed: int, cancelled: int = 0) -> str:
    """`3 jobs failed, 5 completed`."""
    parts = [(failed, "failed"), (completed, "completed"), (cancelled, "cancelled")]
    said = [(n, how) for n, how in parts if n]
    if not said:
        return "no jobs ended"
    first, *rest = said
    return ", ".join([f"{counted(first[0])} {first[1]}", *(f"{n:,} {how}" for n, how in rest)])


def titles(jobs: Sequence[Job], most: int = 3, longest: int = 40) -> str:
    """`render, encode and 4 more`."""
    named = [plain(title_of(job), longest) for job in jobs[:most]]
    if len(jobs) > most:
        return f"{', '.join(named)} and {len(jobs) - most:,} more"
    return ", ".join(named)
