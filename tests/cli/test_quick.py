"""`svcq add` and `svcq --help` are done soon: they import little, and leave at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from svcq.cli.command import words_alone
from svcq.client import Client
from tests.cli.conftest import Svcq
from tests.clients import ROOT

HEAVY = {
    "apscheduler", "argparse", "asyncio", "dataclasses", "difflib", "hashlib", "inspect", "locale",
    "json", "logging", "pathlib", "platformdirs", "random", "rich", "shutil", "signal", "socket",
    "subprocess", "svcq.client", "svcq.store.transfer", "svcq.worker", "tempfile", "tomlkit",
    "typing", "urllib", "weakref",
}  # fmt: skip


@pytest.mark.parametrize("words", [["add", "--", "true"], ["add", "echo hi | wc"], ["--help"]])
def test_nothing_heavy_is_imported(words: list[str], tmp_path: Path) -> None:
    Client(home=tmp_path / ".local/share/svcq").close()  # to make a store takes more
    tell = (
        "import sys\n"
        "from svcq.cli import run\n"
        "code = run(sys.argv[1:])\n"
        "print(*sys.modules, file=sys.stderr)\n"
        "sys.exit(code)"
    )
    ended = subprocess.run(
        # Isolated: what a site's own start-up files import is not ours.
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{tell}",
         *words],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    assert not HEAVY & set(ended.stderr.split())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--", "true"], ["true"]),
        (["--", "--", "x"], ["--", "x"]),
        (["echo", "--json", "--", "x"], ["echo", "--json", "--", "x"]),
        (["--json", "--", "true"], []),
        (["--queue=a", "true"], []),
        (["-h"], []),
        (["--"], []),
        ([], []),
    ],
)
def test_words_alone_need_no_parser(given: list[str], words: list[str]) -> None:
    assert words_alone(given) == words


@pytest.mark.parametrize("words", [["echo", "--json", "a b"], ["echo hi | wc"], ["a", "--", "b"]])
def test_with_or_without_a_parser_a_command_is_the_same(svcq: Svcq, words: list[str]) -> None:
    plain = svcq.ok("show", svcq.ok("add", *words).out.strip(), "--json").json
    parsed = svcq.ok(
        "show", svcq.ok("add", "--queue", "default", *words).out.strip(), "--json"
    ).json
    for job in (plain, parsed):
        del job["id"], job["created_at"]
    assert plain == parsed


def test_a_program_writes_all_before_it_leaves(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "svcq", "add", "--", "true"],
        cwd=ROOT,
        env={**os.environ, "SVCQ_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n", "")
