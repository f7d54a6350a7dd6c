"""Windows: schedules that its Task Scheduler fires.

A task wakes `svcq schedule fire`, which looks whether a time of the schedule has come. So a task
that someone has edited, or that comes by once too often, fires nothing that the schedule does not
say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from svcq.errors import Refused, SvcqError
from svcq.host import windows, windows_start, windows_tasks
from svcq.host.standing import Trouble
from svcq.host.wanted import Timer
from svcq.host.windows_processes import spawn_detached
from svcq.host.windows_triggers import triggers

SCHEDULER = "task-scheduler"
"""Who fires such a schedule, as its row says it."""

_ABOUT = "Fires the schedule {schedule} of svcq. Made by `svcq schedule handoff`."


class Timers:
    """The tasks of one home in the caller's own Task Scheduler."""

    def __init__(self, home: str, folder: Path, *, system: bool = False) -> None:
        self._home = home
        self._folder = folder
        self._system = system

    def register(self, timer: Timer) -> list[str]:
        """Let Windows wake the schedule from now on; what was done, in sentences."""
        if self._system:
            raise Refused(
                "Schedules of the machine's service cannot be handed over on Windows: leave them "
                "to svcq, or hand over one of your own."
            )
        text = self._text(timer)
        at = timer.program.index("svcq")
        log = os.path.join(self._home, "logs", "fired.log")
        windows_start.write(
            self._file(timer.schedule), timer.program[at + 1 :], timer.env, log,
            schedule=timer.schedule, home=self._home, python=timer.program[0],
            wakes="yes" if timer.wake else "no",
        )  # fmt: skip
        try:
            windows_tasks.create(self._name(timer.schedule), text)
        except BaseException:
            self._file(timer.schedule).unlink(missing_ok=True)
            raise
        name = f"{windows_tasks.FOLDER}\\{self._name(timer.schedule)}"
        return [f"{SCHEDULER} fires {timer.schedule} from now on, while you are logged on: {name}."]

    def _text(self, timer: Timer) -> str:
        command, *arguments = windows_start.command(timer.program[0], self._file(timer.schedule))
        settings = {
            # One that waits for its job is not started again, which is what skip means.
            "MultipleInstancesPolicy": "IgnoreNew" if "--wait" in timer.program else "Parallel",
            "DisallowStartIfOnBatteries": "false",
            "StopIfGoingOnBatteries": "false",
            "StartWhenAvailable": "true",
            "WakeToRun": str(timer.wake).lower(),
            "ExecutionTimeLimit": "PT0S",
            "Enabled": "true",
        }
        return windows_tasks.task(
            _ABOUT.format(schedule=timer.schedule), windows.my_sid(),
            triggers(timer.times, timer.jitter_ms), settings, command,
            subprocess.list2cmdline(arguments),
        )  # fmt: skip

    def wake_now(self, schedule: str) -> None:
        """As its task does: for a time that has come while it was handed over."""
        python = str(self._said(self._file(schedule)).get("python") or sys.executable)
        log = Path(self._home, "logs", "fired.log")
        log.parent.mkdir(exist_ok=True)
        spawn_detached(windows_start.command(python, self._file(schedule)), log=log, env=os.environ)

    def remove(self, schedule: str) -> None:
        """Let Windows forget the schedule; nothing happens where it knows nothing of it."""
        windows_tasks.delete(self._name(schedule))
        self._file(schedule).unlink(missing_ok=True)

    def there(self) -> list[str]:
        """The schedules of this home that have a task, or what one is to start."""
        said = (self._said(file) for file in sorted(self._folder.glob("*.json")))
        return sorted(str(one["schedule"]) for one in said if one.get("home") == self._home)

    def wakes(self, schedule: str) -> bool:
        """Whether its task wakes the machine."""
        return self._said(self._file(schedule)).get("wakes") == "yes"

    def troubles(self, wanted: Iterable[Timer]) -> dict[str, Trouble]:
        """What is not as it was when the schedules were handed over, by their names."""
        found = {}
        for timer in wanted:
            trouble = next(self._troubles_of(timer), None)
            if trouble is not None:
                found[timer.schedule] = trouble
        return found

    def _troubles_of(self, timer: Timer) -> Iterator[Trouble]:
        again = f"svcq schedule handoff {timer.schedule}"
        try:
            text = self._text(timer)
        except Refused as refused:
            yield Trouble(f"its times cannot be handed over any more ({refused})", "take it back")
            return
        there = windows_tasks.read(self._name(timer.schedule))
        if there is None:
            yield Trouble("its task was removed", again)
            return
        lost = windows_tasks.missing(text, there)
        if lost:
            yield Trouble(f"its task was changed ({', '.join(lost)})", again)
        elif not self._file(timer.schedule).exists():
            yield Trouble("what its task is to start was removed", again)

    def _said(self, file: Path) -> dict[str, object]:
        with suppress(OSError, ValueError, SvcqError):
            windows.check_private(file)
            said = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(said, dict):
                return said
        return {}

    def _file(self, schedule: str) -> Path:
        return self._folder / f"{self._name(schedule)}.json"

    def _name(self, schedule: str) -> str:
        """Others may have a schedule of that name, and a name may hold what a file's may not."""
        mark = sha256(f"{self._home}\0{schedule}".encode()).hexdigest()[:12]
        plain = "".join(one if one.isalnum() or one in "-_" else "-" for one in schedule)[:60]
        return f"schedule {plain} {mark}"


def timers(home: Path, *, system: bool = False) -> Timers:
    """What the scheduler has of a home."""
    folder = Path(windows.data_directory(), "svcq-service", "timers")
    return Timers(str(home), folder, system=system)
