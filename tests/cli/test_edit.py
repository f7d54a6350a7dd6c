"""`svcq edit` with an editor."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from svcq.client import Client
from tests.cli.terminals import Environment, Terminal, run


def test_an_editor_changes_a_job(
    client: Client, shell_environment: Environment, tmp_path: Path
) -> None:
    client.command("echo a", name="letter", priority=1)
    editor = write_editor(tmp_path, "s/^priority = .*/priority = 9/; s/echo a/echo b | wc/")
    env = {**shell_environment, "VISUAL": "", "EDITOR": editor}
    assert Terminal(env, "edit", "letter").end() == (0, "Job 1 is pending.\n")
    job = client.get("letter")
    assert (job.priority, job.command) == (9, "echo b | wc")


def test_an_editor_that_changes_nothing(client: Client, shell_environment: Environment) -> None:
    client.command("echo a")
    code, text = Terminal({**shell_environment, "VISUAL": "true"}, "edit", "1").end()
    assert (code, text) == (1, "Nothing was changed.\n")


def test_an_emptied_file_changes_nothing(
    client: Client, shell_environment: Environment, tmp_path: Path
) -> None:
    client.command("echo a")
    env = {**shell_environment, "VISUAL": write_editor(tmp_path, "d")}
    assert Terminal(env, "edit", "1").end() == (1, "Nothing was changed.\n")


def test_a_mistake_in_the_editor_is_offered_again(
    client: Client, shell_environment: Environment, tmp_path: Path
) -> None:
    client.command("echo a")
    for change, hint in (
        ("s/^priority = .*/priority = 9999/", "1,000"),
        ("s/^priority = .*/prioritty = 1/", "did you mean priority"),
        ("s/^priority = .*/priority =/", "not TOML"),
    ):
        env = {**shell_environment, "VISUAL": write_editor(tmp_path, change)}
        terminal = Terminal(env, "edit", "1")
        terminal.see(r"Edit it again\? \[Y/n\]")
        terminal.type("n\n")
        code, text = terminal.end()
        assert code == 1
        assert hint in text
    assert client.get(1).priority == 0


@pytest.mark.parametrize(("editor", "code"), [("false", 1), ("/no/such/editor", 2)])
def test_an_editor_that_fails(
    client: Client, shell_environment: Environment, editor: str, code: int
) -> None:
    client.command("echo a")
    ended, text = Terminal({**shell_environment, "VISUAL": editor}, "edit", "1").end()
    assert ended == code
    assert text.startswith("svcq: The editor")


def test_an_editor_that_needs_no_terminal(
    client: Client, shell_environment: Environment, tmp_path: Path
) -> None:
    client.command("echo a")
    env = {**shell_environment, "EDITOR": write_editor(tmp_path, "s/^priority = .*/priority = 9/")}
    done = run(env, "edit", "1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Job 1 is pending.\n", "")
    assert client.get(1).priority == 9
    env["EDITOR"] = write_editor(tmp_path, "s/^priority = .*/priority = 9999/")
    done = run(env, "edit", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "1,000" in done.stderr
    assert done.stderr.count("\n") == 1
    assert client.get(1).priority == 9


def test_no_editor_and_no_terminal(client: Client, shell_environment: Environment) -> None:
    client.command("echo a")
    done = run({**shell_environment, "EDITOR": "", "VISUAL": ""}, "edit", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "set EDITOR" in done.stderr


def write_editor(folder: Path, script: str) -> str:
    """A program that edits a file as a person would, by a sed script."""
    editor = folder / f"editor-{time.monotonic_ns()}"
    editor.write_text(f"#!/bin/sh\nexec sed -i '{script}' \"$1\"\n")
    editor.chmod(0o700)
    return str(editor)
