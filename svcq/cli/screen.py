"""The screen of `svcq top`, without a terminal: what to draw, and what a key means.

`draw` turns a snapshot and a view into lines; `press` turns a key into a new view and, perhaps,
something to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from svcq.cli.text import ago, clean, command_line, cut, plural, width_of
from svcq.jobs import FINISHED, Job, State

_BAR = 12
_WIDE = 60  # from this many columns on there is room for bars and queues
KEYS = "arrows select  c cancel  r retry  h hold  o output  p pause queue  / filter  q quit"
OUTPUT_KEYS = "arrows scroll  q back"


class Snapshot(NamedTuple):
    """The store at one moment, as far as a screen shows it."""

    now: datetime
    counts: Mapping[str, int]
    workers: int = 0
    slots: int = 0
    used: int = 0
    paused: frozenset[str] = frozenset()
    running: Sequence[Job] = ()
    waiting: Sequence[Job] = ()
    ended: Sequence[Job] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the person at the screen has chosen."""

    selected: int | None = None
    filter: str = ""
    mode: str = "list"  # or: confirm, filter, output
    message: str = ""
    back: int = 0  # lines the output is scrolled back from its end


class Action(NamedTuple):
    """`what` is a job or a queue."""

    verb: str
    what: int | str = 0


class Output(NamedTuple):
    """The last lines of a job's output."""

    title: str
    lines: Sequence[str]


class Span(NamedTuple):
    text: str
    style: str = ""  # a state for its colour, or: bold, dim, chosen


Line = list[Span]


# Keys


def press(view: View, key: str, snapshot: Snapshot) -> tuple[View, Action | None]:
    """A key is a character, or a word such as `up`, `enter` or `escape`."""
    if view.mode == "confirm":
        agreed = key in ("y", "Y") and view.selected is not None
        after = replace(view, mode="list", message="" if agreed else "Not cancelled.")
        return after, Action("cancel", view.selected or 0) if agreed else None
    if view.mode == "filter":
        return _press_in_filter(view, key), None
    if view.mode == "output":
        return _press_in_output(view, key), None
    return _press_in_list(replace(view, message=""), key, snapshot)


def _press_in_filter(view: View, key: str) -> View:
    if key == "enter":
        return replace(view, mode="list")
    if key == "escape":
        return replace(view, mode="list", filter="")
    if key == "backspace":
        return replace(view, filter=view.filter[:-1])
    if len(key) == 1 and key.isprintable():
        return replace(view, filter=view.filter + key)
    return view


_SCROLLS = {"up": 1, "k": 1, "pageup": 10, "down": -1, "j": -1, "pagedown": -10}


def _press_in_output(view: View, key: str) -> View:
    if key in ("q", "o", "enter", "escape"):
        return replace(view, mode="list", back=0)
    if key in ("end", "G"):
        return replace(view, back=0)
    return replace(view, back=max(view.back + _SCROLLS.get(key, 0), 0))


_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -10, "pagedown": 10,
          "home": -(1 << 30), "end": 1 << 30}  # fmt: skip


def _press_in_list(view: View, key: str, snapshot: Snapshot) -> tuple[View, Action | None]:
    if key == "q":
        return view, Action("quit")
    if key == "/":
        return replace(view, mode="filter"), None
    if key == "escape":
        return replace(view, filter=""), None
    job = chosen(snapshot, view)
    if job is None:
        return view, None
    if key in _STEPS:
        jobs = visible(snapshot, view)
        at = min(max(jobs.index(job) + _STEPS[key], 0), len(jobs) - 1)
        return replace(view, selected=jobs[at].id), None
    return _press_on(job, replace(view, selected=job.id), key, snapshot)


def _press_on(job: Job, view: View, key: str, snapshot: Snapshot) -> tuple[View, Action | None]:
    """What is done with one job, or its queue."""
    match key:
        case "c" if job.state in FINISHED:
            return replace(view, message=f"Job {job.id} is {job.state} already."), None
        case "c":
            return replace(view, mode="confirm"), None
        case "r":
            return view, Action("retry", job.id)
        case "h":
            return view, Action("release" if job.state is State.HELD else "hold", job.id)
        case "o" | "enter":
            return replace(view, mode="output", back=0), None
        case "p":
            return view, Action("resume" if job.queue in snapshot.paused else "pause", job.queue)
    return view, None


def visible(snapshot: Snapshot, view: View) -> list[Job]:
    """Every job on the screen, from the top."""
    return [job for _, jobs in _sections(snapshot, view) for job in jobs]


def chosen(snapshot: Snapshot, view: View) -> Job | None:
    """The selected job, or the first when that one is no longer shown."""
    jobs = visible(snapshot, view)
    return next((job for job in jobs if job.id == view.selected), jobs[0] if jobs else None)


def _sections(snapshot: Snapshot, view: View) -> list[tuple[str, list[Job]]]:
    words = view.filter.lower()
    found: dict[str, Sequence[Job]] = {
        "Running": snapshot.running,
        "Waiting": snapshot.waiting,
        "Ended": snapshot.ended,
    }
    return [(title, [j for j in jobs if words in _searched(j)]) for title, jobs in found.items()]


def _searched(job: Job) -> str:
    words = (str(job.id), job.name or "", job.queue, job.state, label(job), *job.tags)
    return " ".join(words).lower()


def label(job: Job) -> str:
    if job.name:
        return job.name
    return command_line(job.command or "") if job.task is None else job.task


# Lines


