"""The words of schedules: jobs that come again at times of their own.

A Definition is what was said of a schedule, checked; a Schedule is that as the store has it, with
where it stands; a Firing is what became of one of its times. `decide` says what a clock does with
a schedule that is due.
"""

# No annotations from __future__: as text, each one of a NamedTuple is compiled at every start.

import json
from datetime import datetime
from enum import StrEnum
from itertools import islice, pairwise
from random import randint
from typing import Any, NamedTuple

from svcq.errors import InvalidInput
from svcq.policy import NewJob, make_plan, read_options
from svcq.times import HOUR, format_duration, iso, moment
from svcq.triggers import MOST_COUNTED, Passed, Trigger

MISSED = ("once", "skip", "all")
OVERLAP = ("skip", "queue", "replace")
OURS = "svcq"  # who fires it, unless it was handed to the system's scheduler

# cron(8) holds a clock that is set back by so much for corrected; by less, for a detour.
CORRECTION = 3 * HOUR


class How(StrEnum):
    """What became of a time."""

    FIRED = "fired"
    """It was queued, when it should be."""
    CAUGHT_UP = "caught_up"
    """It was queued later, in place of those that had passed."""
    MISSED = "missed"
    """It had passed, and is left out."""
    SKIPPED = "skipped"
    """The job before had not ended."""
    FAILED = "failed"
    """It could not be queued; `note` says why."""
    ASKED = "asked"
    """Someone asked for it now, beside its times."""


class Definition(NamedTuple):
    """What was said of a schedule, checked, in the store's units."""

    name: str
    trigger: Trigger
    jitter_ms: int = 0
    missed: str = "once"
    overlap: str = "skip"
    task: str = ""
    command: str | None = None  # JSON, as NewJob has them
    args: str | None = None
    options: str = "{}"  # JSON: the caller's words
    env: str | None = None  # JSON
    owner: str | None = None


