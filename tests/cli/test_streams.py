"""Streams that are closed, full or broken, and Ctrl-C at any moment: no traceback, nothing lost."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from svcq.client import Client
from tests.cli.terminals import SVCQ, Environment, Terminal, run


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


@pytest.mark.parametrize("words", ["--help", "list --help", "list", "status --json", "man"])
def test_a_full_disk_is_told(client: Client, shell_environment: Environment, words: str) -> None:
    client.command("true")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*SVCQ, *words.split()], env=shell_environment, stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("svcq: ")
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_errors_that_nobody_can_read_have_their_exit_code(
    client: Client, shell_environment: Environment
) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*SVCQ, "show", "9"], env=shell_environment, stderr=full, check=False
        )
    assert ended.returncode == 3
    line = f"{sys.executable} -m svcq show 9 2>&1 >/dev/null | true; exit ${{PIPESTATUS[0]}}"
    piped = subprocess.run(
        ["bash", "-c", line], env=shell_environment, capture_output=True, check=False
    )
    assert (piped.returncode, piped.stderr) == (3, b"")


def test_help_reaches_a_pipe(shell_environment: Environment) -> None:
    for words in (["--help"], ["list", "--help"], ["queue", "set", "--help"]):
        assert run(shell_environment, *words).stdout.startswith("usage: svcq ")


# Run a command that gets SIGINT in the middle of an import.
INTERRUPTED_AT = """
import os, signal, sys
_, moment, *words = sys.argv
sys.argv = ["svcq", *words]

class AtThatMoment:
    def find_spec(self, name, path, target=None):
        if name == moment:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, AtThatMoment())
from svcq.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "moment", ["svcq.cli", "svcq.cli.text", "svcq.cli.look", "svcq.store.sqlite", "sqlite3"]
)
def test_ctrl_c_while_it_starts(shell_environment: Environment, moment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, moment, "list"], env=shell_environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_where_it_is_ignored(shell_environment: Environment) -> None:
    """As in the background of a script: then nobody pressed it for us."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, "svcq.cli", "add", "true"], env=shell_environment,
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


# A thread that has just begun outlives the block that would have ended it.
INTERRUPTED_BY_THREAD = """
import os, signal, sys, threading
def now(*_):
    threading.setprofile(None)
    sys.setprofile(None)
    os.kill(os.getpid(), signal.SIGINT)
threading.setprofile(now)
sys.argv = ["svcq", "up"]
from svcq.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_while_svcq_up_starts(shell_environment: Environment) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_BY_THREAD], env=shell_environment,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    # By then it hears what is asked of it, and ends as it does at any later time.
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Stopped. What was running goes on at the next start.\n")
