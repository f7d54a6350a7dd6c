"""Linux: svcq as a service of a user's own systemd."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from svcq.host import linux_units as units
from svcq.host.linux_service import Manager
from svcq.host.linux_units import Unit
from svcq.host.linux_workers import start_transient
from svcq.host.standing import Trouble

_ABOUT_LINGER = "so it ends when you log out and does not start with the machine"


class UserManager(Manager):
    system = False
    option = ""
    way_to_units = "see why `systemd-run --user true` fails, then svcq restart"
    _where = "here"

    @property
    def folder(self) -> Path:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        return Path(base, "systemd", "user")

    def __init__(self, *, linger: bool = True) -> None:
        super().__init__()
        self._linger = linger

    def install(self, python: str, env: Mapping[str, str]) -> list[str]:
        self._systemctl("show-environment")
        said = self._write(units.user_units(python, env, linger=self._linger))
        said.append(f"Installed {self.unit_file()}: svcq starts with your session.")
        if self._linger:
            said.append(_let_linger())
        return said

    def _wanted(self, python: str) -> list[Unit]:
        return units.user_units(python, {})

    def end_all(self) -> None:
        self._systemctl("stop", units.SERVICE)
        self._systemctl("stop", "svcq-worker-*.service")

    def uninstall(self) -> list[str]:
        return self._remove([units.SERVICE])

    def purge(self, home: Path) -> list[str]:
        shutil.rmtree(home)
        return [f"Removed {home}."]

    def start_worker(
        self, program: Sequence[str], env: Mapping[str, str], log: Path, number: int, /
    ) -> int | None:
        return start_transient(program, env, log, number)

    def troubles(self, python: str) -> Iterator[Trouble]:
        yield from super().troubles(python)
        if not units.declines_linger(self.unit_file().read_text()) and not lingers():
            yield Trouble(
                f"lingering is off for {_user()}, {_ABOUT_LINGER}",
                f"{_LINGER}, or svcq install --no-linger if that is meant",
            )


_LINGER = "sudo loginctl enable-linger $USER"


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def lingers() -> bool:
    """Whether units of this user go on without a session, as logind itself remembers it."""
    return os.path.exists(f"/var/lib/systemd/linger/{_user()}")


def _let_linger() -> str:
    try:
        subprocess.run(
            ["loginctl", "--no-ask-password", "enable-linger", str(os.getuid())],
            check=True, capture_output=True, timeout=30,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        if not lingers():
            return f"Lingering could not be switched on, {_ABOUT_LINGER}: {_LINGER} changes that."
    return "It goes on when you log out, and starts with the machine (--no-linger declines)."
