"""A home with real workers on it, started as a user would start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from svcq.client import Client
from svcq.config import load
from svcq.jobs import Job, Run
from svcq.logs import log_file
from svcq.store import Worker
from tests.clients import ROOT
from tests.helpers import eventually

PATIENCE = 60.0  # seconds: a machine may be busy with other tests
# Retries come soon, and what ignores a request to end is killed soon.
QUICK = """
[jobs]
grace = "500ms"
backoff = "fixed"
backoff_base = 0.05
max_attempts = 1
"""
SAMPLE = "tests.lifecycle.sample"


class Home:
    """A place of its own, a client, and every process that was started on it."""

    def __init__(
        self, folder: Path, settings: str = QUICK, store: str = "", through: Sequence[str] = ()
    ) -> None:
        """`store`: its address, as we reach it. `through`: what starts its programs elsewhere."""
        self.through = tuple(through)
        self.path = folder / "home"
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.path.mkdir(mode=0o700)
        self.configure(settings)
        self.client = Client(config=load(self.path, {"SVCQ_STORE": store} if store else {}))
        self.started: list[subprocess.Popen[str]] = []

    def configure(self, settings: str) -> None:
        file = self.path / "config.toml"
        file.touch(mode=0o600)
        file.write_text(settings)

    # Programs

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return {**kept, "LANG": "C.UTF-8", "SVCQ_HOME": str(self.path)}

    def start(
        self, *arguments: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """`svcq ...` in the background; what it says goes into a file."""
        with (self.work / f"said-{len(self.started)}").open("w") as said:
            process = subprocess.Popen(
                [*self.through, sys.executable, "-m", "svcq", *map(str, arguments)],
                cwd=cwd,
                env={**self.environment, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                text=True,
            )
        self.started.append(process)
        return process

    def said(self) -> str:
        """All that the programs have said so far."""
        return "".join(file.read_text() for file in sorted(self.work.glob("said-*")))

    def svcq(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """`svcq ...` until it ends."""
        return subprocess.run(
            [*self.through, sys.executable, "-m", "svcq", *map(str, arguments)],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def worker(self, *arguments: object, env: Mapping[str, str] | None = None) -> Started:
        """`svcq worker run ...`, once it has registered."""
        process = self.start("worker", "run", *arguments, env=env)

        def registered() -> Worker | None:
            assert process.poll() is None, f"The worker ended: {self.said()}"
            return self.worker_of(process.pid)

        return Started(process, eventually(registered, PATIENCE).id)

    def worker_with_tasks(self, *arguments: object) -> Started:
        return self.worker("--import", SAMPLE, *arguments)

    def worker_of(self, pid: int) -> Worker | None:
        return next((worker for worker in self.client.workers() if worker.pid == pid), None)

    # Jobs

    def add(self, command: list[str] | str, **options: Any) -> int:
        return self.client.command(command, **{"cwd": str(self.work), **options}).id

    def add_python(self, code: str, *arguments: object, **options: Any) -> int:
        return self.add([sys.executable, "-S", "-c", code, *map(str, arguments)], **options)

    def ended(self, job: int) -> Job:
        return self.client.wait(job, PATIENCE)

    def run(self, command: list[str] | str, **options: Any) -> Job:
        """Queue a command and wait for its end."""
        return self.ended(self.add(command, **options))

    def call(self, task: Any, *args: Any, **kwargs: Any) -> Job:
        """Queue a call and wait for its end."""
        return self.ended(self.client.enqueue(task, *args, **kwargs).id)

    def call_by_name(self, task: str, *args: Any, **options: Any) -> Job:
        new = self.client.new_task(task, list(args), {}, **options)
        return self.ended(self.client.add([new])[0].id)

    def is_running(self, job: int) -> bool:
        return self.client.get(job).state == "processing"

    def wait_until_running(self, job: int) -> None:
        eventually(lambda: self.is_running(job), PATIENCE)

    def last_run(self, job: int) -> Run:
        return self.client.runs(job)[-1]

    def log(self, job: int, run: int = 1) -> Path:
        return log_file(self.path, job, run)

    def output(self, job: int, run: int = 1) -> str:
        return self.log(job, run).read_text(errors="replace")

    # The end

    def processes(self) -> list[int]:
        """Whatever lives because of this home: told by its environment, directory and files."""
        return [
            pid for pid in _pids() if pid != os.getpid() and _belongs(pid, str(self.path.parent))
        ]

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()

        def kill_the_rest() -> bool:
            left = self.processes()
            for pid in left:
                _kill(pid)
            return not left

        eventually(kill_the_rest, PATIENCE)
        self.client.close()


class Started:
    """A worker that runs."""

    def __init__(self, process: subprocess.Popen[str], number: int) -> None:
        self.process = process
        self.pid = process.pid
        self.id = number

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def ended(self) -> int:
        return self.process.wait(PATIENCE)


def lives(pid: int) -> bool:
    """Whether the process runs; one that only waits to be noticed by its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _belongs(pid: int, folder: str) -> bool:
    places = [f"/proc/{pid}/cwd"]
    try:
        if folder.encode() in Path(f"/proc/{pid}/environ").read_bytes() and lives(pid):
            return True
        places += [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        pass
    return lives(pid) and any(_link(place).startswith(folder) for place in places)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
