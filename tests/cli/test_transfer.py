"""`svcq backup`, `export`, `import`, `upgrade-store`, `completion` and `man`."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from svcq.cli import all_commands
from svcq.cli.completion import commands
from tests.cli.conftest import Svcq


def test_backup(svcq: Svcq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    svcq.add("--name", "kept")
    copy = tmp_path / "copy.db"
    assert svcq.ok("backup", copy).out == f"The store was copied to {copy}.\n"
    assert "exists already" in svcq.refuses("backup", copy)
    assert "does not exist" in svcq.refuses("backup", tmp_path / "no" / "copy.db")
    monkeypatch.setenv("SVCQ_STORE", str(copy))
    assert svcq.job("kept")["state"] == "pending"


def test_export_and_import(svcq: Svcq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    svcq.add("--name", "one")
    svcq.add()
    text = svcq.ok("export").out
    assert [next(iter(json.loads(line))) for line in text.splitlines()] == [
        "svcq", "queue", "job", "job",
    ]  # fmt: skip
    file = tmp_path / "jobs.jsonl"
    assert svcq.ok("export", file).out == f"Wrote 4 lines to {file}.\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "exists already" in svcq.refuses("export", file)
    assert "does not exist" in svcq.refuses("export", tmp_path / "no" / "x")
    monkeypatch.setenv("SVCQ_HOME", str(tmp_path / "other"))
    assert svcq.ok("import", file).out == "Added 2 jobs.\n"
    assert svcq.job("one")["id"] == 1
    svcq.refuses("import", file, code=1)
    assert svcq.ok("import", "-", stdin=text.replace('"one"', '"two"')).out == "Added 2 jobs.\n"


def test_environments_only_when_asked_for(svcq: Svcq) -> None:
    svcq.add("--no-env", "--env", "A=visible")
    assert "visible" not in svcq.ok("export").out
    assert "visible" in svcq.ok("export", "--with-environments").out


@pytest.mark.parametrize("text", ["", "poetry\n", "{}\n", '{"svcq": 99}\n', "\udcff\n"])
def test_what_is_no_export(svcq: Svcq, text: str) -> None:
    svcq.refuses("import", "-", stdin=text)


def test_upgrade_store(svcq: Svcq) -> None:
    svcq.add()
    assert "nothing to do" in svcq.ok("upgrade-store").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_option(svcq: Svcq, shell: str) -> None:
    script = svcq.ok("completion", shell).out
    for command in commands():
        assert command.words[-1] in script
        for option in command.options:
            long = option.names[-1]
            assert (long[2:] if shell == "fish" else long) in script


def complete(script: Path, line: str) -> list[str]:
    """What bash would offer for the last word of the line."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _svcq; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_completion_in_bash(svcq: Svcq, tmp_path: Path) -> None:
    script = tmp_path / "svcq.bash"
    script.write_text(svcq.ok("completion", "bash").out)
    assert complete(script, "svcq ca") == ["cancel"]
    assert set(complete(script, "svcq ")) >= set(all_commands())
    assert complete(script, "svcq add --prio") == ["--priority"]
    assert complete(script, "svcq queue s") == ["show", "set"]
    assert complete(script, "svcq list --state pe") == ["pending"]
    assert complete(script, "svcq add --on-lost ") == ["retry", "dead"]
    assert complete(script, "svcq completion z") == ["zsh"]
    assert complete(script, "svcq config list --js") == ["--json"]
    assert complete(script, "svcq schedule h") == ["history", "handoff"]
    assert complete(script, "svcq schedule fire --") == ["--due", "--wait"]
    assert complete(script, "svcq schedule add x --overlap r") == ["replace"]


def test_completion_of_schedules_in_bash(
    svcq: Svcq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "svcq.bash"
    script.write_text(svcq.ok("completion", "bash").out)
    for name in ("nightly", "noon"):
        svcq.ok("schedule", "add", name, "--cron", "@daily", "--tz", "UTC", "--", "true")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert complete(script, "svcq schedule show no") == ["noon"]
    assert complete(script, "svcq --sy") == ["--system"]
    assert complete(script, "svcq --system queue s") == ["show", "set"]


def test_the_manual_page(svcq: Svcq) -> None:
    page = svcq.ok("man").out
    assert page.startswith(".TH SVCQ 1")
    for name in all_commands():
        assert f'.SS "svcq {name}"'.replace("-", "\\-") in page
    assert "\\fB\\-\\-max\\-attempts N\\fR" in page
    assert not [line for line in page.splitlines() if line.startswith((". ", "..", "'"))]
