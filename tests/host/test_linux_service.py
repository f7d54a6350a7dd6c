"""What is told where there is no systemd, and by whom a service of the machine may be made."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from svcq.errors import NotPermitted, Refused, SvcqError, Unreachable
from svcq.host import linux_service, linux_workers, service
from svcq.host.linux_systemctl import Systemctl


def test_where_there_is_no_systemd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    manager = service.manager()
    with pytest.raises(Refused, match=r"no systemd on this machine .* use svcq up"):
        manager.install("/usr/bin/python3", {})
    assert not manager.unit_file().exists()
    assert manager.standing() == service.Standing(installed=False, running=False)
    assert manager.start_worker(["true"], {}, tmp_path / "log", 1) is None
    assert manager.why_leaving() == "stop"
    service.notify("READY=1")  # nobody listens


def test_commands_say_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    manager = service.manager()
    for verb in (manager.start, manager.stop, manager.restart):
        with pytest.raises(Refused, match="run svcq install, or svcq up"):
            verb()


@pytest.mark.parametrize(
    ("said", "kind", "names"),
    [
        ("Failed to connect to bus: No medium found", Unreachable, "cannot be reached"),
        ("System has not been booted with systemd", Unreachable, "svcq up"),
        ("Interactive authentication required.", NotPermitted, "use sudo"),
        ("Access denied", NotPermitted, "use sudo"),
        ("Unit x.service not found.", Refused, "failed: Unit x.service not found."),
    ],
)
@pytest.mark.parametrize("system", [False, True])
def test_what_systemd_says_becomes_a_sentence(
    said: str, kind: type[SvcqError], names: str, *, system: bool
) -> None:
    error = Systemctl(system=system)._error(("start", "x.service"), said)
    assert isinstance(error, kind)
    assert names in str(error)
    assert str(error).endswith(".")


def test_a_worker_is_asked_for_at_a_door(tmp_path: Path) -> None:
    door = str(tmp_path / "door")
    assert linux_workers.ask_for_one(door) is None  # there is none
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(door)
        listening.listen()
        answers = iter([b"4711\n", b"", b"not a pid\n"])

        def answer() -> None:
            for said in answers:
                line, _ = listening.accept()
                with line:
                    line.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        assert linux_workers.ask_for_one(door) == 4711
        assert linux_workers.ask_for_one(door) is None  # it ended before it said anything
        assert linux_workers.ask_for_one(door) is None
        thread.join()


def test_a_process_outside_of_the_unit_is_not_inside() -> None:
    assert not service.manager().is_inside(os.getpid())
    assert not service.manager().is_inside(1 << 22)


def test_units_of_nobody_are_read_as_nothing(tmp_path: Path) -> None:
    assert linux_service._read(tmp_path / "none") is None
