"""The command line in a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.store import WorkerInfo
from tests.cli.terminals import Environment, Terminal, lines_of, run


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_tables_fit_the_terminal(
    some_jobs: Client, shell_environment: Environment, columns: int
) -> None:
    for words in (["list"], ["queue", "list"], ["stats"], ["activity"], ["config", "list"]):
        code, text = Terminal(shell_environment, *words, columns=columns).end()
        assert code == 0
        lines = lines_of(text)
        assert len(lines) > 1
        if words != ["config", "list"] or columns > 20:  # its names alone are wider than that
            assert max(map(len, lines)) <= columns, lines


def test_a_narrow_list_keeps_what_matters(
    some_jobs: Client, shell_environment: Environment
) -> None:
    _, text = Terminal(shell_environment, "list", columns=20).end()
    head, *rows = lines_of(text)
    assert head.split() == ["ID", "STATE", "WHAT"]
    assert [row.split()[0] for row in rows[:3]] == ["3", "2", "1"]
    assert " ".join(rows[3:]) == "No room for: queue, tries, when, name, note."


@pytest.mark.parametrize("columns", [20, 40, 80])
@pytest.mark.parametrize(
    "words",
    [
        "list", "queue list", "stats", "activity", "config list", "worker list", "project list",
        "dlq list",
    ],
)  # fmt: skip
def test_nothing_vanishes_silently(
    some_jobs: Client, shell_environment: Environment, home: Path, words: str, columns: int
) -> None:
    """What a wide table has, a narrow one shows, or says that it has no room for it."""
    some_jobs.store.register(WorkerInfo("a-machine", 4711, slots=2, version="1.0"))
    (claim,) = some_jobs.fetch(queue="video")
    some_jobs.reject(claim, "no such film")
    (home / "config.toml").touch(mode=0o600)
    (home / "config.toml").write_text('[project.shop]\npython = "/usr/bin/python3"\n')
    wide = lines_of(Terminal(shell_environment, *words.split(), columns=400).end()[1])
    titles = [title.lower() for title in re.split(r"  +", wide[0].strip())]
    assert len(titles) > 3
    _, text = Terminal(shell_environment, *words.split(), columns=columns).end()
    table, _, missing = " ".join(lines_of(text)).lower().partition("no room for: ")
    named = [title.strip() for title in missing.rstrip(".").split(",")]
    for title in titles:
        assert (title in table) != (title in named), text
    rows = len(wide) - 1
    assert len(lines_of(text)) > rows


def test_states_are_coloured_in_a_terminal_alone(
    some_jobs: Client, shell_environment: Environment
) -> None:
    assert "\x1b[2mcancelled\x1b[0m" in Terminal(shell_environment, "list").end()[1]
    plain = {**shell_environment, "NO_COLOR": "1"}
    assert "\x1b" not in Terminal(plain, "list").end()[1]
    assert "\x1b" not in Terminal({**shell_environment, "TERM": "dumb"}, "list").end()[1]
    assert "\x1b" not in run(shell_environment, "list").stdout


def test_help_fits_a_narrow_terminal(shell_environment: Environment) -> None:
    code, text = Terminal(shell_environment, "add", "--help", columns=20).end()
    assert code == 0
    assert "--priority" in text


def test_add_says_what_became_of_it(shell_environment: Environment) -> None:
    assert Terminal(shell_environment, "add", "--", "true").end() == (0, "Job 1 is pending.\n")
    held = Terminal(shell_environment, "add", "--unique", "k", "--hold", "--", "true").end()
    assert held == (0, "Job 2 is held.\n")
    again = Terminal(shell_environment, "add", "--unique", "k", "--", "true").end()
    assert again == (0, "Job 2 has that unique key already; it is held.\n")


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("yes", 0), ("n", 1), ("", 1)])
def test_a_question_is_asked(
    client: Client, shell_environment: Environment, answer: str, left: int
) -> None:
    client.command("true", queue="mail")
    terminal = Terminal(shell_environment, "cancel", "--queue", "mail")
    terminal.see(r"This would cancel 1 job\. \[y/N\]")
    terminal.type(f"{answer}\n")
    code, _ = terminal.end()
    assert code == left
    assert client.counts()["pending"] == left


def test_a_command_in_a_terminal_gets_one_of_the_size_of_ours(
    client: Client, shell_environment: Environment
) -> None:
    words = ("add", "--tty", "--", "true"), ("add", "--tty", "--env", "COLUMNS=60", "--", "true")
    for given in (*words, ("add", "--", "true")):
        code, text = Terminal(shell_environment, *given, columns=100).end()
        assert code == 0, text
    sizes = [client.environment(job) or {} for job in (1, 2, 3)]
    assert [size.get("COLUMNS") for size in sizes] == ["100", "60", None]
    assert [size.get("LINES") for size in sizes] == ["24", "24", None]
    assert run(shell_environment, "add", "--tty", "--", "true").returncode == 0  # without one
    assert "COLUMNS" not in (client.environment(4) or {})


def test_wait_shows_progress(client: Client, shell_environment: Environment) -> None:
    client.command("true", name="render")
    (claim,) = client.fetch()
    terminal = Terminal(shell_environment, "wait", "render")
    terminal.see("render processing")
    client.progress(claim, 0.5, "half \x1b[31mway")
    assert "\x1b[31m" not in terminal.see(r"\[#{10} {10}\] 50%  half")
    client.complete(claim)
    code, text = terminal.end()
    assert code == 0
    assert text.endswith("Job 1 is completed.\n")
