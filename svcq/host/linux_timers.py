"""Linux: schedules that a systemd fires, by timers of its own.

A timer wakes `svcq schedule fire`, which looks whether a time of the schedule has come. So a timer
that someone has edited, or that comes by once too often, fires nothing that the schedule does not
say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from svcq.errors import Refused, SvcqError
from svcq.host import linux_units as units
from svcq.host.linux_account import need_administrator
from svcq.host.linux_calendar import calendar_lines
from svcq.host.linux_program import check_program
from svcq.host.linux_systemctl import Systemctl
from svcq.host.linux_units import Unit
from svcq.host.linux_user import lingers
from svcq.host.standing import Trouble
from svcq.host.wanted import Timer

SCHEDULER = "systemd"
"""Who fires such a schedule, as its row says it."""

_STANDS = ("Id", "ActiveState", "UnitFileState", "NeedDaemonReload")


class Timers:
    """The timers of one home in a systemd: the user's own, or the machine's."""

    def __init__(self, home: str, folder: Path, *, system: bool) -> None:
        self._home = home
        self._folder = folder
        self._system = system
        self._systemctl = Systemctl(system=system)

    def register(self, timer: Timer) -> list[str]:
        """Let systemd wake the schedule from now on; what was done, in sentences."""
        wanted = self._units(timer)
        if self._system:
            need_administrator("hand over a schedule")
            check_program(timer.program[0])
        self._systemctl("show-environment")
        for unit in wanted:
            self._check_free(unit)
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            for unit in wanted:
                (self._folder / unit.name).write_text(unit.text)
            self._begin(wanted[0], timer)
        except BaseException:
            with suppress(SvcqError, OSError):
                self.remove(timer.schedule)
            raise
        said = [f"{SCHEDULER} fires {timer.schedule} from now on: {self._folder / wanted[0].name}."]
        if not self._system and not lingers():
            said.append(
                "It does so while you are logged in: loginctl enable-linger lets it go on then."
            )
        return said

    def _begin(self, unit: Unit, timer: Timer) -> None:
        self._systemctl("daemon-reload")
        said = self._systemctl("show", unit.name, "--property", "TimersCalendar")
        if said.count("OnCalendar=") != unit.text.count("\nOnCalendar="):
            raise Refused(
                f"systemd does not understand the times of {timer.schedule!r}, perhaps for their "
                "zone: leave it to svcq, or give it another zone."
            )
        self._systemctl("enable", unit.name)
        try:
            # Anew, since one that runs would go on with the times it had.
            self._systemctl("restart", unit.name)
        except Refused as refused:
            if not timer.wake:
                raise
            raise Refused(
                f"This systemd cannot wake the machine for {timer.schedule!r}, because it may not "
                "or because the machine has no clock for that: hand it over without --wake."
            ) from refused

    def wake_now(self, schedule: str) -> None:
        """As its timer does: for a time that has come while it was handed over."""
        unit = f"{units.timer_name(self._home, schedule)}.service"
        self._systemctl("start", "--no-block", unit)

    def remove(self, schedule: str) -> None:
        """Let systemd forget the schedule; nothing happens where it knows nothing of it."""
        name = units.timer_name(self._home, schedule)
        timer, service = f"{name}.timer", f"{name}.service"
        ours = [file for unit in (timer, service) if (file := self._ours(unit)) is not None]
        if not ours:
            return
        # What runs of it goes on to its end.
        self._systemctl("disable", "--now", timer)
        self._systemctl.ask("reset-failed", timer, service)
        self._systemctl.ask("clean", "--what=state", timer)  # when it last came by
        for file in ours:
            file.unlink(missing_ok=True)
        self._systemctl("daemon-reload")

    def there(self) -> list[str]:
        """The schedules of this home that have a timer."""
        found = (_read(file) or "" for file in sorted(self._folder.glob(f"{units.TIMERS}*.timer")))
        named = (units.schedule_of(text, self._home) for text in found)
        return [name for name in named if name is not None]

    def wakes(self, schedule: str) -> bool:
        """Whether its timer wakes the machine."""
        name = units.timer_name(self._home, schedule)
        return units.wakes(_read(self._folder / f"{name}.timer") or "")

    def troubles(self, wanted: Iterable[Timer]) -> dict[str, Trouble]:
        """What is not as it was when the schedules were handed over, by their names."""
        timers = {units.timer_name(self._home, one.schedule): one for one in wanted}
        if not timers:
            return {}
        stands = self._stands([f"{name}.timer" for name in timers])
        found = {}
        for name, timer in timers.items():
            trouble = next(self._troubles_of(timer, stands.get(f"{name}.timer", {})), None)
            if trouble is not None:
                found[timer.schedule] = trouble
        return found

    def _troubles_of(self, timer: Timer, stands: Mapping[str, str]) -> Iterator[Trouble]:
        again = f"svcq{' --system' if self._system else ''} schedule handoff {timer.schedule}"
        try:
            units_wanted = self._units(timer)
        except Refused as refused:
            yield Trouble(f"its times cannot be handed over any more ({refused})", "take it back")
            return
        for unit in units_wanted:
            text = _read(self._folder / unit.name)
            if text is None:
                yield Trouble(f"the unit {unit.name} was removed", again)
            elif units.schedule_of(text, self._home) != timer.schedule or units.is_edited(text):
                yield Trouble(f"the unit {unit.name} was changed by hand", again)
            elif units.is_outdated(text, unit.text):
                yield Trouble(
                    f"the unit {unit.name} does not have the times of the schedule", again
                )
            elif units.program_of(text) != units.program_of(unit.text):
                yield Trouble(f"the unit {unit.name} runs another svcq than this one", again)
        if stands.get("UnitFileState") != "enabled":
            yield Trouble(f"its timer is {stands.get('UnitFileState') or 'unknown'}", again)
        if stands.get("ActiveState") != "active":
            yield Trouble(f"its timer is {stands.get('ActiveState') or 'unknown'}", again)
        if stands.get("NeedDaemonReload") == "yes":
            yield Trouble("its timer has changed since systemd read it", again)

    def _units(self, timer: Timer) -> tuple[Unit, Unit]:
        return units.timer_units(timer, calendar_lines(timer.times), system=self._system)

    def _stands(self, names: list[str]) -> dict[str, dict[str, str]]:
        said = self._systemctl("show", *names, "--property", ",".join(_STANDS))
        blocks = (dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
                  for block in said.split("\n\n"))  # fmt: skip
        return {block["Id"]: block for block in blocks if "Id" in block}

    def _check_free(self, unit: Unit) -> None:
        if (self._folder / unit.name).exists() and self._ours(unit.name) is None:
            raise Refused(
                f"{self._folder / unit.name} was not made by svcq: move it away, then hand it "
                "over again."
            )

    def _ours(self, name: str) -> Path | None:
        file = self._folder / name
        text = _read(file)
        return file if text is not None and units.schedule_of(text, self._home) else None


def _read(file: Path) -> str | None:
    try:
        return file.read_text(errors="replace")
    except FileNotFoundError:
        return None
