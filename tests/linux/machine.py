"""A whole machine with a real systemd, made for some tests and thrown away with them.

Its disk begins as a copy of this machine's and lives in memory; nothing of this machine's can be
written from within.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.helpers import eventually
from tests.linux.namespaces import PATIENCE, Group, children, is_systemd

SCRIPT = Path(__file__).with_name("machine.sh")
# The end of whoever runs the tests is the end of the machine.
DIE_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
CLEAN = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
         "LANG=C.UTF-8", "TERM=dumb", "SYSTEMD_PAGER=cat"]  # fmt: skip


class Machine:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="svcq-"))
        self.name = "svcq" + "".join(filter(str.isalnum, self.folder.name.removeprefix("svcq-")))
        self._group = Group(self.folder.name)
        disk = self.folder / "disk"
        disk.mkdir()
        make = f"mount -t tmpfs -o mode=755 tmpfs {disk}; cd {disk}; mkdir upper work root"
        # Holds the disk while the machine is off.
        self._holder = subprocess.Popen(
            [*DIE_WITH_US, "unshare", "--mount", "--propagation", "private",
             "bash", "-ec", f"{make}; exec sleep infinity"],
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._disk = Path(f"/proc/{self._holder.pid}/root{disk}")
        eventually((self._disk / "root").is_dir, PATIENCE)
        self._words = [str(self._group.path), str(disk), self.name]
        self._power: subprocess.Popen[bytes] | None = None

    # Power

    def boot(self) -> None:
        with (self.folder / "console").open("a") as console:
            self._power = subprocess.Popen(
                [*DIE_WITH_US, "nsenter", "--target", str(self._holder.pid), "--mount",
                 "bash", str(SCRIPT), *self._words],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
            )  # fmt: skip
        self._first = eventually(self._find, PATIENCE)
        eventually(self._is_up, PATIENCE)

    def _find(self) -> int | None:
        assert self._power is not None
        assert self._power.poll() is None, (self.folder / "console").read_text()
        return next(filter(is_systemd, children(self._power.pid)), None)

    def _is_up(self) -> bool:
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() in (
            "running", "degraded",
        )  # fmt: skip

    def reboot(self) -> None:
        """As `systemctl reboot` does: everything is asked to end, then killed."""
        assert self._power is not None
        self._first_gets(signal.SIGRTMIN + 5)
        self._power.wait(PATIENCE * 2)
        self._group.wait_until_empty()
        self.boot()

    def _first_gets(self, number: int) -> None:
        subprocess.run(["kill", f"-{number}", str(self._first)], check=True)

    def wait_until_off(self) -> None:
        """It was shut down from within."""
        assert self._power is not None
        self._power.wait(PATIENCE * 2)
        self._group.wait_until_empty()

    def cut_power(self) -> None:
        if self._power is not None:
            self._power.kill()
            self._power.wait()
            self._group.wait_until_empty()

    def close(self) -> None:
        self.cut_power()
        self._holder.kill()
        self._holder.wait()
        self._group.remove()
        (self.folder / "console").unlink(missing_ok=True)
        (self.folder / "disk").rmdir()
        self.folder.rmdir()

    # Inside

    def path(self, inside: str | Path) -> Path:
        """A file of the machine, to be looked at from here."""
        return Path(f"/proc/{self._first}/root{inside}")

    def disk(self, inside: str | Path) -> Path:
        """The same while it is off: what was changed on it so far."""
        return self._disk / "upper" / str(inside).lstrip("/")

    def run(
        self, *words: object, user: str | None = None, check: bool = True, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", "--target", str(self._first), "--all", "--wdns=/", *CLEAN]
        ran = subprocess.run(
            [*enter, *self._as(user), *map(str, words)], capture_output=True, text=True,
            check=False, timeout=PATIENCE * 2, input=stdin,
        )  # fmt: skip
        assert not check or ran.returncode == 0, (words, ran.returncode, ran.stdout, ran.stderr)
        return ran

    def _as(self, user: str | None) -> list[str]:
        if user is None:
            return ["HOME=/root", "USER=root", "LOGNAME=root"]
        uid = self.uid(user)
        bus = f"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/{uid}/bus"
        about = [f"HOME=/home/{user}", f"USER={user}", f"LOGNAME={user}"]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        return [*about, f"XDG_RUNTIME_DIR=/run/user/{uid}", bus, *become]

    def uid(self, user: str) -> int:
        accounts = (line.split(":") for line in self.path("/etc/passwd").read_text().splitlines())
        return next(int(account[2]) for account in accounts if account[0] == user)

    def shell(self, line: str, user: str | None = None) -> str:
        return self.run("bash", "-ec", line, user=user).stdout.strip()

    def json(self, *words: object, user: str | None = None) -> Any:
        return json.loads(self.run(*words, user=user).stdout)

    def systemctl(self, *words: str, check: bool = True) -> str:
        return self.run("systemctl", *words, check=check).stdout.strip()
