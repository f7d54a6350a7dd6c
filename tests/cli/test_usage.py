"""Usage, right and wrong, of every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from svcq.cli import COMMANDS, all_commands, parser_of
from svcq.cli.options import FLAGS
from svcq.client import Client
from svcq.policy import OPTION_NAMES
from svcq.store import Claimer, WorkerInfo
from tests.cli.conftest import Svcq


def test_help_lists_every_command_without_building_any(svcq: Svcq) -> None:
    for words in ([], ["--help"], ["-h"], ["help"]):
        said = svcq.ok(*words)
        for group in COMMANDS.values():
            for name, (_, about) in group.items():
                assert f"  {name}" in said.out
                assert about in said.out


@pytest.mark.parametrize("name", all_commands())
def test_every_command_has_help(svcq: Svcq, name: str) -> None:
    said = svcq.ok(name, "--help")
    assert said.out.startswith(f"usage: svcq {name}")
    assert svcq.ok("help", name).out == said.out
    for word in parser_of(name).subcommands:
        assert svcq.ok(name, word, "--help").out.startswith(f"usage: svcq {name} {word}")


def test_every_argument_says_what_it_is() -> None:
    for name in all_commands():
        parser = parser_of(name)
        for one in [parser, *(sub for sub, _ in parser.subcommands.values())]:
            assert all(action.help for action in one.arguments()), one.prog


def test_every_option_of_a_job_has_a_flag() -> None:
    by_hand = {"cwd", "env"}  # add has them; a change of env by edit would hide what was captured
    assert {flag.option for flag in FLAGS} | by_hand == set(OPTION_NAMES)


def test_version(svcq: Svcq) -> None:
    assert svcq.ok("--version").out.startswith("svcq ")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["lst"], "did you mean list?"),
        (["xyzzy"], "svcq --help"),
        (["--jsn"], "before a command"),
        (["list", "--jsn"], "did you mean --json?"),
        (["list", "extra"], "one too many"),
        (["queue"], "list, show, set, delete"),
        (["queue", "lst"], "did you mean list?"),
        (["queue", "list", "--xyzzy"], "see svcq queue list --help"),
        (["show"], "JOB is missing"),
        (["list", "--queue"], "--queue needs a value: see"),
        (["list", "--queue", "--json"], "--queue needs a value: see"),
        (
            ["add", "--in", "-5m", "--", "true"],
            "-5m looks like an option; to mean it, write --in=-5m",
        ),
        (["add", "--in=-5m", "--", "true"], "The delay '-5m'"),
        (["list", "--queue", "a", "--queue", "b"], "given twice"),
        (["list", "--state", "lost"], "There is no state 'lost'"),
        (["list", "--limit", "0"], "at least 1"),
        (["list", "--limit", "x"], "whole number"),
        (["list", "--limit", "1", "--all"], "give one"),
        (["list", "--columns", "id,colour"], "no column 'colour'"),
        (["list", "--since", "once"], "'once' is not understood"),
        (["status", "x"], "one too many"),
        (["stats", "--last", "1s"], "at least 1m"),
        (["activity", "--last", "soon"], "not a duration"),
        (["cancel"], "nothing to cancel"),
        (["cancel", "1", "--queue", "a"], "give one of them"),
        (["retry"], "nothing to retry"),
        (["hold"], "nothing to hold"),
        (["release"], "nothing to release"),
        (["move"], "JOB is missing"),
        (["edit"], "JOB is missing"),
        (["pause"], "--all"),
        (["pause", "a", "--all"], "--all"),
        (["resume"], "--all"),
        (["purge"], "--state"),
        (["purge", "--state", "gone"], "There is no state 'gone'"),
        (["cleanup", "x"], "one too many"),
        (["dlq"], "list, show, retry, purge"),
        (["config"], "get, set, unset, list, path"),
        (["config", "get", "colour"], "There is no setting 'colour': use one of store, queue"),
        (["config", "get", "retention"], "use one of retention.completed"),
        (["config", "set", "colour", "red"], "There is no setting 'colour'"),
        (["config", "set", "jobs.max_attempts", "many"], "whole number"),
        (["config", "unset", "colour"], "There is no setting 'colour'"),
        (["backup"], "FILE is missing"),
        (["import"], "FILE is missing"),
        (["import", "no-such-file"], "cannot be read"),
        (["completion"], "SHELL is missing"),
        (["completion", "tcsh"], "There is no shell 'tcsh'"),
        (["upgrade-store", "x"], "one too many"),
    ],
)
def test_wrong_usage_is_one_sentence(svcq: Svcq, words: list[str], hint: str) -> None:
    assert hint in svcq.refuses(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["show", "7"],
        ["show", "nobody"],
        ["move", "7"],
        ["edit", "7", "--priority", "1"],
        ["dlq", "show", "7"],
        ["add", "--after", "7", "--", "true"],
        ["add", "--after", "nobody", "--", "true"],
        ["queue", "show", "nowhere"],
        ["queue", "delete", "nowhere"],
        ["pause", "nowhere"],
        ["resume", "nowhere"],
        ["stats", "--queue", "nowhere"],
        ["activity", "--queue", "nowhere"],
        ["status", "--queue", "nowhere"],
        ["purge", "--state", "dead", "--queue", "nowhere"],
    ],
)
def test_what_does_not_exist_is_three(svcq: Svcq, words: list[str]) -> None:
    assert "There is no " in svcq.refuses(*words, code=3)


def test_a_store_that_is_none_is_four(svcq: Svcq, home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(mode=0o700)
    (home / "svcq.db").write_text("poetry")
    (home / "svcq.db").chmod(0o600)
    assert "is not a svcq store" in svcq.refuses("list", code=4)


def test_a_store_of_others_is_five(svcq: Svcq, home) -> None:
    svcq.add()
    (home / "svcq.db").chmod(0o666)
    svcq.refuses("list", code=5)


# What programs read


def test_what_was_done_is_told_to_programs_too(svcq: Svcq, client: Client, tmp_path: Path) -> None:
    client.queue("video", weight=2)
    assert svcq.ok("pause", "video", "--json").json == {"queues": ["video"], "paused": True}
    assert svcq.ok("resume", "--all", "--json").json == {"queues": ["video"], "paused": False}
    running = client.command("sleep 1")
    worker = client.store.register(WorkerInfo("box", 1, "boot", "born", 1, "1"))
    client.store.claim(Claimer(worker, "box"), 1)
    for word, paused in (("pause", True), ("resume", False)):
        said = svcq.ok(word, "--job", running.id, "--json").json
        assert said == {"job": running.id, "paused": paused}
    assert svcq.ok("worker", "stop", "--now", "--json").json == {"workers": [worker], "now": True}
    gone = client.cancel(client.command("true"))
    said = svcq.ok("purge", "--state", gone.state, "--yes", "--json").json
    assert said == {"removed": 1}
    assert svcq.ok("dlq", "purge", "--json").json == {"removed": 0}
    assert svcq.ok("cleanup", "--json").json == {"removed": 0, "files": 0}
    copy, lines = tmp_path / "copy.db", tmp_path / "lines"
    assert svcq.ok("backup", copy, "--json").json == {"file": str(copy)}
    lines.write_text("".join(f"{line}\n" for line in client.export()))
    assert svcq.ok("import", lines, "--json").json == {"added": 1}
