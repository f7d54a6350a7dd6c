"""`svcq log`: of one run or all, as it grows, and harmless in a terminal."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from svcq.cli.output import Harmless
from svcq.client import Client
from svcq.host import processes
from svcq.host.files import open_log
from svcq.jobs import Claim, completed, failed
from svcq.logs import LogReader, log_file, start_of_tail
from svcq.store import Claimer, Report, WorkerInfo
from tests.cli.conftest import Svcq
from tests.cli.terminals import SVCQ, Terminal
from tests.helpers import eventually


def write(client: Client, run: Claim, data: bytes) -> None:
    descriptor = open_log(log_file(client.config.home, run.id, run.run))
    os.write(descriptor, data)
    os.close(descriptor)


def run_once(client: Client, data: bytes | None, *, error: str | None = None) -> Claim:
    """One run of the next job that writes this and then ends."""
    client.store.promote()
    (run,) = client.fetch()
    if data is not None:
        write(client, run, data)
    outcome = completed(exit_code=0) if error is None else failed(error, delay_ms=0)
    client.store.finish([Report(run.id, run.run, run.worker, outcome)])
    return run


def claim_elsewhere(client: Client, host: str) -> Claim:
    worker = client.store.register(WorkerInfo(host, 1))
    return client.store.claim(Claimer(worker, host), 1)[0]


# What is there


def test_the_newest_run(svcq: Svcq, client: Client) -> None:
    svcq.add()
    run_once(client, b"first\n", error="no")
    run_once(client, b"second\n")
    assert svcq.ok("log", 1) == (0, "second\n", "")
    assert svcq.ok("log", 1, "--run", 1).out == "first\n"


def test_all_runs(svcq: Svcq, client: Client) -> None:
    svcq.add()
    run_once(client, b"first", error="no")
    run_once(client, b"second\n")
    assert svcq.ok("log", 1, "--all").out == "==> run 1 <==\nfirst\n\n==> run 2 <==\nsecond\n"


@pytest.mark.parametrize(
    ("written", "tail", "printed"),
    [
        ("a\nb\nc\n", 2, "b\nc\n"),
        ("a\nb\nc", 2, "b\nc"),
        ("a\nb\nc\n", 3, "a\nb\nc\n"),
        ("a\nb\nc\n", 9, "a\nb\nc\n"),
        ("a\nb\nc\n", 0, ""),
        ("a\nb\nc", 0, ""),
        ("a\n\n\n", 2, "\n\n"),
        ("", 2, ""),
        ("one line", 1, "one line"),
        ("x" * 200_000 + "\n" + "y" * 200_000 + "\n", 1, "y" * 200_000 + "\n"),
        ("\n".join(map(str, range(100_000))) + "\n", 2, "99998\n99999\n"),
    ],
    ids=range(11),
)
def test_the_last_lines(svcq: Svcq, client: Client, written: str, tail: int, printed: str) -> None:
    svcq.add()
    run_once(client, written.encode())
    assert svcq.ok("log", 1, "--tail", tail).out == printed


def test_a_dropped_part_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"begin\n" + b"x" * 300_000 + b"\nend\n")
    with path.open("rb+") as file:
        assert processes.punch_hole(file.fileno(), 65536, 131072)
    assert path.read_bytes()[start_of_tail(path, 1) :] == b"end\n"
    read = b"".join(LogReader(path).read())
    assert b"131,072 bytes dropped" in read
    assert read.startswith(b"begin\n")
    assert read.endswith(b"\nend\n")
    behind = LogReader(path, 70_000)  # a reader that was overtaken
    assert b"126,608 bytes dropped" in b"".join(behind.read())
    assert behind.position == path.stat().st_size
    assert list(behind.read()) == []


def test_a_pipe_gets_the_bytes_as_they_are(
    svcq: Svcq, client: Client, shell_environment: Mapping[str, str]
) -> None:
    svcq.add()
    data = b"\x1b]0;title\x07\x9b2J\xff\0\r\nend"
    run_once(client, data)
    said = subprocess.run(
        [*SVCQ, "log", "1"], env=shell_environment, capture_output=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, data, b"")


def test_as_json(svcq: Svcq, client: Client) -> None:
    svcq.add()
    assert svcq.ok("log", 1, "--json").json is None
    run_once(client, b"a\n\xff\n", error="no")
    run_once(client, b"b\n")
    one = svcq.ok("log", 1, "--json").json
    assert one["file"].endswith("1.2.log")
    assert (one["run"], one["output"], one["whole"]) == (2, "b\n", True)
    both = svcq.ok("log", 1, "--json", "--all").json
    assert [run["output"] for run in both] == ["a\n\N{REPLACEMENT CHARACTER}\n", "b\n"]


# What is not there


def test_a_job_that_has_not_run(svcq: Svcq) -> None:
    svcq.add()
    assert svcq.ok("log", 1) == (0, "", "Job 1 has not run yet: svcq why 1 says why.\n")
    assert svcq.refuses("log", 1, "--run", 1, code=3) == "Job 1 has no run 1: it has no run yet."


def test_a_log_that_is_gone(svcq: Svcq, client: Client) -> None:
    svcq.add()
    (run,) = client.fetch()
    client.store.finish([Report(1, 1, run.worker, completed(exit_code=0, tail="a\nb"))])
    said = svcq.ok("log", 1)
    assert said.out == "a\nb\n"
    assert said.err == ("The log of run 1 of job 1 is no longer there: these are its last lines.\n")
    assert svcq.ok("log", 1, "--tail", 1).out == "b\n"
    assert svcq.ok("log", 1, "--json").json["whole"] is False


def test_a_log_of_another_machine(svcq: Svcq, client: Client) -> None:
    svcq.add()
    run = claim_elsewhere(client, "render1")
    assert svcq.ok("log", 1).err == "The output of run 1 of job 1 is on render1: look there.\n"
    client.store.finish([Report(1, 1, run.worker, completed(exit_code=0, tail="far"))])
    said = svcq.ok("log", 1)
    assert (said.out, "is on render1: these are its last lines" in said.err) == ("far\n", True)


def test_wrong_usage(svcq: Svcq) -> None:
    svcq.add()
    svcq.refuses("log", 7, code=3)
    svcq.refuses("log", 1, "--all", "--run", 1)
    svcq.refuses("log", 1, "-f", "--run", 1)
    svcq.refuses("log", 1, "-f", "--json")
    svcq.refuses("log", 1, "--tail", "-1")
    svcq.refuses("log", 1, "--run", "x")


# As it grows


class Follow:
    """`svcq log -f` as a process."""

    def __init__(self, env: Mapping[str, str], *words: str) -> None:
        self.process = subprocess.Popen(
            [*SVCQ, "log", "-f", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = b""

    def see(self, wanted: bytes) -> None:
        eventually(lambda: wanted in self._read())

    def _read(self) -> bytes:
        assert self.process.stdout is not None
        self.text += self.process.stdout.read() or b""
        return self.text

    def end(self) -> tuple[int, bytes, bytes]:
        eventually(lambda: self._read() is not None and self.process.poll() is not None)
        self._read()
        _, err = self.process.communicate()
        return self.process.returncode, self.text, err


def test_follows_through_attempts_to_the_end(
    client: Client, shell_environment: Mapping[str, str]
) -> None:
    client.command("true")
    follow = Follow(shell_environment, "1")
    (run,) = client.fetch()
    write(client, run, b"one\n")
    follow.see(b"one\n")
    write(client, run, b"two\n")
    follow.see(b"two\n")
    client.fail(run, "no", delay=0)
    client.store.promote()
    (run,) = client.fetch()
    write(client, run, b"three\n")
    follow.see(b"three\n")
    client.complete(run)
    assert follow.end() == (0, b"one\ntwo\n\n==> run 2 <==\nthree\n", b"")


def test_follows_from_the_last_lines(client: Client, shell_environment: Mapping[str, str]) -> None:
    client.command("true")
    (run,) = client.fetch()
    write(client, run, b"old\nnew\n")
    follow = Follow(shell_environment, "1", "--tail", "1")
    follow.see(b"new\n")
    client.complete(run)
    assert follow.end() == (0, b"new\n", b"")


def test_following_what_has_ended_prints_it(svcq: Svcq, client: Client) -> None:
    svcq.add()
    run_once(client, b"first\n", error="no")
    run_once(client, b"done\n")
    assert svcq.ok("log", "-f", 1).out == "done\n"
    everything = svcq.ok("log", "-f", "--all", 1).out
    assert everything == "==> run 1 <==\nfirst\n\n==> run 2 <==\ndone\n"


def test_following_another_machine_ends_with_the_last_lines(
    client: Client, shell_environment: Mapping[str, str]
) -> None:
    client.command("true")
    run = claim_elsewhere(client, "render1")
    follow = Follow(shell_environment, "1")
    client.store.finish([Report(1, 1, run.worker, completed(exit_code=0, tail="far"))])
    code, out, _ = follow.end()
    assert (code, out) == (0, b"far\n")


def test_a_job_that_is_removed_ends_the_following(
    client: Client, shell_environment: Mapping[str, str]
) -> None:
    client.command("true")
    follow = Follow(shell_environment, "1")
    (run,) = client.fetch()
    write(client, run, b"here\n")
    follow.see(b"here\n")
    client.fail(run, "no", delay=60)
    client.purge("retrying")
    code, out, err = follow.end()
    assert (code, out) in [(3, b"here\n"), (0, b"here\n")], "removed, or seen to end before"
    assert err in [
        b"svcq: There is no job 1: it never was, or it was removed after its end.\n",
        b"",
    ]


def test_ctrl_c_ends_it_quietly(client: Client, shell_environment: Mapping[str, str]) -> None:
    client.command("true")
    (run,) = client.fetch()
    write(client, run, b"begun\n")
    terminal = Terminal(shell_environment, "log", "-f", "1")
    terminal.see("begun\n")
    terminal.process.send_signal(signal.SIGINT)
    code, text = terminal.end()
    assert (code, text) == (130, "begun\n")


def test_a_reader_that_leaves_ends_it_quietly(
    svcq: Svcq, client: Client, shell_environment: Mapping[str, str]
) -> None:
    svcq.add()
    run_once(client, b"x\n" * 500_000)
    line = f"{sys.executable} -m svcq log 1 | head -n 1"
    said = subprocess.run(
        ["sh", "-c", line], env=shell_environment, capture_output=True, check=False
    )
    assert (said.stdout, said.stderr) == (b"x\n", b"")


def test_a_terminal_is_told_what_it_waits_for(
    client: Client, shell_environment: Mapping[str, str]
) -> None:
    client.command("true")
    terminal = Terminal(shell_environment, "log", "-f", "1")
    terminal.see(r"Job 1 is pending: waiting for it to start \(svcq why 1\)\.\n")
    (run,) = client.fetch()
    write(client, run, b"no newline")
    terminal.see("no newline")
    client.complete(run)
    code, text = terminal.end()
    assert code == 0
    assert text.endswith("no newline\nJob 1 is completed.\n")


def test_a_terminal_is_told_that_nothing_was_written(
    client: Client, shell_environment: Mapping[str, str]
) -> None:
    client.command("true")
    (run,) = client.fetch()
    terminal = Terminal(shell_environment, "log", "-f", "1")
    terminal.see(r"Run 1 of job 1 has written nothing yet\.\n")
    client.complete(run)
    assert terminal.end()[1].count("written nothing yet") == 1


# Harmless in a terminal


HOSTILE = {
    "title": b"\x1b]0;owned\x07",
    "clipboard": b"\x1b]52;c;cm0gLXJm\x1b\\",
    "clear": b"\x1b[2J\x1b[H",
    "cursor": b"\x1b[5A\x1b[10;10H",
    "alternate screen": b"\x1b[?1049h",
    "answer back": b"\x1b[c\x1b[6n\x05",
    "dcs": b'\x1bP$q"p\x1b\\',
    "reset": b"\x1bc",
    "8-bit csi": b"\x9b2J",
    "8-bit csi in utf-8": "\x9b2J".encode(),
    "8-bit osc": b"\x9d0;owned\x9c",
    "backspaces": b"rm -rf\x08\x08\x08",
    "bell": b"\x07",
    "right to left": "\N{RIGHT-TO-LEFT OVERRIDE}evil".encode(),
    "shift out": b"\x0e",
    "delete": b"\x7f",
    "a colour that never ends": b"\x1b[" + b"1;" * 100 + b"m",
    "a colour with more in it": b"\x1b[1\x1b]0;x\x07m",
    "not a colour": b"\x1b[>4;2m\x1b[?1m\x1b[1 m",
}


@pytest.mark.parametrize("step", [1, 2, 3, 1000])
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_output_is_shown_and_not_sent(data: bytes, step: int) -> None:
    harmless = Harmless()
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    text = "".join(map(harmless.feed, chunks)) + harmless.end()
    assert text.isprintable(), text
    assert "\\x" in text or "\\u" in text


@pytest.mark.parametrize("step", [1, 2, 3, 1000])
def test_what_is_no_harm_stays(step: int) -> None:
    data = "\x1b[1;31mred\x1b[0m\ttab\r\nä 日本語 100%\rnext\u3000x\n".encode()
    harmless = Harmless()
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    text = "".join(map(harmless.feed, chunks)) + harmless.end()
    assert text == "\x1b[1;31mred\x1b[0m\ttab\nä 日本語 100%\nnext\u3000x\n\x1b[0m"


def test_without_colours_they_are_left_out() -> None:
    assert Harmless(colours=False).feed(b"\x1b[31mred\x1b[m\n") == "red\n"


def test_what_is_unfinished_at_the_end_is_shown() -> None:
    harmless = Harmless()
    assert harmless.feed(b"a\x1b[3") == "a"
    assert harmless.end() == "\\x1b[3"
    assert harmless.feed(b"\xe6\x97") + harmless.end() == "\\xe6\\x97"


def test_a_terminal_gets_harmless_output(
    svcq: Svcq, client: Client, shell_environment: Mapping[str, str]
) -> None:
    svcq.add()
    run_once(client, b"".join(HOSTILE.values()) + b"\n\x1b[32mgreen\x1b[0m\n")
    code, text = Terminal(shell_environment, "log", "1").end()
    assert code == 0
    assert "\x1b[32mgreen\x1b[0m\n" in text
    left = text.replace("\x1b[32m", "").replace("\x1b[0m", "").replace("\n", "")
    assert left.isprintable()


def test_the_host_of_these_tests_is_this_one(svcq: Svcq, client: Client) -> None:
    """A log that is missing here, of a worker here, was never written."""
    svcq.add()
    client.fetch()
    assert client.workers()[0].host == socket.gethostname()
    assert svcq.ok("log", 1) == (0, "", "")
