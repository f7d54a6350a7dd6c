"""The command line as a process: in a terminal, in a pipe, in odd locales, interrupted."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from svcq.client import Client
from tests.helpers import eventually

SVCQ = [sys.executable, "-m", "svcq"]
Environment = Mapping[str, str]


class Terminal:
    """A process in a pseudo-terminal."""

    def __init__(self, env: Environment, *words: str, columns: int = 80) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [*SVCQ, *words], stdin=slave, stdout=slave, stderr=slave, env=env,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        os.set_blocking(self._master, False)
        self.text = ""

    def see(self, pattern: str) -> str:
        """Wait until the pattern was printed; everything so far."""
        return eventually(lambda: re.search(pattern, self._read()) and self.text)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> tuple[int, str]:
        """Its exit code, and all it printed."""
        eventually(lambda: self._read() is not None and self.process.poll() is not None)
        self._read()
        os.close(self._master)
        return self.process.returncode, self.text

    def _read(self) -> str:
        try:
            while data := os.read(self._master, 65536):
                self.text += data.decode(errors="replace").replace("\r\n", "\n")
        except OSError:  # nothing more yet, or nothing more at all
            pass
        return self.text


def lines_of(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).splitlines()


def run(env: Environment, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SVCQ, *words], env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def some_jobs(client: Client) -> Client:
    client.command(["echo", "plain"], name="first")
    client.command("echo " + "long " * 50, name="a-rather-long-name-for-a-job", queue="video")
    client.command("echo 日本語テキスト é", name="größe")
    client.cancel("first")
    return client


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_tables_fit_the_terminal(
    some_jobs: Client, shell_environment: Environment, columns: int
) -> None:
    for words in (["list"], ["queue", "list"], ["stats"], ["activity"], ["config", "list"]):
        code, text = Terminal(shell_environment, *words, columns=columns).end()
        assert code == 0
        lines = lines_of(text)
        assert len(lines) > 1
        if words != ["config", "list"] or columns > 40:  # its names alone are wider than that
            assert max(map(len, lines)) <= columns, lines


def test_a_narrow_list_keeps_what_matters(
    some_jobs: Client, shell_environment: Environment
) -> None:
    _, text = Terminal(shell_environment, "list", columns=20).end()
    head, *rows = lines_of(text)
    assert head.split() == ["ID", "STATE", "WHAT"]
    assert [row.split()[0] for row in rows] == ["3", "2", "1"]


def test_states_are_coloured_in_a_terminal_alone(
    some_jobs: Client, shell_environment: Environment
) -> None:
    assert "\x1b[2mcancelled\x1b[0m" in Terminal(shell_environment, "list").end()[1]
    plain = {**shell_environment, "NO_COLOR": "1"}
    assert "\x1b" not in Terminal(plain, "list").end()[1]
    assert "\x1b" not in Terminal({**shell_environment, "TERM": "dumb"}, "list").end()[1]
    assert "\x1b" not in run(shell_environment, "list").stdout


def test_help_fits_a_narrow_terminal(shell_environment: Environment) -> None:
    code, text = Terminal(shell_environment, "add", "--help", columns=20).end()
    assert code == 0
    assert "--priority" in text


def test_add_says_what_became_of_it(shell_environment: Environment) -> None:
    assert Terminal(shell_environment, "add", "--", "true").end() == (0, "Job 1 is pending.\n")
    held = Terminal(shell_environment, "add", "--unique", "k", "--hold", "--", "true").end()
    assert held == (0, "Job 2 is held.\n")
    again = Terminal(shell_environment, "add", "--unique", "k", "--", "true").end()
    assert again == (0, "Job 2 has that unique key already; it is held.\n")


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("yes", 0), ("n", 1), ("", 1)])
def test_a_question_is_asked(
    client: Client, shell_environment: Environment, answer: str, left: int
) -> None:
    client.command("true", queue="mail")
    terminal = Terminal(shell_environment, "cancel", "--queue", "mail")
    terminal.see(r"This would cancel 1 job\. \[y/N\]")
    terminal.type(f"{answer}\n")
    code, _ = terminal.end()
    assert code == left
    assert client.counts()["pending"] == left


def test_wait_shows_progress(client: Client, shell_environment: Environment) -> None:
    client.command("true", name="render")
    (claim,) = client.fetch()
    terminal = Terminal(shell_environment, "wait", "render")
    terminal.see("render processing")
    client.progress(claim, 0.5, "half \x1b[31mway")
    assert "\x1b[31m" not in terminal.see(r"\[#{10} {10}\] 50%  half")
    client.complete(claim)
    code, text = terminal.end()
    assert code == 0
    assert text.endswith("Job 1 is completed.\n")


def test_ctrl_c_is_quiet(client: Client, shell_environment: Environment) -> None:
    client.command("true")
    terminal = Terminal(shell_environment, "wait", "1")
    terminal.see("1 pending")
    terminal.process.send_signal(signal.SIGINT)
    code, text = terminal.end()
    assert code == 130
    assert "Traceback" not in text


def test_a_closed_pipe_is_quiet(client: Client, shell_environment: Environment) -> None:
    client.add([client.new_command("echo " + "x" * 200)] * 3000)
    for words in (["list", "--all"], ["list", "--all", "--json"], ["export"]):
        process = subprocess.Popen(
            [*SVCQ, *words], env=shell_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() == 141


@pytest.mark.parametrize(
    "locale",
    [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX"}],
)
def test_a_locale_that_is_not_utf_8(
    some_jobs: Client, shell_environment: Environment, locale: Environment
) -> None:
    env = {**shell_environment, **locale}
    for words in (["list"], ["show", "3"], ["list", "--json"], ["add", "--help"], ["list", "--x"]):
        done = run(env, *words)
        assert done.returncode in {0, 2}
        assert "Traceback" not in done.stderr
    code, text = Terminal(env, "list", columns=20).end()
    assert code == 0
    assert "Traceback" not in text


def test_an_editor_changes_a_job(
    client: Client, shell_environment: Environment, tmp_path: Path
) -> None:
    client.command("echo a", name="letter", priority=1)
    editor = write_editor(tmp_path, "s/^priority = .*/priority = 9/; s/echo a/echo b | wc/")
    env = {**shell_environment, "VISUAL": "", "EDITOR": editor}
    assert Terminal(env, "edit", "letter").end() == (0, "Job 1 is pending.\n")
    job = client.get("letter")
    assert (job.priority, job.command) == (9, "echo b | wc")


def test_an_editor_that_changes_nothing(client: Client, shell_environment: Environment) -> None:
    client.command("echo a")
    code, text = Terminal({**shell_environment, "VISUAL": "true"}, "edit", "1").end()
    assert (code, text) == (1, "Nothing was changed.\n")


def test_an_emptied_file_changes_nothing(
    client: Client, shell_environment: Environment, tmp_path: Path
) -> None:
    client.command("echo a")
    env = {**shell_environment, "VISUAL": write_editor(tmp_path, "d")}
    assert Terminal(env, "edit", "1").end() == (1, "Nothing was changed.\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams(client: Client, shell_environment: Environment, closed: str) -> None:
    client.command("echo a")
    for words, code in (("list", 0), ("show 1", 0), ("show 9", 3)):
        line = f"{sys.executable} -m svcq {words} {closed}"
        done = subprocess.run(
            line, shell=True, env=shell_environment, capture_output=True, check=False
        )
        assert done.returncode == code, done
        assert b"Traceback" not in done.stderr


def test_a_mistake_in_the_editor_is_offered_again(
    client: Client, shell_environment: Environment, tmp_path: Path
) -> None:
    client.command("echo a")
    for change, hint in (
        ("s/^priority = .*/priority = 9999/", "1,000"),
        ("s/^priority = .*/prioritty = 1/", "did you mean priority"),
        ("s/^priority = .*/priority =/", "not TOML"),
    ):
        env = {**shell_environment, "VISUAL": write_editor(tmp_path, change)}
        terminal = Terminal(env, "edit", "1")
        terminal.see(r"Edit it again\? \[Y/n\]")
        terminal.type("n\n")
        code, text = terminal.end()
        assert code == 1
        assert hint in text
    assert client.get(1).priority == 0


@pytest.mark.parametrize(("editor", "code"), [("false", 1), ("/no/such/editor", 2)])
def test_an_editor_that_fails(
    client: Client, shell_environment: Environment, editor: str, code: int
) -> None:
    client.command("echo a")
    ended, text = Terminal({**shell_environment, "VISUAL": editor}, "edit", "1").end()
    assert ended == code
    assert text.startswith("svcq: The editor")


def write_editor(folder: Path, script: str) -> str:
    """A program that edits a file as a person would, by a sed script."""
    editor = folder / f"editor-{time.monotonic_ns()}"
    editor.write_text(f"#!/bin/sh\nexec sed -i '{script}' \"$1\"\n")
    editor.chmod(0o700)
    return str(editor)
