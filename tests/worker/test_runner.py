"""The runner, spoken to over its socket as a worker does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svcq.worker.runners import PROTOCOL, RUNNER
from tests.helpers import eventually

MODULE = """
import asyncio, os, sys, time

def add(a, b):
    return a + b

def wait(file):
    while not os.path.exists(file):
        time.sleep(0.01)
    return "waited"

def say(text):
    print(text)

async def later(seconds):
    await asyncio.sleep(seconds)
    return seconds
"""


class Talk:
    """A runner and our end of the line to it."""

    def __init__(self, folder: Path, mode: str, module: str = "jobs", python: str = sys.executable):
        self.folder = folder
        (folder / "jobs.py").write_text(MODULE)
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [python, str(RUNNER), str(theirs.fileno()), str(os.getpid())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self._socket = ours
        self._socket.settimeout(30)
        self._lines = ours.makefile("rb")
        hello = {"protocol": PROTOCOL, "mode": mode, "path": [str(folder)], "import": [module],
                 "max_payload": 1000}  # fmt: skip
        self.send({"hello": hello})

    def send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(self._lines.readline())
        return heard

    def call(self, key: str, name: str, *args: Any) -> list[Any]:
        return [key, f"jobs.{name}", json.dumps([args, {}]), 1, str(self.folder / f"{key}.log"),
                f"marker-{key}", 7, 1]  # fmt: skip

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture(params=["plain", "async"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path, request.param)
    assert talk.hear()["ready"]["protocol"] == PROTOCOL
    yield talk
    talk.close()
    assert talk.process.wait(30) == 1  # nobody is left to tell


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path, "plain")
    talk.hear()
    yield talk
    talk.process.kill()
    talk.process.wait()
    talk.close()


def done(talk: Talk, count: int) -> list[list[Any]]:
    """The next calls to end, in whatever batches they are told."""
    ended: list[list[Any]] = []
    while len(ended) < count:
        ended += talk.hear().get("done", ())
    return ended


def test_calls_and_their_ends(talk: Talk) -> None:
    talk.send({"run": [talk.call("a", "add", 1, 2), talk.call("b", "add", 1)]})
    first, second = sorted(done(talk, 2))
    assert first == ["a", "completed", "3", None, None, False, False]
    assert second[:2] == ["b", "rejected"]
    assert "The arguments do not fit jobs.add(a, b)" in second[3]
    assert not (talk.folder / "a.log").exists()


def test_what_is_said_goes_to_the_log_of_its_call(talk: Talk) -> None:
    talk.send({"run": [talk.call("a", "say", "one"), talk.call("b", "say", "two")]})
    assert [item[5] for item in done(talk, 2)] == [True, True]
    assert (talk.folder / "a.log").read_text() == "one\n"
    assert (talk.folder / "b.log").read_text() == "two\n"


def test_a_result_over_the_limit(talk: Talk) -> None:
    talk.send({"run": [talk.call("a", "add", "x" * 600, "x" * 600)]})
    ((_, how, _, error, *_),) = done(talk, 1)
    assert how == "failed"
    assert "over the limit of 1,000" in error


def test_a_coroutine_is_awaited_by_either(talk: Talk) -> None:
    talk.send({"run": [talk.call("a", "later", 0.01)]})
    assert done(talk, 1)[0][:3] == ["a", "completed", "0.01"]


def test_what_has_not_started_is_given_back(plain: Talk, tmp_path: Path) -> None:
    go = tmp_path / "go"
    plain.send({"run": [plain.call("a", "wait", str(go)), plain.call("b", "add", 1, 2)]})
    plain.send({"run": [plain.call("c", "add", 1, 2)]})
    _wait_until_started(plain, "a")
    plain.send({"give_back": True})
    assert plain.hear() == {"returned": ["b", "c"]}
    go.touch()
    assert done(plain, 1)[0][:3] == ["a", "completed", '"waited"']


def test_a_call_that_has_not_started_is_cancelled_alone(plain: Talk, tmp_path: Path) -> None:
    go = tmp_path / "go"
    calls = [plain.call(key, "add", 1, 2) for key in "bcd"]
    plain.send({"run": [plain.call("a", "wait", str(go)), *calls]})
    _wait_until_started(plain, "a")
    plain.send({"cancel": ["c"]})
    assert plain.hear() == {"returned": ["c"]}
    go.touch()
    assert [item[0] for item in done(plain, 3)] == ["a", "b", "d"]


def _wait_until_started(talk: Talk, key: str) -> None:
    eventually((talk.folder / f"{key}.log").exists)


def test_a_coroutine_cancelled_before_its_first_step_is_told_of(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "async")
    talk.hear()
    for number in range(50):
        key = f"k{number}"
        talk.send({"run": [talk.call(key, "later", 600)]})
        talk.send({"cancel": [key]})
        assert done(talk, 1)[0][:2] == [key, "cancelled"]
    talk.close()
    talk.process.wait(30)


def test_a_module_that_does_not_import(tmp_path: Path) -> None:
    talk = Talk(tmp_path, "plain", "no_such_module")
    assert talk.hear() == {"failed": "ModuleNotFoundError: No module named 'no_such_module'"}
    assert talk.process.wait(30) == 0
    talk.close()


def test_modules_of_svcq_do_not_hide_those_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "spool.py").write_text("def name():\n    return 'of the project'\n")
    talk = Talk(tmp_path, "plain", "spool")
    talk.hear()
    talk.send({"run": [[*talk.call("a", "x")[:1], "spool.name", *talk.call("a", "x")[2:]]]})
    assert done(talk, 1)[0][2] == '"of the project"'
    talk.close()
    talk.process.wait(30)


def test_it_ends_when_its_worker_is_gone_before_it_could_look(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    runner = subprocess.run(
        [sys.executable, str(RUNNER), str(theirs.fileno()), "1"],
        pass_fds=(theirs.fileno(),),
        timeout=30,
        check=False,
    )
    ours.close()
    theirs.close()
    assert runner.returncode == 1
