"""Keeping the machine awake, and putting it to sleep or out. The real logind is asked in
tests/linux/test_power.py; here its programs are programs of the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svcq.errors import Refused
from svcq.host import linux_power, windows_power
from svcq.host.linux_power import Inhibitor
from tests.clients import ROOT
from tests.helpers import eventually

# As systemd-inhibit does it: the lock is there before the program is.
GRANTS = 'echo "$@" > {folder}/asked; shift 4; "$@"; touch {folder}/gone'


def program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script.format(folder=folder)}\n")
    file.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_lock_is_held_until_it_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "systemd-inhibit", GRANTS, monkeypatch)
    inhibitor = Inhibitor()
    assert inhibitor.state() == "free"
    for _ in range(2):
        inhibitor.hold("jobs run")
        eventually(lambda: inhibitor.state() == "held")
        assert not (tmp_path / "gone").exists()
        inhibitor.release()
        assert inhibitor.state() == "free"
        eventually((tmp_path / "gone").exists)
        (tmp_path / "gone").unlink()
    inhibitor.close()
    assert (tmp_path / "asked").read_text() == (
        "--what=sleep --mode=block --who=svcq --why=jobs run cat\n"
    )


def test_a_lock_that_takes_time_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "systemd-inhibit", "exec sleep 600", monkeypatch)
    inhibitor = Inhibitor()
    inhibitor.hold("jobs run")
    assert inhibitor.state() == "asked"
    inhibitor.close()  # it does not wait for ever for a program that does not hear
    assert inhibitor.state() == "free"


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("echo Failed to inhibit: Access denied. >&2; exit 1",
         "logind said: Failed to inhibit: Access denied"),
        ("exit 1", "logind did not grant it"),
        (None, "there is no logind to ask for it"),
    ],
)  # fmt: skip
def test_a_lock_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, trouble: str
) -> None:
    if script is None:
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        program(tmp_path, "systemd-inhibit", script, monkeypatch)
    inhibitor = Inhibitor()
    inhibitor.hold("jobs run")
    eventually(lambda: inhibitor.state() == "refused")
    assert inhibitor.trouble == trouble
    inhibitor.close()


def test_a_lock_ends_with_whoever_held_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "systemd-inhibit", GRANTS, monkeypatch)
    code = (
        "import time\nfrom svcq.host.linux_power import Inhibitor\n"
        "inhibitor = Inhibitor()\ninhibitor.hold('jobs run')\n"
        "while inhibitor.state() == 'asked': time.sleep(0.01)\n"
        "print(inhibitor.state(), flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not (tmp_path / "gone").exists()
        holder.send_signal(signal.SIGKILL)
    eventually((tmp_path / "gone").exists)


@pytest.mark.parametrize(
    ("verb", "word", "what"),
    [
        ("sleep", "suspend", "put the machine to sleep"),
        ("shut_down", "poweroff", "shut the machine down"),
    ],
)
def test_sleep_and_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, word: str, what: str
) -> None:
    program(tmp_path, "systemctl", 'echo "$@" > {folder}/asked', monkeypatch)
    getattr(linux_power, verb)()
    asked = (tmp_path / "asked").read_text().split()
    assert asked[-1] == word
    assert "--no-ask-password" in asked
    program(tmp_path, "systemctl", "echo Access denied. >&2; exit 1", monkeypatch)
    with pytest.raises(Refused, match=rf"^svcq could not {what} \(Access denied\)\.$"):
        getattr(linux_power, verb)()
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(Refused, match="there is no systemd on this machine"):
        getattr(linux_power, verb)()


def test_both_systems_offer_the_same() -> None:
    for name in ("sleep", "shut_down", "Inhibitor"):
        assert callable(getattr(windows_power, name))
        assert callable(getattr(linux_power, name))
    for name in ("hold", "state", "release", "close"):
        assert callable(getattr(windows_power.Inhibitor, name))


def test_what_windows_is_told() -> None:
    assert windows_power.execution_state(awake=True) == 0x80000001
    assert windows_power.execution_state(awake=False) == 0x80000000
    assert windows_power.Inhibitor().state() == "free"
