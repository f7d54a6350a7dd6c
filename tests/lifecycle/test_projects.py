"""Projects: their interpreters, their modules, and what happens when either is not as it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, Home, lives

PLAIN = """
import sys

def describe(word):
    print("saying", word)
    return [word, list(sys.version_info[:2]), "svcq" in sys.modules]

async def later(word):
    return word
"""


def add_project(
    home: Home, name: str, source: str, python: str = sys.executable, *options: str
) -> Path:
    """A folder with a module of the project's name, made known as a user would."""
    folder = home.work / name
    folder.mkdir()
    (folder / f"{name}.py").write_text(source)
    said = home.svcq("project", "add", folder, "--import", name, "--python", python, *options)
    assert said.returncode == 0, said.stderr
    return folder


def other_pythons() -> list[str]:
    """Pythons of this machine beside the one of the tests, Debian's own first; at least one."""
    folders = [Path("/usr/bin"), Path("/usr/local/bin"), *_pyenv_folders()]
    names = [f"python3.{minor}" for minor in range(9, 15)]
    found = [str(folder / name) for folder in folders for name in names]
    return [python for python in found if Path(python).exists()] or [_base_python()]


def _pyenv_folders() -> list[Path]:
    return sorted(Path("~/.pyenv/versions").expanduser().glob("*/bin"))


def _base_python() -> str:
    """The one that the virtual environment was made with: it has no svcq."""
    return str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}")


@pytest.mark.parametrize("python", other_pythons())
def test_plain_functions_under_a_python_without_svcq(home: Home, python: str) -> None:
    add_project(home, "shop", PLAIN, python)
    home.worker()
    ended = home.call_by_name("shop.describe", "hello")
    version = subprocess.run(
        [python, "-c", "import sys; print(list(sys.version_info[:2]))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str(ended.result) == str(["hello", eval(version.stdout), False])
    assert home.output(ended.id) == "saying hello\n"
    assert home.call_by_name("shop.later", "x").result == "x"


POOLS = """
import multiprocessing, subprocess
from concurrent.futures import ProcessPoolExecutor

executor = ProcessPoolExecutor(2)
pools = []

def use(file):
    pools or pools.append(multiprocessing.get_context("fork").Pool(1))
    list(executor.map(abs, range(9)))
    pools[0].map(abs, range(9))
    with open(file, "a") as opened:
        print(subprocess.Popen(["sleep", "600"]).pid, file=opened)
    return sorted(one.pid for one in multiprocessing.active_children())
"""


@pytest.mark.parametrize("python", other_pythons())
def test_pools_stay_and_processes_end_under_any_python(home: Home, python: str) -> None:
    add_project(home, "shop", POOLS, python)
    home.worker("--slots", 1)
    pids = home.work / "pids"
    first, second = (home.call_by_name("shop.use", str(pids)) for _ in range(2))
    assert (first.error, second.error) == (None, None)
    assert len(first.result) >= 2
    assert first.result == second.result
    assert all(lives(pid) for pid in first.result)
    assert [pid for pid in pids.read_text().split() if lives(int(pid))] == []


def test_each_task_runs_in_its_own_project(home: Home) -> None:
    for name in ("red", "green", "blue"):
        declared = "import svcq\n@svcq.task\n" if name == "green" else ""
        add_project(home, name, f"{declared}def name():\n    return {name!r}\n")
    home.worker("--slots", 3)
    for name in ("red", "green", "blue"):
        assert home.call_by_name(f"{name}.name").result == name


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def broken(:", "SyntaxError: "),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import sys; sys.exit('not today')", "SystemExit: not today"),
        ("import os; os._exit(5)", "exit code 5 before it had imported all"),
        ("import os; os.kill(os.getpid(), 11)", "signal 11 before it had imported all"),
    ],
    ids=["missing", "syntax", "interrupt", "exit", "os exit", "segfault"],
)
def test_a_module_that_does_not_import(home: Home, source: str, said: str) -> None:
    add_project(home, "sound", PLAIN)
    add_project(home, "broken", source, sys.executable, "--no-check")
    worker = home.worker()
    ended = home.call_by_name("broken.task", max_attempts=2)
    assert (ended.state, ended.failures) == ("dead", 2)  # it may be repaired: not rejected
    assert said in str(ended.error)
    assert "Traceback" not in str(ended.error)
    assert home.run("exit 0").state == "completed"
    sound = home.call_by_name("sound.later", 1)
    assert (sound.error, sound.result) == (None, 1)
    assert worker.process.poll() is None
    assert said in home.said()


