"""`python -m svcq` as a process: what it prints, and how it exits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import svcq
from tests.clients import ROOT


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SVCQ_")}
    return {**kept, "SVCQ_HOME": str(home)}


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "svcq", *words],
        cwd=ROOT,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_refused(ended: subprocess.CompletedProcess[str], code: int, *named: str) -> None:
    """An exit code, and one sentence on stderr."""
    assert (ended.returncode, ended.stdout) == (code, ""), ended
    assert ended.stderr.startswith("svcq: ")
    assert ended.stderr.endswith((".\n", "?\n"))
    assert ended.stderr.count("\n") == 1, ended.stderr
    for word in named:
        assert word in ended.stderr


def test_version(home: Path) -> None:
    ended = run(home, "--version")
    assert (ended.returncode, ended.stdout) == (0, f"svcq {svcq.__version__}\n")


def test_help_touches_nothing(home: Path) -> None:
    ended = run(home, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    for command in ("up", "upgrade-store"):
        assert command in ended.stdout
    assert list(home.iterdir()) == []


def test_up_runs_until_it_is_interrupted(home: Path) -> None:
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-m", "svcq", "up"],
        cwd=ROOT,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            said.append(line)
            if "Ctrl-C" in line:
                process.send_signal(signal.SIGINT)
    assert process.returncode in {0, 130}, said
    assert str(home / "svcq.db") in said[0]
    assert not [line for line in said if "Traceback" in line]


def test_upgrading_a_store_that_is_up_to_date(home: Path) -> None:
    ended = run(home, "upgrade-store")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "nothing to do" in ended.stdout
    assert [path.name for path in home.glob("*schema*")] == []


def test_an_unknown_command(home: Path) -> None:
    assert_refused(run(home, "lsit"), 2, "'lsit'", "did you mean list?")


def test_a_store_that_is_not_a_database(home: Path) -> None:
    store = home / "svcq.db"
    store.write_text("my diary, which I want to keep\n" * 50)
    store.chmod(0o600)
    before = store.read_bytes()
    assert_refused(run(home, "status"), 4, str(store), "not a svcq store")
    assert_refused(run(home, "upgrade-store"), 4, str(store), "not a svcq store")
    assert store.read_bytes() == before


def test_a_store_that_others_may_write(home: Path) -> None:
    assert run(home, "add", "true").returncode == 0
    store = home / "svcq.db"
    store.chmod(0o666)
    assert_refused(run(home, "status"), 5, str(store), "chmod go-w")
    store.chmod(0o600)
    assert run(home, "status").returncode == 0


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[jobs\n", "line 1"),
        ("[jobs]\nmax_attempts = 0\n", "jobs.max_attempts"),
        ("[jobs]\nmax_atempts = 5\n", "did you mean jobs.max_attempts?"),
    ],
    ids=["not TOML", "out of range", "misspelt"],
)
def test_a_broken_configuration(home: Path, text: str, named: str) -> None:
    file = home / "config.toml"
    file.write_text(text)
    file.chmod(0o600)
    assert_refused(run(home, "status"), 2, str(file), named)
    assert not (home / "svcq.db").exists()
