"""The documents say what the program does: their examples run, and nothing is left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.cli import COMMANDS
from svcq.cli.reference import reference
from svcq.policy import OPTION_NAMES
from tests.helpers import eventually

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    scripts = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "SVCQ_HOME": str(tmp_path / "home"),
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def up(environment: dict[str, str], tmp_path: Path) -> Iterator[None]:
    """`svcq up`, as the README has it running in the other terminal."""
    log = tmp_path / "up.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "svcq", "up"], env=environment, stdout=output, stderr=output
        )
    try:
        eventually(lambda: "Ctrl-C" in log.read_text())
        yield
    finally:
        process.terminate()
        process.wait(30)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(README) if found == language]


def test_the_readme_has_examples() -> None:
    assert len(blocks("console")) >= 4
    assert blocks("python")


@pytest.mark.usefixtures("up")
def test_the_console_examples_run_as_shown(environment: dict[str, str], tmp_path: Path) -> None:
    """One shell types them all; what stands below a command is what it prints (... is anything)."""
    steps = [step for text in blocks("console") for step in _steps(text)]
    for command, _ in steps:
        assert command
    script = "".join(f"{command}\necho ==STEP $?==\n" for command, _ in steps)
    done = subprocess.run(
        ["bash"], input=script, env=environment, cwd=tmp_path, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    answers = re.split(r"==STEP \d+==\n", done.stdout)
    assert not done.stderr
    for (command, shown), answer in zip(steps, answers, strict=False):
        if shown != "...\n":
            assert (command, answer) == (command, shown)
    assert len(answers) == len(steps) + 1


def _steps(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def test_the_python_examples_run(environment: dict[str, str], tmp_path: Path) -> None:
    for text in blocks("python"):
        done = subprocess.run(
            [sys.executable, "-c", text], env=environment, cwd=tmp_path, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_the_reference_is_what_the_program_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    written = (ROOT / "docs" / "reference.md").read_text("utf-8")
    assert written == reference(), "run ./dev docs"


def test_every_command_is_in_the_reference() -> None:
    for group in COMMANDS.values():
        for command in group:
            assert f"### svcq {command}\n" in reference()


def test_every_option_of_a_job_can_be_given_on_the_command_line() -> None:
    flags = {
        "tags": "tag", "delay": "in", "run_at": "at", "unique_key": "unique",
        "concurrency_key": "key", "concurrency": "key-limit",
    }  # fmt: skip
    section = reference().partition("### svcq add\n")[2].partition("\n### ")[0]
    for name in OPTION_NAMES:
        assert f"--{flags.get(name, name.replace('_', '-'))}" in section


def test_links_between_the_documents_lead_somewhere() -> None:
    for document in ROOT.glob("*.md"):
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text("utf-8")):
            assert (ROOT / target).exists(), (document.name, target)
