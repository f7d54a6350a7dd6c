"""Trees of real processes, ended for certain."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.worker.trees import Tree
from tests.helpers import eventually

MARKER = f"trees.{os.getpid()}"


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A shell with two children, one of which has left its session."""
    ready = tmp_path / "ready"
    line = f"trap '' TERM; sleep 600 & setsid sleep 600 & touch {ready}; wait"
    process = subprocess.Popen(
        ["sh", "-c", line], env={**os.environ, "SVCQ_RUN": MARKER}, start_new_session=True
    )
    eventually(ready.exists)
    yield process
    Tree(MARKER, process.pid, None).kill()
    process.wait()


def test_killing_leaves_nothing(leader: subprocess.Popen[bytes]) -> None:
    tree = Tree(MARKER, leader.pid, None)
    eventually(lambda: len(tree.look()) == 3)
    assert tree.kill() == []
    assert tree.look() == []
    assert leader.wait() == -signal.SIGKILL


def test_ending_asks_first_and_kills_what_does_not_listen(leader: subprocess.Popen[bytes]) -> None:
    tree = Tree(MARKER, leader.pid, None)
    assert asyncio.run(tree.end(0.1)) == []
    assert leader.wait() == -signal.SIGKILL


def test_ending_does_not_wait_longer_than_it_must() -> None:
    process = subprocess.Popen(["sleep", "600"], env={"SVCQ_RUN": MARKER})

    async def end() -> int:
        ending = asyncio.ensure_future(Tree(MARKER, None, None).end(3600))
        code = await asyncio.to_thread(process.wait)
        await asyncio.wait_for(ending, 30)
        return code

    assert asyncio.run(end()) == -signal.SIGTERM


def test_a_stopped_process_hears_that_it_is_to_end() -> None:
    process = subprocess.Popen(["sleep", "600"], env={"SVCQ_RUN": MARKER})
    tree = Tree(MARKER, None, None)
    assert tree.signal(signal.SIGSTOP) == 1

    async def end() -> int:
        ending = asyncio.ensure_future(tree.end(3600))
        code = await asyncio.to_thread(process.wait)
        await asyncio.wait_for(ending, 30)
        return code

    assert asyncio.run(end()) == -signal.SIGTERM


def test_nobody_is_left_of_nobody() -> None:
    tree = Tree("nobody", None, None)
    assert tree.signal(signal.SIGTERM) == 0
    assert tree.kill() == []
