"""`svcq project`: what is added can be imported, or is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from svcq.config import Project
from svcq.errors import InvalidInput
from svcq.worker.probe import tasks_of
from tests.cli.conftest import Svcq
from tests.helpers import eventually


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def test_the_tasks_of_a_project_are_told(svcq: Svcq, folder: Path) -> None:
    (folder / "mail.py").write_text(
        "import svcq\nprint('hello')\n@svcq.task\ndef send(): ...\n@svcq.task\ndef get(): ...\n"
    )
    said = svcq.ok("project", "add", folder, "--import", "mail", "--python", sys.executable)
    assert said.out.splitlines()[0] == "Tasks declared there: mail.get, mail.send."
    (project,) = svcq.ok("project", "list", "--json").json
    assert project == {
        "name": "shop", "python": sys.executable, "path": [str(folder)], "import": ["mail"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import no_such", "(ModuleNotFoundError: No module named 'no_such')"),
        ("def broken(:", "(SyntaxError: "),
        ("raise RuntimeError('one\\ntwo')", "(RuntimeError: one)"),
        ("import sys; sys.exit('not today')", "(SystemExit: not today)"),
        ("import os; os._exit(5)", "with exit code 5)"),
        ("import os; os.kill(os.getpid(), 11)", "by signal 11)"),
    ],
    ids=["missing", "syntax", "two lines", "exit", "os exit", "segfault"],
)
def test_a_module_that_does_not_import_is_refused(
    svcq: Svcq, folder: Path, source: str, why: str
) -> None:
    (folder / "mail.py").write_text(source)
    add = ("project", "add", folder, "--import", "mail", "--python", sys.executable)
    said = svcq.refuses(*add)
    assert f"{sys.executable} cannot import mail (" in said
    assert why in said
    assert "--no-check" in said
    assert svcq.ok("project", "list", "--json").json == []
    svcq.ok(*add, "--no-check")
    assert len(svcq.ok("project", "list", "--json").json) == 1


def test_a_module_that_takes_too_long_is_ended_with_all_it_started(folder: Path) -> None:
    pids = folder / "pids"
    (folder / "mail.py").write_text(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)\n"
    )
    project = Project("shop", sys.executable, (str(folder),), ("mail",))
    with pytest.raises(InvalidInput, match="took longer than 3 s"):
        tasks_of(project, 3.0)
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in started))