def draw(
    snapshot: Snapshot, view: View, width: int, height: int, output: Output | None = None
) -> list[Line]:
    """Exactly `height` lines, none wider than `width`."""
    if view.mode == "output" and output is not None:
        lines = _draw_output(view, width, height, output)
    else:
        lines = [
            [Span(_header(snapshot), "bold")],
            *_draw_jobs(snapshot, view, width, max(height - 2, 0)),
        ]
    lines += [[] for _ in range(height - 1 - len(lines))]
    lines = [*lines[: max(height - 1, 0)], [Span(_footer(view), "dim")]]
    return [_fitted(line, width) for line in lines[-height:]]


def _header(snapshot: Snapshot) -> str:
    counts = snapshot.counts
    waiting = sum(n for state, n in counts.items() if State(state) not in {*FINISHED, "processing"})
    parts = [f"{counts.get('processing', 0):,} running", f"{waiting:,} waiting"]
    parts += [f"{counts[state]:,} {state}" for state in ("dead",) if counts.get(state)]
    if snapshot.workers:
        slots = f"{snapshot.used} of {plural(snapshot.slots, 'slot')} used"
        parts.append(f"{plural(snapshot.workers, 'worker')}, {slots}")
    else:
        parts.append("no worker")
    return "svcq  " + "  ".join(parts)


def _footer(view: View) -> str:
    if view.mode == "confirm":
        return f"Cancel job {view.selected}? y/n"
    if view.mode == "filter":
        return f"/{clean(view.filter)}_"
    if view.mode == "output":
        return OUTPUT_KEYS
    if view.message:
        return clean(view.message)
    return f"only {clean(view.filter)!r} (Esc shows all)  {KEYS}" if view.filter else KEYS


def _draw_jobs(snapshot: Snapshot, view: View, width: int, height: int) -> list[Line]:
    sections = [(title, jobs) for title, jobs in _sections(snapshot, view) if jobs]
    if not sections:
        return [[Span("No job fits the filter." if view.filter else "There are no jobs.")]]
    job = chosen(snapshot, view)
    rows = _allot(height - len(sections), [len(jobs) for _, jobs in sections])
    lines: list[Line] = []
    for (title, jobs), room in zip(sections, rows, strict=True):
        at = jobs.index(job) if job in jobs else 0
        first = max(at - room + 1, 0)
        lines.append([Span(title, "bold")])
        lines += [
            _row(one, snapshot, width, marked=one is job) for one in jobs[first : first + room]
        ]
    return lines


def _allot(room: int, wanted: Sequence[int]) -> list[int]:
    """Rows for each section: an equal share, and what one does not need goes to the others."""
    given = [0] * len(wanted)
    while room > 0 and (hungry := [i for i, n in enumerate(wanted) if given[i] < n]):
        share = max(room // len(hungry), 1)
        for i in hungry:
            more = min(share, wanted[i] - given[i], room)
            given[i] += more
            room -= more
    return given


def _row(job: Job, snapshot: Snapshot, width: int, *, marked: bool) -> Line:
    wide = width >= _WIDE
    words = [f"{job.id:>5}", f"{_when(job, snapshot.now):>7}"]
    state = job.state.value
    if job.state is State.PROCESSING:
        words.append(_progress(job, wide=wide))
        if job.cancel_requested:
            words.append("stopping")
    else:
        words.append(f"{state:<10}" if wide else state[:4])
    if wide:
        paused = " (paused)" if job.queue in snapshot.paused else ""
        words.append(f"{cut(job.queue + paused, 16):<16}")
    words.append(label(job))
    words.append(_note(job))
    text = clean(" ".join(filter(None, words)))
    if marked:
        return [Span(text + " " * max(width - width_of(text), 0), "chosen")]
    return [Span(text, state)]


def _when(job: Job, now: datetime) -> str:
    """The time that matters in its state: since when, or until when."""
    if job.state in FINISHED:
        moment = job.finished_at
    elif job.state is State.PROCESSING:
        moment = job.started_at
    elif job.state in (State.SCHEDULED, State.RETRYING):
        moment = job.run_at
    else:
        moment = job.created_at
    return ago(moment, now).removesuffix(" ago")


def _progress(job: Job, *, wide: bool) -> str:
    if job.progress is None:
        return " " * (_BAR + 7) if wide else ""
    share = f"{job.progress:>4.0%}"
    full = round(_BAR * job.progress)
    return f"[{'#' * full}{'-' * (_BAR - full)}] {share}" if wide else share


def _note(job: Job) -> str:
    if job.state is State.PROCESSING:
        return job.progress_note or ""
    if job.state in (State.DEAD, State.CANCELLED, State.RETRYING):
        note = (job.error or job.reason or "").strip().partition("\n")[0]
        return f"({note})" if note else ""
    return ""


def _draw_output(view: View, width: int, height: int, output: Output) -> list[Line]:
    room = max(height - 2, 0)
    lines: list[str] = []
    # From the end, and no more than is needed: a log may be long and its lines longer.
    for line in reversed(output.lines):
        lines = [*_wrapped(line, width), *lines]
        if len(lines) >= room + view.back:
            break
    back = min(view.back, max(len(lines) - room, 0))
    shown = lines[max(len(lines) - room - back, 0) : len(lines) - back]
    title = output.title + (f" ({back} lines back)" if back else "")
    return [[Span(clean(title), "bold")], *([Span(line)] for line in shown)]


def _wrapped(line: str, width: int) -> list[str]:
    """A line as the several that it takes."""
    line = line.expandtabs(8)
    if width_of(line) <= width:
        return [line]
    parts, part, used = [], "", 0
    for char in line[:20_000]:
        columns = width_of(char)
        if used + columns > width:
            parts.append(part)
            part, used = "", 0
        part += char
        used += columns
    return [*parts, part]


def _fitted(line: Line, width: int) -> Line:
    fitted: Line = []
    for span in line:
        text = cut(span.text, width)
        fitted.append(span._replace(text=text))
        width -= width_of(text)
    return fitted
