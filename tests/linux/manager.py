"""A real systemd of a user, made for one test and thrown away with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from svcq.client import Client
from svcq.config import load
from svcq.jobs import Job
from svcq.store import Worker
from tests.clients import ROOT
from tests.helpers import eventually
from tests.linux.namespaces import PATIENCE, Group, children, is_systemd

SCRIPT = Path(__file__).with_name("manager.sh")


class Manager:
    def __init__(self) -> None:
        # Short, because the name of a socket may not be long.
        self.folder = Path(tempfile.mkdtemp(prefix="svcq-"))
        self.home = self.folder / "home"
        for name in ("home", "run"):
            (self.folder / name).mkdir(mode=0o700)
        self.svcq_home = self.home / "queue"
        self._group = Group(self.folder.name)
        self.boot()

    # The manager

    def boot(self) -> None:
        with (self.folder / "console").open("a") as console:
            self._outer = subprocess.Popen(
                ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation",
                 "private", "bash", str(SCRIPT), str(self._group.path), str(self.folder)],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
            )  # fmt: skip
        self._inner = eventually(self._find, PATIENCE)
        eventually(lambda: self.systemctl("is-system-running", check=False) == "running", PATIENCE)

    def _find(self) -> int | None:
        """systemd, behind unshare and the script."""
        assert self._outer.poll() is None, (self.folder / "console").read_text()
        behind = (second for first in children(self._outer.pid) for second in children(first))
        return next(filter(is_systemd, behind), None)

    def end_session(self) -> None:
        """As a log-out does: everything is asked to end, then killed."""
        os.kill(self._inner, signal.SIGTERM)
        self._outer.wait(PATIENCE)

    def cut_power(self) -> None:
        self._outer.kill()
        self._outer.wait()
        self._group.wait_until_empty()

    def close(self) -> None:
        if self._outer.poll() is None:
            self.cut_power()
        self._group.remove()
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

    def lives(self, pid: int) -> bool:
        return self.run("kill", "-0", pid, check=False).returncode == 0

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
