"""What is written into the dialogs, and what is meant by it: pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from svcq.conditions import check_condition
from svcq.config.settings import SETTINGS
from svcq.errors import InvalidInput
from svcq.when import parse_time

CONDITIONS = ("", "ac-power", "battery>30", "idle>10m", "load<2", "unmetered")
TIMES = ("now", "in 10m", "in 1h", "22:00", "tomorrow 03:00")
MOST_FROM_CLIPBOARD = 10_000


class Form(NamedTuple):
    """The fields of `Queue a command`, as text."""

    command: str
    folder: str = ""
    queue: str = ""
    priority: str = "0"
    time: str = "now"
    condition: str = ""
    notify: bool = True

    def job(self) -> tuple[str, dict[str, Any]]:
        """The command and the options of the job; InvalidInput says which field is wrong."""
        command = self.command.strip()
        if not command:
            raise InvalidInput("There is no command: write one, as you would in a terminal.")
        options: dict[str, Any] = {"notify": self.notify, "cwd": _folder(self.folder)}
        if self.queue.strip():
            options["queue"] = self.queue.strip()
        if (priority := _whole(self.priority)) != 0:
            options["priority"] = priority
        if self.time.strip().lower() not in ("", "now"):
            options["run_at"] = parse_time(self.time)
        if self.condition.strip():
            options["when"] = check_condition(self.condition)
        return command, options


def _folder(text: str) -> str:
    folder = os.path.abspath(os.path.expanduser(text.strip() or "~"))
    if not os.path.isdir(folder):
        raise InvalidInput(f"The folder {folder!r} is not there: choose one that is.")
    return folder


def _whole(text: str) -> int:
    try:
        return int(text.strip() or "0")
    except ValueError:
        raise InvalidInput(
            f"The priority {text!r} is no whole number: give -1000 to 1000."
        ) from None


class Setting(NamedTuple):
    """A line of the settings dialog."""

    key: str
    label: str
    hint: str


SHOWN = (
    Setting("tray.notifications", "Notifications", "when jobs fail, and as follows"),
    Setting("tray.long_job", "Successes of jobs longer than", "5m, 1h; empty for none"),
    Setting("tray.quiet", "Quiet hours", "22:00-07:00; empty for none"),
    Setting("tray.rules", "Rules of queues", "video=all, night=never, build=failures"),
    Setting("tray.start_service", "Start the service with the tray", ""),
)


def changed(before: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, str]:
    """What is to be written, checked: all or nothing."""
    found = {}
    for key, text in now.items():
        if text.strip() == str(before[key]):
            continue
        kind = SETTINGS[key].kind
        try:
            kind.read(kind.from_text(text.strip()))
        except ValueError:
            label = next(one.label for one in SHOWN if one.key == key)
            raise InvalidInput(f"{label}: {text!r} cannot be used; give {kind.allowed}.") from None
        found[key] = text.strip()
    return found
