"""`svcq when-done`: planning, looking, cancelling; tests/service and tests/linux carry it out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.service.plans import Plans
from svcq.service.when_done import WhenDone
from tests.cli.conftest import Svcq
from tests.helpers import eventually
from tests.host.test_power import program


def test_nothing_is_planned(svcq: Svcq) -> None:
    assert svcq.ok("when-done").out == "Nothing is planned for when all is done.\n"
    assert svcq.ok("when-done", "--json").json is None
    said = svcq("when-done", "--cancel")
    assert (said.code, said.out) == (1, "Nothing was planned.\n")


def test_a_plan_is_shown_and_cancelled(svcq: Svcq) -> None:
    svcq.add()
    svcq.add("--in", "1h")
    planned = (
        "When all work is done, svcq is to put the machine to sleep 1m later: 2 jobs left "
        "(1 pending, 1 scheduled). Nobody is there to do it: svcq start or svcq up.\n"
    )
    assert svcq.ok("when-done", "sleep").out == planned
    assert svcq.ok("when-done").out == planned
    assert svcq.ok("status").out.endswith(planned)
    shown = svcq.ok("when-done", "--json").json
    assert shown == svcq.ok("status", "--json").json["when_done"]
    assert (shown["action"], shown["wait"], shown["left"]) == (
        "sleep", 60.0, {"pending": 1, "scheduled": 1},
    )  # fmt: skip
    assert (shown["due_at"], shown["someone_will"]) == (None, False)
    assert svcq.ok("when-done", "--cancel").out == (
        "svcq is not to put the machine to sleep any more.\n"
    )
    assert svcq.ok("when-done", "--json").json is None


def test_the_last_one_planned_holds(svcq: Svcq) -> None:
    svcq.add("--queue", "video")
    svcq.ok("when-done", "sleep")
    said = svcq.ok("when-done", "--queue", "video", "--in", "5m", "shutdown").out
    assert "When all work of video is done, svcq is to shut the machine down 5m later" in said
    assert svcq.ok("when-done", "--json").json["queues"] == ["video"]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["--", "echo", "a b"], ["echo", "a b"]),
        (["echo", "sleep"], ["echo", "sleep"]),
        (["--", "sleep"], ["sleep"]),
        (["sleep", "5"], ["sleep", "5"]),
        (["echo done | wall"], "echo done | wall"),
    ],
)
def test_a_command(svcq: Svcq, words: list[str], command: object) -> None:
    svcq.ok("when-done", *words)
    shown = svcq.ok("when-done", "--json").json
    assert (shown["action"], shown["command"], shown["wait"]) == ("command", command, 0.0)


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["--cancel", "sleep"], 2, "give one"),
        (["--in", "5m"], 2, "Say what is to happen"),
        (["--queue", "video"], 2, "Say what is to happen"),
        (["--in", "soon", "sleep"], 2, "not a duration"),
        (["--queue", "nowhere", "sleep"], 3, "There is no queue 'nowhere'"),
        (["--", ""], 2, "empty"),
    ],
)
def test_wrong_plans_are_refused(svcq: Svcq, words: list[str], code: int, hint: str) -> None:
    assert hint in svcq.refuses("when-done", *words, code=code)
    assert svcq.ok("when-done", "--json").json is None


def test_what_became_of_it(
    svcq: Svcq, client: Client, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "systemctl", "echo No >&2; exit 1", monkeypatch)
    with WhenDone(client.config, lambda _: None):
        plans = Plans(home)
        eventually(plans.someone_will)
        svcq.ok("when-done", "--in", "10m", "sleep")
        eventually(plans.due)
        said = svcq.ok("when-done").out
        assert said.startswith("All work is done, and svcq is to put the machine to sleep in ")
        assert "svcq when-done --cancel prevents it" in said
        assert "Nobody is there" not in said
        svcq.ok("when-done", "--in", "0", "sleep")
        eventually(lambda: (last := plans.last()) and not last.done)
    said = svcq.ok("when-done").out
    assert said.startswith("Nothing is planned for when all is done. The last time, ")
    assert said.endswith(": svcq could not put the machine to sleep (No).\n")


def test_secrets_are_not_shown(svcq: Svcq, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    svcq.ok("when-done", "--", "true")
    assert "s3cret" not in svcq.ok("when-done").out + svcq.ok("when-done", "--json").out
    assert os.stat(home / "when-done.json").st_mode & 0o777 == 0o600
