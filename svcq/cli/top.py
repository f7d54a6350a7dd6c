"""`svcq top`: a live screen with keys."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from svcq.cli.output import Harmless
from svcq.cli.parser import Namespace, Parser
from svcq.cli.screen import Action, Line, Output, Snapshot, View, chosen, draw, press
from svcq.cli.text import coloured
from svcq.errors import InvalidInput, NotFound, Refused, SvcqError
from svcq.jobs import FINISHED, Job, State

if TYPE_CHECKING:
    from svcq.client import Client

_LOOK = 0.25  # seconds between looks at a store in which nothing happens
_SOONEST = 0.1  # between two drawings
_TICK = 1.0  # times are drawn anew this often
_CALM = 5  # of its time, at most one part in so many goes into reading a busy store
_ENDED = 100
_WAITING = 200
_OUTPUT_BYTES = 256 << 10
_OUTPUT_LINES = 2000

_ABOUT = """
Keys: arrows or j and k select a job; c cancels it (it asks), r runs it again, h holds or releases
it, o or Enter shows its output, p pauses or resumes its queue; / filters by a text, q quits.
"""


def _top_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.set_defaults(run=_top)


def _top(_: Namespace) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput(
            "svcq top draws a live screen and needs a terminal: use svcq list or svcq status here."
        )
    try:
        import curses
    except ImportError:
        raise Refused(
            "svcq top needs the module curses, which this Python lacks: use svcq list."
        ) from None
    from svcq.client import Client

    with Client() as client:
        # As an exception, so that the terminal is put back on the way out.
        before = signal.signal(signal.SIGTERM, _leave)
        try:
            curses.set_escdelay(25)  # a lone Escape need not wait for a sequence that follows
            curses.wrapper(lambda window: _Top(client, window, curses).run())
        except curses.error as error:
            raise InvalidInput(
                f"This terminal ({os.environ.get('TERM', 'TERM is not set')}) cannot show "
                f"a screen ({error}): set TERM, or use svcq list."
            ) from None
        finally:
            signal.signal(signal.SIGTERM, before)


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)


class _Top:
    def __init__(self, client: Client, window: Any, curses: Any) -> None:
        self._client = client
        self._window = window
        self._curses = curses
        self._styles = _styles(curses)
        self._keys = _named_keys(curses)
        self._view = View()
        self._output: _Tail | None = None
        self._mark: tuple[int, int] | None = None
        self._snapshot = Snapshot(datetime.now(UTC), {})
        self._read_again = 0.0
        window.keypad(True)
        with suppress(curses.error):  # a terminal that always shows its cursor
            curses.curs_set(0)

    def run(self) -> None:
        drawn = 0.0
        while True:
            news = self._look()
            key = self._key(0) if news else self._key(_LOOK)
            while key is not None:
                if self._press(key):
                    return
                news = True
                key = self._key(0)
            since = time.monotonic() - drawn
            if news and since < _SOONEST:
                time.sleep(_SOONEST - since)
            if news or since >= _TICK:
                self._draw()
                drawn = time.monotonic()

    # The store

    def _look(self) -> bool:
        """Read what was written since the last look; whether there was anything."""
        news = self._output is not None and self._output.read()
        now = time.monotonic()
        if now < self._read_again:
            return news
        mark = self._client.mark()
        if mark == self._mark:
            return news
        self._read(mark)
        self._read_again = now + max(_SOONEST, (time.monotonic() - now) * _CALM)
        return True

    def _read(self, mark: tuple[int, int]) -> None:
        self._mark = mark
        self._snapshot = snapshot_of(self._client)
        if self._output is not None:
            self._look_at_job(self._output)

    def _look_at_job(self, output: _Tail) -> None:
        try:
            output.job = self._client.get(output.job)
        except NotFound as error:
            self._output = None
            self._view = replace(self._view, mode="list", message=str(error))

    # Keys

    def _key(self, timeout: float) -> str | None:
        self._window.timeout(round(timeout * 1000))
        began = time.monotonic()
        try:
            key = self._window.get_wch()
        except self._curses.error:
            # A terminal that is gone answers at once, for ever.
            time.sleep(max(timeout - (time.monotonic() - began), 0))
            return None
        if isinstance(key, int):
            return self._keys.get(key, "unknown")
        return _CHARACTERS.get(key, str(key))

    def _press(self, key: str) -> bool:
        """Whether it is time to go."""
        self._view, action = press(self._view, key, self._snapshot)
        if action is not None:
            if action.verb == "quit":
                return True
            self._view = replace(self._view, message=act(self._client, action))
            # The next key is meant for what the screen will show, not for what it was.
            self._read(self._client.mark())
        self._show_or_hide_output()
        return False

    def _show_or_hide_output(self) -> None:
        if self._view.mode != "output":
            self._output = None
        elif self._output is None:
            job = chosen(self._snapshot, self._view)
            if job is not None:
                self._output = _Tail(self._client, job)
                self._output.read()

    # The terminal

    def _draw(self) -> None:
        self._snapshot = self._snapshot._replace(now=datetime.now(UTC))
        height, width = self._window.getmaxyx()
        output = None if self._output is None else self._output.shown()
        self._window.erase()
        for row, line in enumerate(draw(self._snapshot, self._view, width, height, output)):
            self._draw_line(row, line)
        self._window.refresh()

    def _draw_line(self, row: int, line: Line) -> None:
        encoding = self._window.encoding
        # The last cell of the last line is an error, and so is a window that has become smaller.
        with suppress(self._curses.error):
            self._window.move(row, 0)
            for text, style in line:
                known = text.encode(encoding, "replace").decode(encoding)
                self._window.addstr(known, self._styles.get(style, 0))


def snapshot_of(client: Client) -> Snapshot:
    """All that a screen shows."""
    workers = client.workers()
    running = client.list(state=State.PROCESSING, limit=_WAITING)
    ended = [job for state in FINISHED for job in client.list(state=state, limit=_ENDED)]
    due = [
        job
        for state in (State.RETRYING, State.SCHEDULED, State.BLOCKED, State.HELD)
        for job in client.list(state=state, limit=_WAITING)
    ]
    return Snapshot(
        now=datetime.now(UTC),
        counts=client.counts(),
        workers=len(workers),
        slots=sum(worker.slots for worker in workers),
        used=sum(worker.running for worker in workers),
        paused=frozenset(queue.name for queue in client.queues() if queue.paused),
        running=sorted(running, key=attrgetter("started_at", "id")),
        waiting=[*client.first_in_line(_WAITING), *due],
        ended=sorted(ended, key=attrgetter("finished_at", "id"), reverse=True)[:_ENDED],
    )


def act(client: Client, action: Action) -> str:
    """Do it; what to say about it."""
    verbs: dict[str, Callable[[Any], Job | None]] = {
        "cancel": client.cancel,
        "retry": client.retry,
        "hold": client.hold,
        "release": client.release,
        "pause": client.pause,
        "resume": client.resume,
    }
    try:
        job = verbs[action.verb](action.what)
    except SvcqError as error:
        return str(error)
    if job is None:
        return f"Queue {action.what} is {'paused' if action.verb == 'pause' else 'open again'}."
    asked = " and asked to stop" if job.cancel_requested else ""
    return f"Job {job.id} is {job.state}{asked}."


class _Tail:
    """The end of a job's output, as it grows, through its attempts."""

    def __init__(self, client: Client, job: Job) -> None:
        self._client = client
        self.job = job
        self._run = -1
        self._begin()

    def _begin(self) -> None:
        self._run = self.job.run
        log = self._client.output(self.job, self._run)
        self._reader = log.reader(max((log.size() or 0) - _OUTPUT_BYTES, 0))
        self._harmless = Harmless(colours=False)
        self._lines: deque[str] = deque([""], maxlen=_OUTPUT_LINES)
        self._kept = False

    def read(self) -> bool:
        """Whether there was anything new."""
        if self.job.run != self._run:
            self._begin()
        news = False
        for chunk in self._reader.read():
            news = True
            first, *rest = self._harmless.feed(chunk).split("\n")
            self._lines[-1] += first
            self._lines.extend(rest)
        if not (self._kept or self._reader.position) and self.job.state is not State.PROCESSING:
            self._kept = news = True
            self._lines.extend(self._last_lines())
        return news

    def _last_lines(self) -> list[str]:
        """What the store kept of a log that is not here."""
        kept = next((r for r in self._client.runs(self.job) if r.run == self._run), None)
        text = "" if kept is None else kept.tail or ""
        return Harmless(colours=False).feed(text.encode("utf-8", "replace"), last=True).split("\n")

    def shown(self) -> Output:
        job = self.job
        run = f", run {self._run}" if self._run else ""
        lines = list(self._lines)
        if lines and not lines[-1]:
            lines.pop()
        title = f"Output of job {job.id}{run} ({job.state})"
        return Output(title, lines if any(lines) else ["Nothing was written yet."])


