"""svcq on a machine of its own, as those who use it see it: root, or a person who logs in."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from tests.helpers import eventually
from tests.linux.machine import Machine
from tests.linux.namespaces import PATIENCE
from tests.linux.program import PLACE, program_at

HOME = Path("/var/lib/svcq")
UNITS = Path("/etc/systemd/system")
SVCQ = program_at(PLACE)
SETTINGS = '[workers]\nslots = 2\n[jobs]\ngrace = "500ms"\n'

_numbers = itertools.count(1)


class Installation:
    """A queue with its service; `account` is whose jobs these are."""

    account: str
    home: Path
    units: Path
    _option: tuple[str, ...] = ()

    def __init__(self, machine: Machine, user: str | None = None, place: Path = PLACE) -> None:
        self.machine = machine
        self.user = user
        self._program = program_at(place)

    # svcq

    def svcq(self, *words: object, user: str | None = None) -> str:
        ran = self.machine.run(*self._program, *words, user=user or self.user, check=False)
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
        return ran.stdout

    def refused(self, code: int, *words: object, user: str | None = None) -> str:
        """The one sentence on stderr."""
        ran = self.machine.run(*self._program, *words, user=user or self.user, check=False)
        assert ran.returncode == code, (words, ran.returncode, ran.stdout, ran.stderr)
        assert ran.stderr.startswith("svcq: ")
        assert ran.stderr.endswith((".\n", "?\n"))
        assert ran.stderr.count("\n") == 1
        return ran.stderr

    def say(self, *words: object, user: str | None = None) -> str:
        """A command about this queue, and no other."""
        return self.svcq(*self._option, *words, user=user)

    def json(self, *words: object) -> Any:
        return json.loads(self.say(*words, "--json"))

    def problems(self) -> dict[str, str]:
        """What svcq doctor finds wrong, by check."""
        words = (*self._program, *self._option, "doctor", "--json")
        ran = self.machine.run(*words, user=self.user, check=False)
        wrong: dict[str, str] = {}
        for one in json.loads(ran.stdout):
            if not one["ok"]:
                before = wrong.get(one["check"], "")
                wrong[one["check"]] = f"{before}{one['says']}: {one['remedy']}\n"
        assert ran.returncode == (1 if wrong else 0)
        return wrong

    # The service

    def systemctl(self, *words: str, check: bool = True) -> str:
        whose = [] if self.user is None else ["--user"]
        ran = self.machine.run("systemctl", *whose, *words, user=self.user, check=check)
        return ran.stdout.strip()

    def is_installed(self) -> bool:
        return self.machine.path(self.units / "svcq.service").exists()

    def install(self, *options: str) -> None:
        """Installed and at work, whatever was there before."""
        if not self.is_installed():
            self.say("install", "--no-start", *options)
        config = self.home / "config.toml"
        if not self.machine.path(config).exists():
            self.machine.run("install", "-o", self.account, "-m", "600", "/dev/null", config)
            self.machine.path(config).write_text(SETTINGS)
        if not self.is_active():
            self.say("start")
        eventually(lambda: self.workers(state="running"), PATIENCE)

    def purge(self) -> None:
        if self.is_installed():
            self.say("uninstall", "--purge", "--yes")

    def is_active(self) -> bool:
        return self.systemctl("is-active", "svcq.service", check=False) == "active"

    def pid(self) -> int:
        return int(self.systemctl("show", "svcq.service", "-P", "MainPID"))

    def comes_back(self, before: int) -> None:
        """systemd has started another than the one with that pid."""
        eventually(lambda: self.pid() not in (0, before) and self.is_active(), PATIENCE)

    def workers(self, **wanted: Any) -> list[dict[str, Any]]:
        return [
            worker
            for worker in self.json("worker", "list")
            if all(worker[name] == value for name, value in wanted.items())
        ]

    # Jobs

    def add(self, *words: object) -> int:
        return int(self.say("add", *words))

    def run(self, *words: object) -> str:
        """Queue a command, wait for its good end; what it printed."""
        job = self.add(*words)
        ended = self.ended(job)
        assert ended["state"] == "completed", (ended, self.output(job))
        return self.output(job)

    def job(self, job: int) -> dict[str, Any]:
        shown: dict[str, Any] = self.json("show", job)
        return shown

    def ended(self, job: int) -> dict[str, Any]:
        words = (*self._program, *self._option, "wait", job, "--timeout", "60s")
        ran = self.machine.run(*words, user=self.user, check=False)
        assert ran.returncode != 124, ran.stderr
        return self.job(job)

    def output(self, job: int) -> str:
        return self.say("log", job)

    def begin(self) -> Waiting:
        return Waiting(self)


class System(Installation):
    """The service of the whole machine, for root."""

    account = "svcq"
    home = HOME
    units = UNITS
    _option = ("--system",)


class Person(Installation):
    """Someone who logs in and has a service of their own."""

    def __init__(self, machine: Machine, name: str, place: Path = PLACE) -> None:
        super().__init__(machine, name, place)
        self.account = name
        self.home = Path(f"/home/{name}/.local/share/svcq")
        self.units = Path(f"/home/{name}/.config/systemd/user")
        self._session = f"session-of-{name}"

    def log_in(self) -> None:
        self.machine.run(
            "systemd-run", "--quiet", "--unit", self._session, "--property", f"User={self.user}",
            "--property", "PAMName=login", "sleep", "infinity",
        )  # fmt: skip
        eventually(self.is_there, PATIENCE)

    def is_there(self) -> bool:
        """Whether their systemd runs."""
        return self.systemctl("is-system-running", check=False) in ("running", "degraded")

    def log_out(self) -> None:
        self.machine.systemctl("stop", self._session)

    def is_gone(self) -> bool:
        """Whether no process of theirs is left."""
        return not self.machine.run("pgrep", "-u", self.user, check=False).stdout

    def linger(self, *, on: bool) -> None:
        self.machine.run("loginctl", "enable-linger" if on else "disable-linger", self.user)


class Waiting:
    """A job that runs until it is let go, and counts how often it began."""

    def __init__(self, queue: Installation) -> None:
        self._queue = queue
        self._folder = Path(f"/srv/waiting-{next(_numbers)}")
        queue.machine.run("install", "-d", "-o", queue.account, self._folder)
        wait = f"until [ -e {self._folder}/go ]; do sleep 0.05; done"
        self.job = queue.add(
            "--shell", f"echo begun; echo x >> {self._folder}/begun; {wait}; echo over"
        )
        self.has_begun()

    def has_begun(self, times: int = 1) -> None:
        def begun() -> int:
            file = self._queue.machine.path(self._folder / "begun")
            return len(file.read_text().split()) if file.exists() else 0

        eventually(lambda: begun() == times, PATIENCE)

    def let_go(self) -> dict[str, Any]:
        self._queue.machine.path(self._folder / "go").touch()
        return self._queue.ended(self.job)

    def finish(self) -> None:
        """It has felt nothing."""
        ended = self.let_go()
        assert (ended["state"], ended["run"], ended["failures"]) == ("completed", 1, 0)
        assert self._queue.output(self.job) == "begun\nover\n"

    def went_on(self) -> dict[str, Any]:
        """It was interrupted once, which is no failure, and then came to its end."""
        self.has_begun(2)
        ended = self.let_go()
        assert (ended["state"], ended["run"], ended["failures"]) == ("completed", 2, 0)
        return ended