def test_a_module_that_was_repaired_runs_without_a_new_worker(home: Home) -> None:
    broken = "raise RuntimeError('not yet')"
    folder = add_project(home, "shop", broken, sys.executable, "--no-check")
    home.worker()
    assert "RuntimeError: not yet" in str(home.call_by_name("shop.later", 1).error)
    (folder / "shop.py").write_text(PLAIN)
    ended = home.call_by_name("shop.later", 1, max_attempts=50, backoff_base=0.5)
    assert (ended.state, ended.result) == ("completed", 1)


def test_an_interpreter_that_is_gone(home: Home) -> None:
    link = home.work / "python"
    link.symlink_to(sys.executable)
    add_project(home, "shop", PLAIN, str(link))
    link.unlink()
    worker = home.worker()
    ended = home.call_by_name("shop.later", 1)
    assert ended.state == "dead"
    said = f"the interpreter {link} cannot be started (No such file or directory): correct it with"
    assert said in str(ended.error)
    assert home.run("exit 0").state == "completed"
    assert worker.process.poll() is None


def test_an_interpreter_that_is_none_or_too_old_is_refused_when_it_is_added(home: Home) -> None:
    old = home.work / "old"
    old.write_text("#!/bin/sh\necho 3 8\n")
    old.chmod(0o700)
    oldest = home.work / "oldest"  # what Python 2 would say, had it been asked to print(*...)
    oldest.write_text("#!/bin/sh\necho 2 7\n")
    oldest.chmod(0o700)
    for python, why in (
        (old, "Python 3.8, too old"), (oldest, "Python 2.7, too old"),
        ("/bin/true", "not a Python"), ("/nowhere", "not a Python"),
    ):  # fmt: skip
        said = home.svcq("project", "add", home.work, "--import", "x", "--python", python)
        assert (said.returncode, said.stdout) == (2, "")
        assert said.stderr.startswith("svcq: ")
        assert why in said.stderr
        assert said.stderr.count("\n") == 1


def test_an_interpreter_that_has_become_too_old(home: Home) -> None:
    link = home.work / "python"
    link.symlink_to(sys.executable)
    add_project(home, "shop", PLAIN, str(link))
    link.unlink()
    link.write_text(
        "#!/bin/sh\necho 'SyntaxError: future feature annotations is not defined' >&2\nexit 1\n"
    )
    link.chmod(0o700)
    home.worker()
    ended = home.call_by_name("shop.later", 1)
    assert "exit code 1 before it had imported all; see logs/runner-shop.log" in str(ended.error)
    assert "SyntaxError" in (home.path / "logs" / "runner-shop.log").read_text()


def test_a_worker_that_imports_can_be_stopped(home: Home) -> None:
    add_project(home, "slow", "import time; time.sleep(600)", sys.executable, "--no-check")
    worker = home.worker()
    worker.process.terminate()
    assert worker.ended() == 0
    eventually(lambda: not home.processes(), PATIENCE)


def test_a_worker_started_in_the_background_finds_modules_where_it_was_started(home: Home) -> None:
    (home.work / "near.py").write_text("import svcq\n@svcq.task\ndef name():\n    return 'near'\n")
    said = home.svcq("worker", "start", "--import", "near")
    assert said.returncode == 0, said.stderr
    assert home.call_by_name("near.name").result == "near"


def test_a_worker_without_projects_leaves_tasks_alone(home: Home) -> None:
    home.worker()
    job = home.client.enqueue(sample.add, 1, 2).id
    home.run("exit 0")
    assert home.client.get(job).state == "pending"
    home.worker_with_tasks()
    assert home.ended(job).result == 3
