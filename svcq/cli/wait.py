"""`svcq wait`: until jobs have ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import clean, cut, print_json, terminal_width
from svcq.errors import WaitTimeout
from svcq.jobs import Job, State
from svcq.times import format_duration, parse_duration

if TYPE_CHECKING:
    from svcq.client import Client

_BAR = 20
# How often times and bars are drawn anew while nothing is written.
_REDRAW = 1.0
_LONGEST_LOOK = 60.0

_ABOUT = """
Exits as the job did: with its exit code if it has one, 0 if it completed, 1 if it did not (128
and the signal's number if a signal ended it). Of several jobs, the first named that did not end
with 0 decides; with --any, the one that ended first. Errors of the wait itself are 125, its
timeout is 124.
"""


def _wait_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="an id or a name")
    parser.add_argument("--timeout", metavar="TIME", help="give up after this, such as 90s or 2h")
    parser.add_argument("--any", action="store_true", help="until the first of them has ended")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    add_json(parser)
    parser.set_defaults(run=_wait)


def _wait(options: Namespace) -> int:
    from svcq.client import Client

    limit = None
    if options.timeout is not None:
        limit = parse_duration(options.timeout, "timeout") / 1000
    with Client() as client:
        jobs = {job.id: job for job in map(client.get, options.jobs)}
        screen = _Screen(shown=not (options.quiet or options.json))
        try:
            over = _until_ended(client, jobs, limit, screen, first=options.any)
        finally:
            screen.clear()
    if options.json:
        shown = [job.as_json() for job in over]
        print_json(shown[0] if len(options.jobs) == 1 else shown)
    elif not options.quiet:
        for job in over:
            print(ended(job))
    return next(filter(None, map(exit_code, over)), 0)


def _until_ended(
    client: Client, jobs: dict[int, Job], limit: float | None, screen: _Screen, *, first: bool
) -> list[Job]:
    """Those that have ended, in the order in which they were named."""
    follower = client.follow()  # before the look: what happens after it is not missed
    deadline = None if limit is None else time.monotonic() + limit
    changed: Iterable[int] = list(jobs)
    while True:
        for job_id in changed:
            jobs[job_id] = client.get(job_id)
        over = [job for job in jobs.values() if job.finished]
        if len(over) == len(jobs) or (first and over):
            return [min(over, key=_when_ended)] if first else over
        left = _LONGEST_LOOK if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise _too_long(jobs, limit or 0)
        screen.draw(jobs)
        news = follower.next(min(left, _REDRAW if screen.shown else _LONGEST_LOOK))
        changed = {change.job for change in news} & jobs.keys()
        if follower.missed:
            follower.missed = False
            changed = list(jobs)


def _when_ended(job: Job) -> float:
    return 0 if job.finished_at is None else job.finished_at.timestamp()


def _too_long(jobs: Mapping[int, Job], limit: float) -> WaitTimeout:
    open_jobs = [f"{job.id} ({job.state})" for job in jobs.values() if not job.finished]
    return WaitTimeout(
        f"Still not ended after {format_duration(round(limit * 1000))}: {', '.join(open_jobs)}."
    )


def exit_code(job: Job) -> int:
    """The exit code of a process that ends as the job did."""
    code = job.exit_code
    if code is None:
        return 0 if job.state is State.COMPLETED else 1
    if code < 0:
        return 128 - code
    # Only the low byte arrives; a failure must not turn into a success on the way.
    return code & 0xFF or (1 if code else 0)


def ended(job: Job) -> str:
    """How a job ended, in a sentence."""
    because = f": {job.reason}" if job.reason else ""
    return f"Job {job.id} is {job.state}{_how(job.exit_code)}{clean(because)}."


def _how(code: int | None) -> str:
    if code is None:
        return ""
    return f", ended by signal {-code}" if code < 0 else f" with exit code {code}"


class _Screen:
    """A line for each job that has not ended, drawn over and over, in a terminal alone."""

    def __init__(self, *, shown: bool) -> None:
        width = terminal_width(sys.stderr)
        self.shown = shown and width is not None
        self._width = width or 0
        self._lines = 0

    def draw(self, jobs: Mapping[int, Job]) -> None:
        if not self.shown:
            return
        waiting = [job for job in jobs.values() if not job.finished]
        lines = [_progress_line(job, self._width - 1) for job in waiting[:10]]
        if len(waiting) > len(lines):
            lines.append(cut(f"and {len(waiting) - len(lines)} more", self._width - 1))
        self.clear()
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
        self._lines = len(lines)

    def clear(self) -> None:
        if self._lines:
            sys.stderr.write(f"\x1b[{self._lines}A\x1b[J")
            sys.stderr.flush()
            self._lines = 0


def _progress_line(job: Job, width: int) -> str:
    words = [f"{job.name or job.id} {job.state}"]
    if job.started_at is not None and job.state is State.PROCESSING:
        seconds = max(time.time() - job.started_at.timestamp(), 0)
        words.append(format_duration(int(seconds) * 1000) if seconds >= 1 else "")
        if job.progress is not None:
            full = round(_BAR * job.progress)
            words.append(f"[{'#' * full}{' ' * (_BAR - full)}] {job.progress:.0%}")
        words.append(job.progress_note or "")
    return cut(clean("  ".join(filter(None, words))), width)


PARSERS = {"wait": _wait_parser}
