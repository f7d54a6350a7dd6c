"""A real systemd of a user, made for one test and thrown away with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from svcq.client import Client
from svcq.config import load
from svcq.jobs import Job
from svcq.store import Worker
from tests.clients import ROOT
from tests.helpers import eventually

PATIENCE = 60.0
SCRIPT = Path(__file__).with_name("manager.sh")


class Manager:
    def __init__(self) -> None:
        # Short, because the name of a socket may not be long.
        self.folder = Path(tempfile.mkdtemp(prefix="svcq-"))
        self.home = self.folder / "home"
        for name in ("home", "run"):
            (self.folder / name).mkdir(mode=0o700)
        self.svcq_home = self.home / "queue"
        self._cgroup = _cgroup2() / self.folder.name
        self.boot()

    # The manager

    def boot(self) -> None:
        self._cgroup.mkdir(exist_ok=True)
        with (self.folder / "console").open("a") as console:
            self._outer = subprocess.Popen(
                ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation",
                 "private", "bash", str(SCRIPT), str(self._cgroup), str(self.folder)],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
            )  # fmt: skip
        self._inner = eventually(self._find, PATIENCE)
        eventually(lambda: self.systemctl("is-system-running", check=False) == "running", PATIENCE)

    def _find(self) -> int | None:
        """systemd, behind unshare and the script."""
        assert self._outer.poll() is None, (self.folder / "console").read_text()
        for first in _children(self._outer.pid):
            for second in _children(first):
                with suppress(OSError):
                    if Path(f"/proc/{second}/comm").read_text().strip() == "systemd":
                        return second
        return None

    def end_session(self) -> None:
        """As a log-out does: everything is asked to end, then killed."""
        os.kill(self._inner, signal.SIGTERM)
        self._outer.wait(PATIENCE)

    def cut_power(self) -> None:
        self._outer.kill()
        self._outer.wait()
        eventually(self._is_empty, PATIENCE)

    def _is_empty(self) -> bool:
        return not any(file.read_text() for file in self._cgroup.rglob("cgroup.procs"))

    def close(self) -> None:
        if self._outer.poll() is None:
            self.cut_power()
        folders = [folder for folder in self._cgroup.rglob("*") if folder.is_dir()]
        for folder in [*sorted(folders, reverse=True), self._cgroup]:
            folder.rmdir()
        shutil.rmtree(self.folder)

    # Inside

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder}/run/bus",
            "SVCQ_HOME": str(self.svcq_home),
        }

    def run(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", "--target", str(self._inner), "--pid", "--mount", f"--wdns={ROOT}"]
        return subprocess.run(
            [*enter, *map(str, words)], env=self.environment, capture_output=True, text=True,
            check=check, timeout=PATIENCE, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def systemctl(self, *words: str, check: bool = True) -> str:
        return self.run("systemctl", "--user", *words, check=check).stdout.strip()

    def svcq(self, *words: object) -> str:
        ran = self.run(sys.executable, "-m", "svcq", *words, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def refused(self, code: int, *words: object) -> str:
        ran = self.run(sys.executable, "-m", "svcq", *words, check=False)
        assert ran.returncode == code, ran
        assert "Traceback" not in ran.stderr
        return ran.stderr

    # What is there

    @property
    def client(self) -> Client:
        return Client(config=load(self.svcq_home, {}))

    def configure(self, settings: str) -> None:
        self.svcq_home.mkdir(mode=0o700, exist_ok=True)
        file = self.svcq_home / "config.toml"
        file.touch(mode=0o600)
        file.write_text(settings)

    def add(self, line: str) -> int:
        with self.client as client:
            return client.command(line, env={"PATH": os.environ["PATH"]}).id

    def job(self, job: int) -> Job:
        with self.client as client:
            return client.get(job)

    def ended(self, job: int) -> Job:
        with self.client as client:
            return client.wait(job, PATIENCE)

    def workers(self, **wanted: Any) -> list[Worker]:
        with self.client as client:
            found = client.workers()
        return [one for one in found if all(getattr(one, k) == v for k, v in wanted.items())]

    def service_pid(self) -> int:
        return int(self.systemctl("show", "svcq.service", "--property", "MainPID", "--value"))


def _cgroup2() -> Path:
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return Path(next(mount[1] for mount in mounts if mount[2] == "cgroup2"))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found
