"""What a view shows of a job: its title, the time that matters, and what can be done with it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from svcq.ends import CODES, LONGEST_TITLE, title_of
from svcq.jobs import FINISHED, How, Job, Run, State
from svcq.times import format_duration


class Verb(NamedTuple):
    """A button: which call of the API it makes, and what is said when that has worked."""

    call: str
    label: str
    said: str
    glyph: str
    kind: str = ""
    body: dict[str, Any] | None = None


class Shown(NamedTuple):
    """A job in a list."""

    job: Job
    title: str
    note: str
    when: datetime | None
    verbs: Sequence[Verb]


class Bar(NamedTuple):
    """One run in the picture of all runs, of 1000 units of width."""

    run: int
    how: str
    took: str
    x: int
    width: int
    colour: str


def shown(job: Job) -> Shown:
    return Shown(job, title_of(job), note_of(job), moment_of(job), verbs_of(job)[:1])


def note_of(job: Job) -> str:
    if job.state is State.PROCESSING:
        share = "" if job.progress is None else f"{job.progress:.0%}"
        return " ".join(filter(None, (share, job.progress_note)))
    first = (job.error or "").partition("\n")[0]
    return ": ".join(filter(None, (job.reason, first)))[:LONGEST_TITLE]


def moment_of(job: Job) -> datetime | None:
    """The time that matters in its state."""
    if job.state in FINISHED:
        return job.finished_at
    if job.state is State.PROCESSING:
        return job.started_at
    if job.state in (State.SCHEDULED, State.RETRYING):
        return job.run_at
    return job.created_at


def verbs_of(job: Job) -> list[Verb]:
    """What can be done with a job in its state, the likeliest first."""
    n = f"Job {job.id}"
    stop = Verb("cancel", "Stop", f"{n} is being stopped.", "stop", "danger")
    cancel = Verb("cancel", "Cancel", f"{n} is cancelled.", "close", "danger")
    again = Verb("retry", "Retry", f"{n} runs again.", "retry")
    hold = Verb("hold", "Hold", f"{n} is held.", "hold")
    first = Verb("move", "Put first", f"{n} is first in its queue.", "up", body={"to_front": True})
    match job.state:
        case State.PROCESSING if job.task:
            return [stop]
        case State.PROCESSING if job.paused:
            return [stop, Verb("suspend", "Go on", f"{n} goes on.", "play", body={"paused": False})]
        case State.PROCESSING:
            return [
                stop,
                Verb("suspend", "Pause", f"{n} stands still.", "pause", body={"paused": True}),
            ]
        case State.HELD:
            return [Verb("release", "Release", f"{n} is released.", "play"), cancel]
        case State.PENDING:
            return [cancel, hold, first]
        case state if state in FINISHED:
            return [again]
        case _:
            return [cancel, hold]


def bars(runs: Sequence[Run]) -> list[Bar]:
    """The runs of a job along its life, from the start of the first to the end of the last."""
    if not runs:
        return []
    start = min(run.started_at for run in runs)
    span = max((max(run.ended_at for run in runs) - start).total_seconds(), 0.001)

    def place(moment: datetime) -> int:
        return round((moment - start).total_seconds() / span * 1000)

    drawn = []
    for run in runs[-12:]:
        x = min(place(run.started_at), 990)
        width = max(place(run.ended_at) - x, 10)
        drawn.append(Bar(run.run, run.how.value, took(run), x, width, _colour(run.how)))
    return drawn


def took(run: Run) -> str:
    return format_duration(max(int((run.ended_at - run.started_at).total_seconds() * 1000), 0))


def split_at(times: Mapping[str, datetime], text: str) -> list[str | datetime]:
    """A text in which some words are times, as its parts."""
    if not times:
        return [text]
    parts = re.split("|".join(f"({re.escape(words)})" for words in times), text)
    return [times.get(part, part) for part in parts if part]


def used(run: Run) -> str:
    parts = []
    if run.cpu_ms is not None:
        parts.append(f"{format_duration(run.cpu_ms)} of CPU")
    if run.peak_bytes is not None:
        parts.append(f"{run.peak_bytes / (1 << 20):,.0f} MB")
    return ", ".join(parts)


def _colour(how: How) -> str:
    if how is How.COMPLETED:
        return "good"
    return "warn" if how in (How.INTERRUPTED, How.SNOOZED, How.CANCELLED) else "bad"


def left(job: Job) -> str:
    """How long it may still take, from its progress; empty where nobody can say."""
    if job.started_at is None or not job.progress or not 0.02 < job.progress < 1:
        return ""
    spent = (datetime.now(UTC) - job.started_at).total_seconds()
    return format_duration(int(spent * (1 - job.progress) / job.progress) * 1000)


def spelled(job: Job) -> str:
    """All of what runs: the command with nothing left out, or the arguments as JSON."""
    if job.task is None:
        command = job.command or ""
        return command if isinstance(command, str) else shlex.join(command)
    given = {"args": list(job.args), **job.kwargs} if job.args else dict(job.kwargs)
    return json.dumps(given, indent=2, ensure_ascii=False)


def without_codes(text: str) -> str:
    """A line of output as a page can show it: without colours and other orders to a terminal."""
    return CODES.sub("", text)
