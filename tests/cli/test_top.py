"""`svcq top`: the screen without a terminal, and once in a real one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from svcq.cli.screen import KEYS, Action, Output, Snapshot, View, chosen, draw, press, visible
from svcq.cli.text import width_of
from svcq.cli.top import act, snapshot_of
from svcq.client import Client
from svcq.host.files import open_log
from svcq.jobs import Job, State
from svcq.logs import log_file
from tests.cli.conftest import Svcq
from tests.cli.terminals import SVCQ
from tests.helpers import eventually

NOW = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
COUNTS = {state.value: 0 for state in State}


def job(number: int, state: State = State.PENDING, **more: Any) -> Job:
    facts: dict[str, Any] = {
        "queue": "default",
        "created_at": NOW - timedelta(minutes=9),
        "command": f"echo {number}",
    }
    if state is State.PROCESSING:
        facts["started_at"] = NOW - timedelta(seconds=90)
    if state in (State.COMPLETED, State.DEAD, State.CANCELLED):
        facts["finished_at"] = NOW - timedelta(minutes=2)
    return Job(id=number, state=state, **{**facts, **more})


SCREEN = Snapshot(
    now=NOW,
    counts={**COUNTS, "processing": 2, "pending": 1200, "dead": 3},
    workers=1,
    slots=4,
    used=2,
    paused=frozenset({"video"}),
    running=[
        job(1, State.PROCESSING, progress=0.5, progress_note="encoding", name="film"),
        job(2, State.PROCESSING, cancel_requested=True),
    ],
    waiting=[job(3, queue="video"), job(4, State.HELD), job(5, State.RETRYING, run_at=NOW)],
    ended=[job(6, State.COMPLETED), job(7, State.DEAD, error="exit 1\nmore")],
)


def text_of(
    view: View | None = None,
    width: int = 100,
    height: int = 24,
    snapshot: Snapshot = SCREEN,
    output: Output | None = None,
) -> list[str]:
    lines = draw(snapshot, view or View(), width, height, output)
    return ["".join(span.text for span in line).rstrip() for line in lines]


# Drawing


def test_a_whole_screen() -> None:
    assert text_of() == [
        "svcq  2 running  1,200 waiting  3 dead  1 worker, 2 of 4 slots used",
        "Running",
        "    1   1m30s [######------]  50% default          film encoding",
        "    2   1m30s                     stopping default          echo 2",
        "Waiting",
        "    3      9m pending    video (paused)   echo 3",
        "    4      9m held       default          echo 4",
        "    5     now retrying   default          echo 5",
        "Ended",
        "    6      2m completed  default          echo 6",
        "    7      2m dead       default          echo 7 (exit 1)",
        *[""] * 12,
        KEYS,
    ]


def test_an_empty_screen() -> None:
    lines = text_of(snapshot=Snapshot(NOW, COUNTS), height=4)
    assert lines == ["svcq  0 running  0 waiting  no worker", "There are no jobs.", "", KEYS]


@pytest.mark.parametrize("height", [1, 2, 3, 5, 8, 24])
@pytest.mark.parametrize("width", [1, 2, 20, 59, 60, 200])
@pytest.mark.parametrize("mode", ["list", "confirm", "filter", "output"])
def test_every_size_is_filled_and_kept_to(width: int, height: int, mode: str) -> None:
    many = [job(n, name=f"日本語 {'x' * n}") for n in range(100, 200)]
    snapshot = SCREEN._replace(waiting=many)
    output = Output("Output", ["short", "long " * 100, "日本" * 50, "tab\tbed"])
    lines = draw(snapshot, View(mode=mode, selected=150), width, height, output)
    assert len(lines) == height
    for line in lines:
        assert sum(width_of(span.text) for span in line) <= width


def test_the_selected_job_is_always_in_sight() -> None:
    snapshot = SCREEN._replace(waiting=[job(n) for n in range(100, 200)])
    for number in (1, 100, 150, 199, 7):
        lines = draw(snapshot, View(selected=number), 80, 16)
        marked = [line[0].text for line in lines if line and line[0].style == "chosen"]
        assert [int(text.split()[0]) for text in marked] == [number]


def test_each_section_gets_its_share() -> None:
    snapshot = SCREEN._replace(waiting=[job(n) for n in range(100, 200)])
    lines = text_of(snapshot=snapshot, height=16)
    assert [lines.index(title) for title in ("Running", "Waiting", "Ended")] == [1, 4, 12]
    assert lines[13].split()[0] == "6", "what ended is there however much waits"


def test_what_others_wrote_is_escaped() -> None:
    evil = "x\x1b]0;owned\x07\x9b2J"
    nasty = [
        job(1, State.PROCESSING, name=evil, progress_note=evil),
        job(2, State.DEAD, error=evil),
    ]
    snapshot = Snapshot(NOW, COUNTS, running=nasty)
    for view in (View(), View(message=evil), View(filter=evil, mode="filter")):
        assert all(line.isprintable() for line in text_of(view, snapshot=snapshot))


def test_the_last_lines_of_output_are_shown_and_scrolled() -> None:
    output = Output("Output of job 1", [str(n) for n in range(100)])
    view = View(mode="output")
    assert text_of(view, height=5, output=output)[:4] == ["Output of job 1", "97", "98", "99"]
    back = text_of(replace(view, back=10), height=5, output=output)
    assert back[:4] == ["Output of job 1 (10 lines back)", "87", "88", "89"]
    top = text_of(replace(view, back=1000), height=5, output=output)
    assert top[:4] == ["Output of job 1 (97 lines back)", "0", "1", "2"]


def test_a_long_line_of_output_is_wrapped() -> None:
    output = Output("Output", ["x" * 25])
    assert text_of(View(mode="output"), 10, 6, output=output)[1:4] == ["x" * 10, "x" * 10, "x" * 5]


# Keys


def pressed(*keys: str, view: View | None = None) -> tuple[View, list[Action]]:
    view, actions = view or View(), []
    for key in keys:
        view, action = press(view, key, SCREEN)
        actions += [action] if action else []
    return view, actions


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        (["down"], 2),
        (["j", "j"], 3),
        (["j", "k"], 1),
        (["up"], 1),
        (["end"], 7),
        (["end", "down"], 7),
        (["end", "home"], 1),
        (["pagedown"], 7),
        (["end", "pageup"], 1),
    ],
)
def test_selecting(keys: list[str], selected: int) -> None:
    assert pressed(*keys)[0].selected == selected


def test_a_job_that_is_gone_gives_way_to_the_first() -> None:
    found = chosen(SCREEN, View(selected=99))
    assert found is not None
    assert found.id == 1
    assert chosen(Snapshot(NOW, COUNTS), View(selected=99)) is None


def test_cancelling_asks_first() -> None:
    view, actions = pressed("c")
    assert (view.mode, actions) == ("confirm", [])
    assert text_of(view)[-1] == "Cancel job 1? y/n"
    assert pressed("c", "y")[1] == [Action("cancel", 1)]
    for no in ("n", "escape", "enter", "q"):
        view, actions = pressed("c", no)
        assert (view.mode, view.message, actions) == ("list", "Not cancelled.", [])
    assert pressed("end", "c")[0].message == "Job 7 is dead already."


def test_what_the_other_keys_do() -> None:
    assert pressed("end", "r")[1] == [Action("retry", 7)]
    assert pressed("h", view=View(selected=3))[1] == [Action("hold", 3)]
    assert pressed("h", view=View(selected=4))[1] == [Action("release", 4)]
    assert pressed("p", view=View(selected=3))[1] == [Action("resume", "video")]
    assert pressed("p")[1] == [Action("pause", "default")]
    assert pressed("q")[1] == [Action("quit")]
    assert pressed("x", "unknown", "resize", "7") == (View(selected=1), [])


def test_output_opens_scrolls_and_closes() -> None:
    for key in ("o", "enter"):
        assert pressed(key)[0].mode == "output"
    assert pressed("o", "up", "up", "down")[0].back == 1
    assert pressed("o", "up", "end")[0].back == 0
    for key in ("q", "escape", "o", "enter"):
        view, actions = pressed("o", key)
        assert (view.mode, actions) == ("list", [])


def test_filtering() -> None:
    view, actions = pressed("/", "v", "i", "d", "q", "backspace", "enter")
    assert (view.mode, view.filter, actions) == ("list", "vid", [])
    assert [one.id for one in visible(SCREEN, view)] == [3]
    assert pressed("c", "y", view=view)[1] == [Action("cancel", 3)]
    assert "only 'vid'" in text_of(view)[-1]
    assert pressed("escape", view=view)[0].filter == ""
    nothing = replace(view, filter="nothing like it")
    assert text_of(nothing)[1] == "No job fits the filter."
    for key in ("c", "r", "h", "o", "p", "up", "enter"):
        assert pressed(key, view=nothing) == (nothing, [])


# The store


def test_a_snapshot_has_the_line_in_its_order(client: Client) -> None:
    client.queue("default", aging="1h")
    for priority in (0, 5, 1):
        client.command("true", priority=priority)
    client.command("true", concurrency_key="a")
    client.command("true", hold=True)
    client.command("true", delay=60)
    assert [one.id for one in snapshot_of(client).waiting] == [2, 3, 1, 4, 6, 5]
    client.move(4)
    assert snapshot_of(client).waiting[0].id == 4
    (run,) = client.fetch()
    client.complete(run)
    client.fetch()
    snapshot = snapshot_of(client)
    assert [one.id for one in snapshot.ended] == [4]
    assert [one.id for one in snapshot.running] == [2]
    assert (snapshot.workers, snapshot.used) == (1, 1)


def test_jobs_under_a_saturated_key_are_in_the_line(client: Client) -> None:
    for _ in range(3):
        client.command("true", concurrency_key="a")
    client.fetch()
    assert [one.id for one in client.first_in_line()] == [2, 3]


def test_acting_and_what_is_said_of_it(client: Client) -> None:
    client.command("true")
    assert act(client, Action("hold", 1)) == "Job 1 is held."
    assert act(client, Action("release", 1)) == "Job 1 is pending."
    assert act(client, Action("pause", "default")) == "Queue default is paused."
    assert act(client, Action("resume", "default")) == "Queue default is open again."
    assert "Job 1" in act(client, Action("retry", 1))
    client.fetch()
    assert act(client, Action("cancel", 1)) == "Job 1 is processing and asked to stop."
    assert act(client, Action("cancel", 9)).startswith("There is no job 9")


# The terminal


def test_without_a_terminal(svcq: Svcq) -> None:
    assert "needs a terminal" in svcq.refuses("top")


class Screen:
    """`svcq top` in a pseudo-terminal that is its controlling one, as in real life."""

    def __init__(self, env: Mapping[str, str], columns: int = 80) -> None:
        self._master, slave = pty.openpty()
        self.resize(columns)
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *SVCQ, "top"],
            stdin=slave, stdout=slave, stderr=slave, env=env,
        )  # fmt: skip
        os.set_blocking(self._master, False)
        self.text = ""

    def resize(self, columns: int, rows: int = 24) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def see(self, pattern: str) -> None:
        """Wait until this is printed from here on."""
        seen = len(self.text)
        eventually(lambda: re.search(pattern, self.read()[seen:]))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read(self) -> str:
        try:
            while data := os.read(self._master, 65536):
                self.text += data.decode(errors="replace")
        except OSError:
            pass
        return self.text

    def end(self) -> int:
        """Its exit code; the terminal is as it was."""
        code = eventually(lambda: self.read() and self.process.poll() is not None)
        assert code
        self.read()
        assert self.text.count("\x1b[?1049h") == 1, "the alternate screen"
        assert self.text.rindex("\x1b[?1049l") > self.text.rindex("\x1b[?1049h")
        assert termios.tcgetattr(self._slave) == self.before
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._slave)
        os.close(self._master)


@contextmanager
def on_screen(env: Mapping[str, str], columns: int = 80) -> Iterator[Screen]:
    screen = Screen(env, columns)
    try:
        yield screen
    finally:
        screen.close()


def test_keys_in_a_terminal(client: Client, shell_environment: Mapping[str, str]) -> None:
    client.command("echo one", name="first")
    client.command("echo two", name="second", queue="video")
    with on_screen(shell_environment) as screen:
        screen.see("second")
        screen.type("h")
        eventually(lambda: client.get(1).state is State.HELD)
        screen.see("is held")
        screen.type("h")  # the selection stays with its job
        eventually(lambda: client.get(1).state is State.PENDING)
        screen.type("/second\r")
        screen.see("only 'second'")
        screen.type("p")
        eventually(lambda: client.queue("video").paused)
        screen.type("p")
        eventually(lambda: not client.queue("video").paused)
        screen.type("c")
        screen.see("Cancel job 2")
        screen.type("n")
        screen.see("Not cancelled")
        screen.type("cy")
        eventually(lambda: client.get(2).state is State.CANCELLED)
        screen.see("cancelled")
        screen.type("r")
        eventually(lambda: client.get(2).state is State.PENDING)
        screen.type("\x1b")
        screen.see("first")
        screen.type("q")
        assert screen.end() == 0


def test_output_is_followed_in_a_terminal(
    client: Client, shell_environment: Mapping[str, str]
) -> None:
    client.command("true")
    (run,) = client.fetch()
    descriptor = open_log(log_file(client.config.home, 1, 1))
    os.write(descriptor, b"begun \x1b]0;owned\x07\n")
    with on_screen(shell_environment) as screen:
        screen.see("Running")
        screen.type("\r")
        screen.see(r"begun \\x1b\]0;owned\\x07")
        os.write(descriptor, b"going on\n")
        screen.see("going on")
        client.complete(run)
        screen.see("completed")
        screen.type("qq")
        assert screen.end() == 0
    os.close(descriptor)


def test_what_happens_elsewhere_appears(
    client: Client, shell_environment: Mapping[str, str]
) -> None:
    with on_screen(shell_environment) as screen:
        screen.see("There are no jobs")
        client.command("true", name="newcomer")
        screen.see("newcomer")
        screen.type("\x03")
        assert screen.end() == 130


def test_a_signal_leaves_the_terminal_as_it_was(
    client: Client, shell_environment: Mapping[str, str]
) -> None:
    with on_screen(shell_environment) as screen:
        screen.see("There are no jobs")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.end() == 143


def test_a_narrow_terminal_that_grows(client: Client, shell_environment: Mapping[str, str]) -> None:
    for n in range(40):
        client.command(f"echo {n}", name=f"name-{n}")
    with on_screen(shell_environment, columns=20) as screen:
        screen.see("Waiting")
        screen.resize(120, 40)
        screen.see("q quit")
        screen.resize(20, 3)
        screen.type("jjjj")
        screen.resize(1, 1)
        screen.type("q")
        assert screen.end() == 0


@pytest.mark.parametrize("term", ["no-such-terminal", "dumb"])
def test_a_terminal_nobody_knows(
    client: Client, shell_environment: Mapping[str, str], term: str
) -> None:
    """One sentence, or a plain screen: never a traceback."""
    with on_screen({**shell_environment, "TERM": term}) as screen:
        screen.type("q")
        eventually(lambda: screen.read() is not None and screen.process.poll() is not None)
        assert "Traceback" not in screen.read()
        assert screen.process.returncode in (0, 2)
        assert termios.tcgetattr(screen._slave) == screen.before


def test_the_line_is_cheap_to_read(client: Client) -> None:
    """Through indexes: no step of the plan reads all jobs."""
    client.command("true")
    engine = client.store.engine
    for name, values in {
        "first_in_line": {"n": 5},
        "in_front": {
            "id": 1, "rank": 1, "queue": "q", "host": "", "condition": "", "most": 5,
        },
        "running_jobs": {"queue": None, "key": None, "n": 5},
    }.items():  # fmt: skip
        query = engine._queries[name]
        rows = engine.connection().execute(f"EXPLAIN QUERY PLAN {query.sql}", query.ordered(values))
        plan = [row[3] for row in rows]
        scans = [step for step in plan if re.match(r"SCAN (jobs|specs|ahead)\b", step)]
        assert scans == [], plan


def test_rows_are_in_the_order_of_their_sections() -> None:
    ids = [one.id for one in visible(SCREEN, View())]
    assert all(first < second for first, second in pairwise(ids))
