"""Windows: svcq as a task that starts when its user logs on.

Where the scheduler does not take the task, a line in the user's part of the registry does the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from svcq.errors import NotPermitted, Refused, SvcqError
from svcq.host import windows, windows_start, windows_tasks
from svcq.host.standing import Standing, Trouble
from svcq.host.windows_kernel import registry
from svcq.host.windows_peers import account_name, own_uid
from svcq.host.windows_processes import ask_process_to_end, spawn_detached
from svcq.host.windows_service import Manager, holder, wait_until
from svcq.host.windows_tasks import element
from svcq.host.windows_window import listening_to_windows

_RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
_VALUE = "svcq"
_ABOUT = "svcq, the job queue: starts with the session. Made by `svcq install`."
# No limit and no battery may end it, and it is as quick as any other program.
_SETTINGS = {
    "MultipleInstancesPolicy": "IgnoreNew",
    "DisallowStartIfOnBatteries": "false",
    "StopIfGoingOnBatteries": "false",
    "AllowHardTerminate": "true",
    "StartWhenAvailable": "true",
    "RunOnlyIfIdle": "false",
    "ExecutionTimeLimit": "PT0S",
    "Priority": "5",
    "Enabled": "true",
}


class UserManager(Manager):
    system = False
    option = ""
    _where = "here"

    def __init__(self, *, linger: bool = True) -> None:
        del linger  # nothing of a user's goes on here without their session

    @property
    def folder(self) -> Path:
        return Path(windows.data_directory(), "svcq-service")

    @property
    def _file(self) -> Path:
        return self.folder / "service.json"

    @property
    def task(self) -> str:
        """One for each user of the machine."""
        return f"service of {windows.my_sid()}"

    def install(self, python: str, env: Mapping[str, str]) -> list[str]:
        home = env.get("SVCQ_HOME", "")
        log = os.path.join(home or self.folder, "logs", "service.out")
        windows_start.write(self._file, ["service"], env, log, python=python)
        try:
            windows_tasks.create(self.task, self._text(python))
        except (Refused, NotPermitted) as error:
            self._write_run_line(python)
            return [
                f"{error}",
                f"So svcq starts with your session by a line in your registry instead ({_RUN}).",
            ]
        self._remove_run_line()
        name = f"{windows_tasks.FOLDER}\\{self.task}"
        return [
            f"Installed the task {name}: svcq starts when you log on.",
            "It ends when you log off; what ran then goes on at the next log-on.",
        ]

    def _text(self, python: str) -> str:
        sid = windows.my_sid()
        trigger = element("LogonTrigger", element("Enabled", "true"), element("UserId", sid))
        command, arguments = self._words(python)
        return windows_tasks.task(
            _ABOUT, sid, [trigger], _SETTINGS, command, subprocess.list2cmdline(arguments)
        )

    def _words(self, python: str) -> tuple[str, list[str]]:
        command, *arguments = windows_start.command(python, self._file)
        return command, arguments

    def is_installed(self) -> bool:
        return self._file.exists()

    def _said(self) -> dict[str, object]:
        try:
            windows.check_private(self._file)
            said = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError, SvcqError):
            return {}
        return said if isinstance(said, dict) else {}

    def _env(self) -> dict[str, str]:
        env = self._said().get("env")
        return {str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else {}

    def home(self) -> Path | None:
        named = self._env().get("SVCQ_HOME")
        return None if named is None else Path(named)

    def standing(self) -> Standing:
        home = self.home()
        if not self.is_installed() or home is None:
            return Standing(installed=False, running=False)
        pid = holder(home)
        return Standing(installed=True, running=pid is not None, pid=pid)

    def start(self) -> None:
        """Not by way of the scheduler, which tells nobody whether it has succeeded."""
        self.need_right("start")
        home = self.home()
        if home is None:
            raise Refused(f"{self._file} cannot be read: svcq install writes it anew.")
        if holder(home) is not None:
            return
        command, arguments = self._words(str(self._said().get("python") or sys.executable))
        (home / "logs").mkdir(exist_ok=True)
        spawn_detached(
            [command, *arguments], log=home / "logs" / "service.out",
            env={**os.environ, **self._env()},
        )  # fmt: skip
        wait_until(lambda: holder(home), "The service did not start", 60)

    def stop(self) -> None:
        self.need_right("stop")
        home = self.home()
        pid = None if home is None else holder(home)
        if home is None or pid is None:
            return
        ask_process_to_end(pid)
        wait_until(lambda: holder(home) != pid, "The service did not stop")

    def uninstall(self) -> list[str]:
        windows_tasks.delete(self.task)
        self._remove_run_line()
        shutil.rmtree(self.folder, ignore_errors=True)
        return [f"Removed the task {windows_tasks.FOLDER}\\{self.task}."]

    def purge(self, home: Path) -> list[str]:
        shutil.rmtree(home)
        return [f"Removed {home}."]

    def troubles(self, python: str) -> Iterator[Trouble]:
        if self._has_run_line():
            return
        found = windows_tasks.read(self.task)
        if found is None:
            yield Trouble("its task is gone from the Task Scheduler", "svcq install")
            return
        lost = windows_tasks.missing(self._text(python), found)
        if lost:
            yield Trouble(
                f"its task is not as svcq would write it ({', '.join(lost)})", "svcq install"
            )

    def host(self, run: Callable[[], int]) -> int:
        with listening_to_windows(f"svcq of {account_name(own_uid())}"):
            return run()

    # The line in the registry

    def _write_run_line(self, python: str) -> None:
        winreg = registry()

        command, arguments = self._words(python)
        line = subprocess.list2cmdline([command, *arguments])
        key = winreg.CreateKey(winreg.HKEY_CURRENT_USER, _RUN)
        winreg.SetValueEx(key, _VALUE, 0, winreg.REG_SZ, line)

    def _remove_run_line(self) -> None:
        winreg = registry()

        with suppress(OSError):
            key = winreg.CreateKey(winreg.HKEY_CURRENT_USER, _RUN)
            winreg.DeleteValue(key, _VALUE)

    def _has_run_line(self) -> bool:
        winreg = registry()

        try:
            key = winreg.OpenKey(winreg.HKEY_CURRENT_USER, _RUN)
            winreg.QueryValueEx(key, _VALUE)
        except OSError:
            return False
        return True
