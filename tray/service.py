"""Starting and stopping the service, as the user; as root where it is the machine's, and that one
command alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from svcq.errors import Refused, SvcqError, Unreachable
from svcq.host import processes, service

from .door import Door

_PATIENCE = 120.0


class Service:
    def __init__(self, door: Door) -> None:
        self._door = door

    def start(self) -> None:
        """By the service manager; where svcq is not installed, in the background."""
        if self._is_installed():
            self._manage("start")
        elif self._pid() is None:
            self._up()

    def stop(self) -> None:
        if self._is_installed():
            self._manage("stop")
            return
        pid = self._pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)

    def restart(self) -> None:
        if self._is_installed():
            self._manage("restart")
            return
        pid = self._pid()
        if pid is not None:
            born = processes.process_born(pid)
            os.kill(pid, signal.SIGTERM)
            _wait_for_end(pid, born)
        self._up()

    def _is_installed(self) -> bool:
        if self._door.whose == "machine":
            return True
        try:
            return service.manager().standing().installed
        except SvcqError:
            return False

    def _pid(self) -> int | None:
        """Of the one that serves: it says so itself, over a socket that is its owner's alone."""
        connection = self._door.connect()
        try:
            return int(connection.ask("GET", "/service")["pid"])
        except Unreachable:
            return None
        finally:
            connection.close()

    def _manage(self, verb: str) -> None:
        command = [sys.executable, "-m", "svcq", verb]
        if self._door.whose == "machine":
            command = [sys.executable, "-m", "svcq", "--system", verb]
            if os.geteuid() != 0:
                # pkexec asks for the password, and runs this one command.
                command = ["pkexec", *command]
        _run(command)

    def _up(self) -> None:
        """As `svcq up`, which goes on when the tray ends."""
        log = self._door.home / "logs" / "up.log"
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        processes.spawn_detached(
            [sys.executable, "-m", "svcq", "up"], log=log, env=os.environ, cwd="/"
        )


def _run(command: list[str]) -> None:
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError:
        raise Refused(
            f"{command[0]} is not there, which asks for the password: "
            f"use sudo svcq --system {command[-1]} in a terminal."
        ) from None
    except subprocess.TimeoutExpired:
        raise Unreachable(f"svcq {command[-1]} does not end: svcq doctor may know why.") from None
    if ran.returncode:
        lines = ran.stderr.strip().splitlines() or [f"svcq {command[-1]} failed."]
        raise Refused(lines[-1].removeprefix("svcq: "))


def _wait_for_end(pid: int, born: str | None) -> None:
    until = time.monotonic() + _PATIENCE
    while born is not None and processes.process_born(pid) == born:
        with suppress(ChildProcessError):  # it may be one that we have started
            os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > until:
            raise Unreachable("The service does not end: svcq doctor may know why.")
        time.sleep(0.05)
