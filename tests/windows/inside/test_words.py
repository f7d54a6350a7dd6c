"""Arguments as the one line that Windows hands to a program, and what programs make of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from svcq.host import windows_words as words

SHOW = "import json, sys; print(json.dumps(sys.argv[1:]))"
HOSTILE = ["", "a b", 'q"q', '"', "\\", "t\\", "%PATH%", "a&echo no", "a|b", "^", "!x!", "(", "*"]


def test_programs_get_their_arguments_as_they_are() -> None:
    program = words.program_of([sys.executable, "-c", SHOW, *HOSTILE], os.environ, None)
    ran = subprocess.run(
        program.line, executable=program.executable, capture_output=True, check=False
    )
    assert json.loads(ran.stdout) == HOSTILE


def test_a_shell_line_keeps_its_own_quotes() -> None:
    line = words.shell('echo "a" & echo b')
    found = words.program_of(line, os.environ, None)
    assert found.line.endswith('/d /s /c "echo "a" & echo b"')


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["plain"], '"plain"'),
        (["a b"], '"a b"'),
        (["%PATH%"], '"%%cd:~,%PATH%%cd:~,%"'),
        (['q"q'], '"q""q"'),
        (["end\\"], '"end\\\\"'),
        (["a&b", "c^d", "e|f"], '"a&b" "c^d" "e|f"'),
        ([""], '""'),
    ],
)
def test_a_batch_file_gets_words_that_mean_nothing_to_its_shell(
    given: list[str], wanted: str
) -> None:
    line = words.batch_line("cmd.exe", "C:\\x\\run.bat", given)
    assert line == f'cmd.exe /e:on /v:off /d /s /c ""C:\\x\\run.bat" {wanted}"'


@pytest.mark.parametrize("word", ["a\nb", "a\rb", "a\0b"])
def test_what_a_batch_file_cannot_be_given_is_refused(word: str) -> None:
    with pytest.raises(OSError, match="end of a line"):
        words.batch_line("cmd.exe", "run.bat", [word])


def test_a_batch_file_runs(tmp_path: Path) -> None:
    batch = tmp_path / "with space.bat"
    batch.write_text("@echo off\r\necho first=%~1\r\n")
    program = words.program_of([str(batch), "one two"], os.environ, None)
    ran = subprocess.run(
        program.line, executable=program.executable, capture_output=True, check=False
    )
    assert ran.stdout.strip() == b"first=one two"


def test_a_program_is_found_by_the_path_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "tool.exe").touch()
    env = {"PATH": f'C:\\none;"{tmp_path}"', "PATHEXT": ".COM;.EXE"}
    assert words.find("tool", env, None) == str(tmp_path / "tool.exe")
    assert words.find("TOOL.EXE", env, None).lower() == str(tmp_path / "tool.exe").lower()
    assert words.find(".\\tool", {}, str(tmp_path)) == str(tmp_path / "tool.exe")
    with pytest.raises(FileNotFoundError):
        words.find("tool", {"PATH": "C:\\none"}, str(tmp_path))
