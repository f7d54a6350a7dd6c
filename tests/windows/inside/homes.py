"""Homes of real workers on Windows, ended with everything they started."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from svcq.host import processes
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home

PYTHON = sys.executable
LOST_BY_WINE = {"LogonType", "Command", "Arguments", "StartBoundary", "Interval", "DaysInterval"}
"""Parts of a task that Wine takes, and does not keep."""


class WindowsHome(Home):
    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SVCQ_HOME": str(self.path)}

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        for worker in self.client.workers():
            seen = processes.look_at(worker.pid)
            if seen is not None:
                processes.signal_tree([seen], processes.KILL)
                eventually(lambda pid=worker.pid: processes.look_at(pid) is None, PATIENCE)
        self.client.close()


def call(words: Sequence[str], **env: str) -> subprocess.CompletedProcess[str]:
    """`svcq ...` until it ends. What it says goes into a file: the first program that needs a
    desktop has Wine start one, which would keep a pipe open."""
    with tempfile.TemporaryFile() as said:
        ran = subprocess.run(
            [PYTHON, "-m", "svcq", *words], env={**os.environ, **env}, check=False,
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=180,
        )  # fmt: skip
        said.seek(0)
        text = said.read().decode().replace("\r\n", "\n")
    return subprocess.CompletedProcess(words, ran.returncode, text)


def note_pid(file: Path) -> str:
    """Code that notes the pid of whoever runs it, all of it or nothing."""
    return (
        "import os, sys, time\n"
        f"draft = {str(file)!r} + '.new'\n"
        "open(draft, 'w').write(str(os.getpid()))\n"
        f"os.replace(draft, {str(file)!r})\n"
    )


def pid_in(file: Path) -> int:
    return int(eventually(lambda: file.exists() and file.read_text(), PATIENCE))


def lives(pid: int) -> bool:
    return processes.look_at(pid) is not None
