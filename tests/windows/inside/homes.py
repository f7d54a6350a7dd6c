"""Homes of real workers on Windows, ended with everything they started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from svcq.host import processes
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home

PYTHON = sys.executable


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