_CHARACTERS = {
    "\n": "enter", "\r": "enter", "\x1b": "escape", "\x7f": "backspace", "\b": "backspace",
}  # fmt: skip


def _named_keys(curses: Any) -> dict[int, str]:
    return {
        curses.KEY_UP: "up",
        curses.KEY_DOWN: "down",
        curses.KEY_PPAGE: "pageup",
        curses.KEY_NPAGE: "pagedown",
        curses.KEY_HOME: "home",
        curses.KEY_END: "end",
        curses.KEY_ENTER: "enter",
        curses.KEY_BACKSPACE: "backspace",
        curses.KEY_RESIZE: "resize",
    }


def _styles(curses: Any) -> dict[str, int]:
    styles = {"bold": curses.A_BOLD, "dim": curses.A_DIM, "chosen": curses.A_REVERSE}
    if not (coloured(sys.stdout) and curses.has_colors()):
        return styles
    curses.use_default_colors()
    colours = {
        State.PROCESSING: curses.COLOR_CYAN,
        State.COMPLETED: curses.COLOR_GREEN,
        State.DEAD: curses.COLOR_RED,
        State.RETRYING: curses.COLOR_YELLOW,
        State.SCHEDULED: curses.COLOR_BLUE,
        State.BLOCKED: curses.COLOR_MAGENTA,
        State.HELD: curses.COLOR_MAGENTA,
    }
    for number, (state, colour) in enumerate(colours.items(), 1):
        curses.init_pair(number, colour, -1)
        styles[state.value] = curses.color_pair(number)
    return {**styles, State.CANCELLED.value: curses.A_DIM}


PARSERS = {"top": _top_parser}
