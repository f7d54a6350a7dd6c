"""Linux: svcq as a service of systemd, of the user's own or of the machine's.

The service runs in one unit and each worker in a unit of its own, so that a restart, a crash or a
stop of the service leaves the workers and their jobs alone. When the machine goes down or the user
logs out, systemd ends the workers itself: each hears SIGTERM, lets its jobs go back unharmed, and
only what is left after that is killed (KillMode=mixed).
"""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from svcq.errors import Refused, SvcqError
from svcq.host import linux_units as units
from svcq.host.linux_systemctl import Systemctl, is_there
from svcq.host.linux_units import Unit
from svcq.host.standing import Standing, Trouble


class Manager(ABC):
    """A systemd, and what svcq is to it."""

    name = "systemd"
    system: bool
    option: str  # what a command of svcq needs to mean this one
    way_to_units: str  # what to do when workers get none of their own
    _where: str

    def __init__(self) -> None:
        self._systemctl = Systemctl(system=self.system)

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where its units are."""

    @abstractmethod
    def install(self, python: str, env: Mapping[str, str]) -> list[str]:
        """Register the service, as what this Python has of svcq; what was done, in sentences."""

    @abstractmethod
    def end_all(self) -> None:
        """Stop the service and its workers: what was running goes back."""

    @abstractmethod
    def uninstall(self) -> list[str]:
        """Remove what `install` has made; data stays."""

    @abstractmethod
    def purge(self, home: Path) -> list[str]:
        """Remove the data too."""

    @abstractmethod
    def start_worker(
        self, program: Sequence[str], env: Mapping[str, str], log: Path, number: int, /
    ) -> int | None:
        """Start a worker in a unit of its own; its pid, or None where the manager grants none."""

    @abstractmethod
    def _wanted(self, python: str) -> list[Unit]:
        """The units that `install` would write, whatever session it is called from."""

    def use_account(self, name: str) -> None:
        """Have the service run as another account than its own."""
        raise Refused(
            f"The service cannot run as {name} here: --account is for the machine's service of "
            "Windows. Drop it; that account can run svcq install for a service of its own."
        )

    def start(self) -> None:
        self.need_right("start")
        self._systemctl("start", units.SERVICE)

    def stop(self) -> None:
        self.need_right("stop")
        self._systemctl("stop", units.SERVICE)

    def restart(self) -> None:
        self.need_right("start anew")
        self._systemctl("restart", units.SERVICE)

    def need_right(self, doing: str) -> None:
        """Refuse what this user may not, or what cannot be done to a service that is not there."""
        if not self.unit_file().exists():
            raise Refused(
                f"svcq is not installed as a service {self._where}, so there is nothing to "
                f"{doing}: run svcq install{self.option}, or svcq up."
            )

    def standing(self) -> Standing:
        if not self.unit_file().exists():
            return Standing(installed=False, running=False)
        wanted = ("ActiveState", "MainPID", "StatusText", "Result")
        try:
            facts = self._systemctl.properties(units.SERVICE, *wanted)
        except SvcqError as error:
            return Standing(installed=True, running=False, text=str(error))
        running = facts.get("ActiveState") == "active"
        stopped = facts.get("ActiveState") in ("inactive", "failed")
        text = None if stopped else facts.get("StatusText") or None
        if not running and not text and facts.get("Result") not in ("success", "", None):
            text = f"it ended with {facts['Result']}: see svcq{self.option} log --service"
        pid = int(facts.get("MainPID") or 0)
        return Standing(installed=True, running=running, pid=pid or None, text=text)

    def why_leaving(self) -> Literal["stop", "restart", "down"]:
        """Why the manager asks the service to end: for itself alone, to start it anew, or because
        the session or the machine ends."""
        if "INVOCATION_ID" not in os.environ:
            return "stop"
        if self._systemctl.ask("is-system-running") == "stopping":
            return "down"
        if "restart" in self._systemctl.ask("list-jobs", "--no-legend", units.SERVICE).split():
            return "restart"
        return "stop"

    def host(self, run: Callable[[], int]) -> int:
        """Be the service, in the process that the manager has started for it."""
        return run()

    # Installing

    def unit_file(self) -> Path:
        return self.folder / units.SERVICE

    def _write(self, wanted: Sequence[Unit]) -> list[str]:
        """Write the units and let systemd know; what was done besides, in sentences."""
        there = {unit.name: _read(self.folder / unit.name) for unit in wanted}
        for name, text in there.items():
            if text is not None and not units.is_ours(text):
                raise Refused(
                    f"{self.folder / name} was not made by svcq: move it away, then install again."
                )
        said = []
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, text in there.items():
            if text is not None and units.is_edited(text):
                kept = self.folder / f"{name}.edited"
                kept.write_text(text)
                said.append(
                    f"{self.folder / name} had been changed by hand: that is now in {kept}; "
                    f"{self._systemctl.command} edit {name} makes changes that stay."
                )
        for unit in wanted:
            (self.folder / unit.name).write_text(unit.text)
        self._systemctl("daemon-reload")
        self._systemctl("enable", units.SERVICE)
        return said

    def _remove(self, names: Sequence[str]) -> list[str]:
        self._systemctl("disable", units.SERVICE)
        for name in names:
            (self.folder / name).unlink(missing_ok=True)
        self._systemctl("daemon-reload")
        said = [f"Removed {self.unit_file()}."]
        changes = self.folder / f"{units.SERVICE}.d"
        if changes.exists():
            said.append(f"Your changes in {changes} are still there.")
        return said

    # What may be wrong

    def absence(self) -> str | None:
        """Why there is nobody to run a service, if so."""
        if not is_there():
            return "this machine was not started by systemd"
        try:
            self._systemctl("show-environment")
        except SvcqError as error:
            return str(error).rpartition(": ")[0]
        return None

    def troubles(self, python: str) -> Iterator[Trouble]:
        """What is wrong with the units, compared with what `install` would write."""
        again = f"svcq install{self.option}"
        for unit in self._wanted(python):
            file = self.folder / unit.name
            text = _read(file)
            if text is None:
                yield Trouble(f"the unit {file} is missing", again)
            elif not units.is_ours(text):
                yield Trouble(f"{file} was not made by svcq", f"move it away, then {again}")
            elif units.is_edited(text):
                yield Trouble(
                    f"{file} was changed by hand, and the next install would undo that",
                    f"{self._systemctl.command} edit {unit.name} makes changes that stay; "
                    f"{again} writes the unit anew and keeps yours beside it",
                )
            elif units.is_outdated(text, unit.text):
                yield Trouble(f"{file} is not what this svcq would write", again)
            elif units.program_of(text) != units.program_of(unit.text):
                runs = units.program_of(text).removeprefix("ExecStart=")
                yield Trouble(f"{file} runs another svcq than this one ({runs})", again)
        yield from self._troubles_of_systemd()

    def _troubles_of_systemd(self) -> Iterator[Trouble]:
        said = self._systemctl.properties(units.SERVICE, "NeedDaemonReload", "UnitFileState")
        if said.get("NeedDaemonReload") == "yes":
            yield Trouble(
                "the unit has changed since systemd read it",
                f"{self._systemctl.command} daemon-reload, then svcq{self.option} restart",
            )
        if said.get("UnitFileState") != "enabled":
            with_what = "the machine" if self.system else "your session"
            yield Trouble(
                f"the unit is {said.get('UnitFileState') or 'unknown'}, "
                f"so it does not start with {with_what}",
                f"{self._systemctl.command} enable {units.SERVICE}",
            )

    def is_sandboxed(self) -> bool:
        """Whether this process may do less than its account may; its children could do no more."""
        status = Path("/proc/self/status").read_text()
        return "NoNewPrivs:\t1" in status or "Seccomp:\t0" not in status

    def is_inside(self, pid: int) -> bool:
        """Whether a process is in the unit of the service, so that what holds for that holds for
        it."""
        with suppress(OSError):
            groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
            return any(group.endswith(f"/{units.SERVICE}") for group in groups)
        return False


def _read(file: Path) -> str | None:
    try:
        return file.read_text(errors="replace")
    except FileNotFoundError:
        return None


def notify(text: str) -> None:
    """Tell systemd how we are (sd_notify); nobody listens when it did not start us."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door:
        try:
            door.sendto(text.encode(), address)
        except OSError:
            return
