"""Whose service it is: who may only look, and the one of the whole machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest
from svcq_tray import ask
from svcq_tray.door import Door
from svcq_tray.model import Situation
from svcq_tray.service import Service
from svcq_tray.view import view

from svcq.errors import Refused
from tests.clients import assert_sentence
from tests.tray.samples import lines
from tests.web.others import DAEMON, GAMES
from tests.web.test_users import Shared


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    # Other users may look into it, unlike pytest's own.
    public = Path(tempfile.mkdtemp(prefix="svcq-test-"))
    public.chmod(0o755)
    shared = Shared(tmp_path, public / "run")
    shared.let_in("daemon")
    shared.let_in("games", "reader")
    yield shared
    shared.close()
    rmtree(public)


def seen(shared: Shared, uid: int) -> dict[str, list[object]]:
    """The menu, as it is for another user."""

    def act(client: object) -> dict[str, list[object]]:
        look = view(Situation(ask.look(client), service="other"))  # type: ignore[arg-type]
        return {key: [item.text, item.enabled] for key, item in lines(look).items()}

    found: dict[str, list[object]] = shared.other(uid).client(act)
    return found


def test_each_sees_what_they_may(shared: Shared) -> None:
    job = shared.add("sleep 600", name="of the owner")
    shared.wait_until_running(job)
    reader, user = seen(shared, GAMES), seen(shared, DAEMON)
    assert reader[f"job-{job}"] == ["▶ of the owner", True]
    assert "You may only look" in str(reader["read-only"][0])
    assert reader["add"][1] is False
    assert user["add"][1] is True
    assert user[f"job-{job}-stop"][1] is False
    assert user["pause"][1] is False
    shared.client.cancel(job)


def machine(folder: Path) -> Door:
    return Door(folder, folder / "svcq.sock", folder, "machine")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `pkexec` notes what it was asked to run: a real one wants a person and a password."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "pkexec").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexit ${{CODE:-0}}\n')
    (tools / "pkexec").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path / "asked"


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_only_the_one_command_is_elevated(asked: Path, tmp_path: Path, verb: str) -> None:
    getattr(Service(machine(tmp_path)), verb)()
    assert asked.read_text() == f"{sys.executable} -m svcq --system {verb}\n"


def test_who_gives_no_password_is_told(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODE", "126")
    with pytest.raises(Refused) as caught:
        Service(machine(tmp_path)).start()
    assert_sentence(caught.value, "start")


def test_without_pkexec_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Refused, match="sudo svcq --system restart"):
        Service(machine(tmp_path)).restart()


def test_root_needs_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked straight, and says what is wrong: nothing is installed for this machine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="install"):
        Service(machine(tmp_path)).start()
