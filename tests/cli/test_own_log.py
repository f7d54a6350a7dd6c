"""`svcq log --service` and `--workers`: what svcq itself has noted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from svcq.service.log import Log, put_aside, service_log
from tests.cli.conftest import Svcq
from tests.clients import ROOT


def test_it_can_be_read(svcq: Svcq, home: Path) -> None:
    assert svcq.ok("log", "--service").out == ""
    home.mkdir(0o700)
    for n in range(3):
        Log(home)(f"line {n}\x1b[2J")
    shown = svcq.ok("log", "--service").out.splitlines()
    assert [line[20:] for line in shown] == [f"line {n}\\x1b[2J" for n in range(3)]
    assert len(svcq.ok("log", "--service", "--tail", 2).out.splitlines()) == 2
    assert svcq.ok("log", "--service", "--tail", 0).out == ""
    assert len(svcq.ok("log", "--service", "--json").json) == 3
    (home / "logs" / "workers.log").write_text("of a worker\n")
    assert svcq.ok("log", "--workers").out == "of a worker\n"


@pytest.mark.parametrize(
    "words",
    [
        ("1", "--service"), ("--service", "--workers"), ("--service", "--run", "1"),
        ("--workers", "--all"), ("--service", "--follow", "--json"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(svcq: Svcq, words: tuple[str, ...]) -> None:
    assert "are given: give one." in svcq.refuses("log", *words)


def test_without_a_job_nothing_can_be_shown(svcq: Svcq) -> None:
    assert svcq.refuses("log") == "JOB is missing: see svcq log --help."


def test_it_can_be_followed(home: Path, shell_environment: Mapping[str, str]) -> None:
    home.mkdir(0o700)
    log = Log(home)
    log("before")
    with subprocess.Popen(
        [sys.executable, "-m", "svcq", "log", "--service", "--follow"],
        env=shell_environment, cwd=ROOT, stdout=subprocess.PIPE, text=True,
    ) as following:  # fmt: skip
        assert following.stdout is not None
        assert following.stdout.readline().endswith(" before\n")
        log("after")
        assert following.stdout.readline().endswith(" after\n")
        put_aside(service_log(home))
        log("in a new file")
        assert following.stdout.readline().endswith(" in a new file\n")
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 130