class Schedule(NamedTuple):
    """A schedule as the store has it: times in Unix milliseconds, what is to run as JSON.

    The properties say the same as Python has it.
    """

    name: str
    cron: str | None
    zone: str | None
    every_ms: int | None
    at_ms: int | None
    start_ms: int | None
    end_ms: int | None
    anchor_ms: int
    jitter_ms: int
    missed: str
    overlap: str
    paused: int  # 0 or 1
    fired_by: str
    task: str
    command_json: str | None
    args_json: str | None
    options_json: str
    owner: str | None
    created_ms: int
    revision: int
    set_ms: int
    next_ms: int | None
    due_ms: int | None
    last_ms: int | None
    last_job: int | None
    firings: int
    last_how: str | None
    last_missed: int | None
    last_ran: int | None
    last_note: str | None

    @property
    def trigger(self) -> Trigger:
        return Trigger(
            self.cron, self.zone, self.every_ms, self.at_ms, self.start_ms, self.end_ms,
            self.anchor_ms,
        )  # fmt: skip

    @property
    def next_at(self) -> datetime | None:
        return _moment(self.next_ms)

    @property
    def last_at(self) -> datetime | None:
        return _moment(self.last_ms)

    @property
    def created_at(self) -> datetime:
        return moment(self.created_ms)

    @property
    def command(self) -> list[str] | str | None:
        found: list[str] | str | None = json.loads(self.command_json or "null")
        return found

    @property
    def call(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a task: positional, named."""
        positional, named = json.loads(self.args_json) if self.args_json else ([], {})
        return positional, named

    @property
    def options(self) -> dict[str, Any]:
        """What its jobs are told, in the caller's words; see svcq.Options."""
        said: dict[str, Any] = json.loads(self.options_json)
        return said

    @property
    def over(self) -> bool:
        """Whether none of its times is to come."""
        return self.next_ms is None and not self.paused

    @property
    def times(self) -> str:
        """Its trigger in words: `0 3 * * * (Europe/Paris)`, `every 15m`, `at 2031-05-01 ...`."""
        if self.cron is not None:
            return f"{self.cron} ({self.zone})"
        if self.every_ms is not None:
            return f"every {format_duration(self.every_ms)}"
        return f"at {iso(self.at_ms)}"

    def explain(self) -> str:
        """What it does and how it went last, for people."""
        return " ".join(filter(None, [self._stands(), self._went()]))

    def _stands(self) -> str:
        if self.paused:
            return f"It is paused: svcq schedule resume {self.name} lets it go on."
        if self.fired_by != OURS:
            return f"It is fired by {self.fired_by}, not by the clock of svcq."
        if self.over:
            return "It is over: none of its times is to come."
        return f"It fires next for {iso(self.next_ms)}."

    def _went(self) -> str:
        last = self.last_firing
        return "It has not fired yet." if last is None else f"Last: {last.says}."

    @property
    def last_firing(self) -> "Firing | None":
        """What became of its last time; the times themselves are in its history."""
        if self.last_how is None:
            return None
        return Firing(
            self.name, self.firings, None, 0, How(self.last_how), self.last_job,
            self.last_missed or 0, self.last_ran or 0, self.last_note,
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """The JSON object every face of svcq prints for a schedule."""
        what: dict[str, Any] = {"command": self.command}
        if self.task:
            args, kwargs = self.call
            what = {"task": self.task, "args": args, "kwargs": kwargs}
        return {
            "name": self.name,
            "cron": self.cron,
            "tz": self.zone,
            "every": None if self.every_ms is None else self.every_ms / 1000,
            "at": iso(self.at_ms),
            "start": iso(self.start_ms),
            "end": iso(self.end_ms),
            "jitter": self.jitter_ms / 1000,
            "missed": self.missed,
            "overlap": self.overlap,
            "paused": bool(self.paused),
            "fired_by": self.fired_by,
            **what,
            "options": self.options,
            "owner": self.owner,
            "created_at": iso(self.created_ms),
            "next_at": iso(self.next_ms),
            "last_at": iso(self.last_ms),
            "last_job": self.last_job,
            "says": self.explain(),
        }


class Firing(NamedTuple):
    """What became of one time of a schedule."""

    schedule: str
    number: int
    nominal_ms: int | None  # the time it was for; None where someone asked for it
    at_ms: int
    how: How
    job: int | None = None
    missed: int = 0  # how many times had passed by then
    ran: int = 0  # how many of them were made up for
    note: str | None = None

    @property
    def nominal(self) -> datetime | None:
        return _moment(self.nominal_ms)

    @property
    def at(self) -> datetime:
        return moment(self.at_ms)

    @property
    def says(self) -> str:
        """`queued job 12`, `missed 3 while the machine slept, ran 1`."""
        note = f" {self.note}" if self.note else ""
        match self.how:
            case How.FIRED | How.ASKED:
                return f"queued job {self.job}"
            case How.CAUGHT_UP | How.MISSED:
                some = f"{self.missed:,}{' or more' if self.missed >= MOST_COUNTED else ''}"
                return f"missed {some}{note}, ran {self.ran or 'none'}"
            case How.SKIPPED:
                return f"skipped,{note}"
            case How.FAILED:
                return f"nothing could be queued:{note}"

    def as_json(self) -> dict[str, Any]:
        return {
            "schedule": self.schedule,
            "number": self.number,
            "nominal": iso(self.nominal_ms),
            "at": iso(self.at_ms),
            "how": self.how.value,
            "job": self.job,
            "missed": self.missed,
            "ran": self.ran,
            "note": self.note,
            "says": self.says,
        }


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else moment(ms)


def new_job(schedule: Schedule, env: str | None, default_queue: str) -> NewJob:
    """The job that a firing queues; refused where its options cannot be meant (any more)."""
    said = read_options(schedule.options)
    plan = make_plan(said, default_queue=default_queue, owner=schedule.owner)
    return NewJob(plan._replace(env=env), schedule.task, schedule.args_json, schedule.command_json)


class Step(NamedTuple):
    """One thing to do with a time that has come: queue its job, or note that it is left out."""

    how: How  # FIRED, CAUGHT_UP or MISSED
    nominal: int
    missed: int = 0
    ran: int = 0


class Decision(NamedTuple):
    """What a clock does with a schedule that is due."""

    steps: tuple[Step, ...]
    next_at: int | None
    due_at: int | None


def decide(schedule: Schedule, now: int, *, late: int, catch_up: int) -> Decision:
    """`late` is how late a firing may be and its time is not missed; `catch_up` is how many missed
    times `all` makes up for."""
    assert schedule.next_ms is not None
    trigger = schedule.trigger
    # What its share of jitter holds back is not late.
    now -= (schedule.due_ms or schedule.next_ms) - schedule.next_ms
    passed = trigger.passed(schedule.next_ms, now, catch_up + 1)
    steps: tuple[Step, ...] = ()
    if passed.latest:  # not so when the rules of its zone were changed meanwhile
        on_time = now - passed.latest[-1] <= late
        steps = _steps(schedule.missed, passed, catch_up, on_time=on_time)
    next_at = trigger.next_after(now)
    return Decision(steps, next_at, due_at(next_at, schedule.jitter_ms))


def _steps(policy: str, passed: Passed, catch_up: int, *, on_time: bool) -> tuple[Step, ...]:
    missed = passed.number - (on_time and passed.number < MOST_COUNTED)
    *_, latest = passed.latest
    if not missed:
        return (Step(How.FIRED, latest),)
    if policy == "once":
        return (Step(How.CAUGHT_UP, latest, missed, 1),)
    late = passed.latest[:-1] if on_time else passed.latest
    made_up = late[-catch_up:] if policy == "all" else ()
    steps = [Step(How.CAUGHT_UP, one, missed, len(made_up)) for one in made_up]
    if policy == "skip":
        steps.append(Step(How.MISSED, late[-1], missed))
    return (*steps, Step(How.FIRED, latest)) if on_time else tuple(steps)


def due_at(nominal: int | None, jitter_ms: int) -> int | None:
    """When a clock fires for a nominal time."""
    return None if nominal is None else nominal + (randint(0, jitter_ms) if jitter_ms else 0)


def check_fires(definition: Definition, now: int) -> int:
    """The first time to come; refuses a schedule that never fires."""
    trigger = definition.trigger
    first = trigger.next_after(now)
    if first is None:
        raise InvalidInput(_why_never(trigger, now))
    if definition.jitter_ms:
        _check_jitter(trigger, first, definition.jitter_ms)
    return first


def _check_jitter(trigger: Trigger, first: int, jitter_ms: int) -> None:
    """Held back for so long, a time would meet the one after it."""
    coming = islice(trigger.after(first - 1), 50)
    gap = min((later - sooner for sooner, later in pairwise(coming)), default=None)
    if gap is not None and jitter_ms >= gap:
        raise InvalidInput(
            f"The jitter {format_duration(jitter_ms)} is as long as the time between two firings "
            f"({format_duration(gap)}): give a shorter one."
        )


def _why_never(trigger: Trigger, now: int) -> str:
    start, end = iso(trigger.start), iso(trigger.end)
    if trigger.at is not None and trigger.at <= now:
        return f"The time {iso(trigger.at)} is past: give one to come."
    if trigger.end is not None and trigger.end <= now:
        return f"The schedule would never fire: its end {end} is past; give a later one."
    if trigger.start is not None and trigger.end is not None and trigger.start > trigger.end:
        return f"The schedule would never fire: it starts at {start}, after its end {end}."
    return (
        f"The schedule would never fire: none of its times lies between {start or 'now'} and "
        f"{end or 'its end'}; give others."
    )
