"""Jobs that the kernel kills for want of memory are told of as such."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, Home
from tests.linux.namespaces import cgroup2

LIMIT = 150 << 20
HOG = "x = bytearray(b'x') * (400 << 20); print('still here')"
KILLED = "the system was out of memory and killed it"


@pytest.fixture
def little_memory() -> Iterator[Path]:
    """A cgroup for whoever goes into it: of the second version where that limits memory here."""
    name = f"svcq-memory-{os.getpid()}"
    folder = cgroup2() / name
    folder.mkdir()
    if (folder / "memory.max").exists():
        (folder / "memory.max").write_text(str(LIMIT))
        if (folder / "memory.swap.max").exists():
            (folder / "memory.swap.max").write_text("0")
    else:
        folder.rmdir()
        folder = cgroup2().parent / "memory" / name
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(LIMIT))
    yield folder
    eventually(lambda: not (folder / "cgroup.procs").read_text(), PATIENCE)
    folder.rmdir()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.close()


@pytest.mark.parametrize(
    ("run", "code", "said"),
    [
        ("exec {}", -9, "ended by signal 9"),
        ("{}; exit $?", 137, "ended with exit code 137"),
    ],
)
def test_a_command(home: Home, little_memory: Path, run: str, code: int, said: str) -> None:
    home.worker()
    assert home.run("exit 0").state == "completed"  # by then it has looked at what was before
    hog = run.format(f'{sys.executable} -S -c "{HOG}"')
    ended = home.run(f"echo 0 > {little_memory}/cgroup.procs; {hog}")
    assert (ended.state, ended.exit_code, ended.error) == ("dead", code, f"{said}; {KILLED}")
    assert KILLED in home.svcq("why", ended.id).stdout


def test_a_task(home: Home, little_memory: Path) -> None:
    home.worker_with_tasks()
    assert home.call(sample.add, 1, 2).result == 3
    ended = home.call(sample.use_memory_in, str(little_memory), 400)
    assert (ended.state, ended.error) == ("dead", f"its process ended with signal 9; {KILLED}")
    assert KILLED in home.svcq("why", ended.id).stdout
    assert home.call(sample.add, 1, 2).result == 3
