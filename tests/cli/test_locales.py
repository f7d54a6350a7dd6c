"""Locales that are not UTF-8, and words that are no text."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from svcq.client import Client
from tests.cli.terminals import SVCQ, Environment, Terminal, run


@pytest.mark.parametrize(
    "locale",
    [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX"}],
)
def test_a_locale_that_is_not_utf_8(
    some_jobs: Client, shell_environment: Environment, locale: Environment
) -> None:
    env = {**shell_environment, **locale}
    for words in (["list"], ["show", "3"], ["list", "--json"], ["add", "--help"], ["list", "--x"]):
        done = run(env, *words)
        assert done.returncode in {0, 2}
        assert "Traceback" not in done.stderr
    code, text = Terminal(env, "list", columns=20).end()
    assert code == 0
    assert "Traceback" not in text


# No locale at all: Python reads what it is given as ASCII, and the rest as bytes.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LATIN = os.fsdecode(b"caf\xe9")


def test_words_are_utf_8_in_a_locale_that_knows_less(
    client: Client, shell_environment: Environment, tmp_path: Path
) -> None:
    folder = tmp_path / "größe"
    folder.mkdir()
    env = {**shell_environment, **ASCII, "COLOUR": "grün"}
    add = [*SVCQ, "add", "--name", "naïve", "--", "echo", "日本"]
    subprocess.run(add, env=env, cwd=folder, check=True, capture_output=True)
    job = client.get("naïve")
    assert (job.command, job.cwd) == (["echo", "日本"], str(folder))
    assert (client.environment(job) or {})["COLOUR"] == "grün"
    assert "na\\xefve" in run(env, "show", "naïve").stdout


def test_columns_are_straight_in_a_locale_that_knows_less(
    some_jobs: Client, shell_environment: Environment
) -> None:
    table = run({**shell_environment, **ASCII}, "list", "--columns", "name,state").stdout
    heads, *rows = table.splitlines()
    assert rows[0].startswith("gr\\xf6\\xdfe ")
    assert {row[heads.index("STATE") - 1] for row in rows} == {" "}
    assert {row[heads.index("STATE") :] for row in rows} == {"pending", "cancelled"}


@pytest.mark.parametrize(
    "words",
    [
        ["add", "--", "wc", LATIN],
        ["add", f"wc {LATIN}"],
        ["add", "--name", LATIN, "--", "true"],
        ["add", "--env", f"A={LATIN}", "--", "true"],
        ["add", "--cwd", LATIN, "--", "true"],
        ["edit", "1", "--", LATIN],
        ["enqueue", json.dumps({"command": LATIN})],
        ["show", LATIN],
        ["queue", "set", LATIN, "paused=yes"],
        ["backup", LATIN],
    ],
)
def test_words_that_are_no_text(
    client: Client, shell_environment: Environment, tmp_path: Path, words: list[str]
) -> None:
    client.command("true", hold=True)
    Path(tmp_path / LATIN).mkdir()
    done = subprocess.run(
        [*SVCQ, *words], env=shell_environment, cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == (3 if words[0] == "show" else 2), done
    assert done.stderr.count("\n") == 1
    assert "UTF-8" in done.stderr
    assert "\\udc" not in done.stderr


def test_an_answer_that_is_no_text(client: Client, shell_environment: Environment) -> None:
    client.command("true", queue="mail")
    terminal = Terminal(shell_environment, "cancel", "--queue", "mail")
    terminal.see(r"\[y/N\]")
    terminal.type("\udce9\n")
    code, text = terminal.end()
    assert code == 1
    assert "Traceback" not in text
    assert client.counts()["pending"] == 1
