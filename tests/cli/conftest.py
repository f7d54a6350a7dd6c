"""The command line in this process, on a home of its own."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from svcq.cli import run
from svcq.client import Client


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Svcq:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: object, stdin: str | None = None) -> Said:
        if stdin is not None:
            self._monkeypatch.setattr(
                sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape")))
            )
        self._capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Said(code, *self._capsys.readouterr())

    def ok(self, *arguments: object, stdin: str | None = None) -> Said:
        said = self(*arguments, stdin=stdin)
        assert said.code == 0, said
        return said

    def refuses(self, *arguments: object, code: int = 2, stdin: str | None = None) -> str:
        """The one sentence on stderr, with nothing on stdout."""
        said = self(*arguments, stdin=stdin)
        assert said.code == code, said
        assert said.out == ""
        assert said.err.startswith("svcq: ")
        assert said.err.endswith((".\n", "?\n"))
        assert said.err.count("\n") == 1
        assert "Traceback" not in said.err
        return said.err.removeprefix("svcq: ").strip()

    def add(self, *options: object, command: tuple[str, ...] = ("true",)) -> int:
        """The id of a new command."""
        return int(self.ok("add", *options, "--", *command).out)

    def job(self, job: object) -> dict[str, Any]:
        shown: dict[str, Any] = self.ok("show", job, "--json").json
        return shown


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    monkeypatch.setenv("SVCQ_HOME", str(path))
    monkeypatch.delenv("SVCQ_STORE", raising=False)
    return path


@pytest.fixture
def svcq(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Svcq:
    return Svcq(capsys, monkeypatch)


@pytest.fixture
def client(home: Path) -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture
def shell_environment(home: Path) -> Mapping[str, str]:
    """For real processes: as a user's shell would have it, without what changes output."""
    ours = ("NO_COLOR", "COLUMNS", "TERM", "PYTHON")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {**kept, "SVCQ_HOME": str(home), "TERM": "xterm", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def some_jobs(client: Client) -> Client:
    client.command(["echo", "plain"], name="first")
    client.command("echo " + "long " * 50, name="a-rather-long-name-for-a-job", queue="video")
    client.command("echo 日本語テキスト é", name="größe")
    client.cancel("first")
    return client
