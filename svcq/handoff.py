"""Schedules that the scheduler of the system fires, so that a machine that sleeps can wake for them
and none of svcq need be running.

It wakes `svcq schedule fire --due`, which queues the job, has a worker run it and, unless jobs of
the schedule may overlap, ends as the job did.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from svcq.config import Config
from svcq.cron import parse_cron
from svcq.finding import Finding
from svcq.host.service import Manager
from svcq.host.timers import SCHEDULER, Interval, Once, Pattern, Timer, Times, Trouble, timers
from svcq.passwords import need_no_password
from svcq.schedules import Schedule
from svcq.store import Store

__all__ = [
    "SCHEDULER",
    "Trouble",
    "end",
    "examine_handed",
    "find_troubles",
    "hand_over",
    "renew",
    "strays",
    "wake_now",
]

# What it needs to know of the session it was handed over from; its jobs have their own.
_CAPTURED = ("PATH", "LANG")


def hand_over(schedule: Schedule, config: Config, *, wake: bool, system: bool = False) -> list[str]:
    """Let the system wake it from now on; what was done, in sentences. The row is the caller's to
    change."""
    timer = _timer(schedule, config, wake=wake, system=system)
    return timers(config.home, system=system).register(timer)


def wake_now(name: str, home: Path, *, system: bool = False) -> None:
    """Let the system look at it once: a time may have come while it was handed over."""
    timers(home, system=system).wake_now(name)


def renew(schedule: Schedule, config: Config, *, system: bool = False) -> None:
    """After a change of a schedule that was handed over."""
    wake = timers(config.home, system=system).wakes(schedule.name)
    hand_over(schedule, config, wake=wake, system=system)


def end(name: str, home: Path, *, system: bool = False) -> None:
    """Let the system forget it; the row is the caller's to change."""
    timers(home, system=system).remove(name)


def strays(handed: Iterable[Schedule], home: Path, *, system: bool = False) -> list[str]:
    """Schedules that the system wakes, and that were taken back or are gone."""
    known = {schedule.name for schedule in handed}
    return [name for name in timers(home, system=system).there() if name not in known]


def find_troubles(
    handed: Iterable[Schedule], config: Config, *, system: bool = False
) -> dict[str, Trouble]:
    """What someone has done to the timers of schedules that were handed over, by their names."""
    ours = timers(config.home, system=system)
    return ours.troubles(
        [_timer(one, config, wake=ours.wakes(one.name), system=system) for one in handed]
    )


def examine_handed(store: Store, config: Config, manager: Manager) -> Finding:
    """For a doctor's look: whether the system still wakes what was handed over to it."""
    check = "timers"
    handed = store.timetable.list(
        after="", limit=1_000_000, paused=None, task=None, fired_by=SCHEDULER
    )
    left = strays(handed, config.home, system=manager.system)
    if left:
        says = f"{SCHEDULER} still wakes {left[0]}, which is gone or was taken back"
        return Finding(check, False, says, f"svcq{manager.option} schedule takeback --all")
    for name, trouble in find_troubles(handed, config, system=manager.system).items():
        return Finding(check, False, f"{name}, which {SCHEDULER} fires: {trouble.says}",
                       trouble.remedy)  # fmt: skip
    some = f"{len(handed)} schedule{'' if len(handed) == 1 else 's'}"
    says = f"{SCHEDULER} fires {some}" if handed else "no schedule was handed over"
    return Finding(check, True, says)


def _timer(schedule: Schedule, config: Config, *, wake: bool, system: bool) -> Timer:
    env = {name: os.environ[name] for name in _CAPTURED if name in os.environ}
    program = [sys.executable, "-P", "-m", "svcq"]
    if system:
        env.pop("PATH", None)
        program = [sys.executable, "-I", "-m", "svcq", "--system"]
    else:
        env["SVCQ_HOME"] = str(config.home)
        if "SVCQ_STORE" in os.environ:
            need_no_password(config.store)
            env["SVCQ_STORE"] = config.store
    program += ["schedule", "fire", "--due"]
    if schedule.overlap == "skip":
        # A unit that waits is not started again, which is what skip means.
        program.append("--wait")
    return Timer(
        schedule.name, str(config.home), _times(schedule), (*program, "--", schedule.name), env,
        schedule.jitter_ms, wake,
    )  # fmt: skip


def _times(schedule: Schedule) -> Times:
    if schedule.every_ms is not None:
        return Interval(schedule.every_ms, schedule.anchor_ms)
    if schedule.at_ms is not None:
        return Once(schedule.at_ms)
    cron = parse_cron(schedule.cron or "", schedule.zone or "UTC")
    return Pattern(
        cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays, cron.either_day,
        cron.fixed, cron.zone,
    )  # fmt: skip
