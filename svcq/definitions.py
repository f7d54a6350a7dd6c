"""From what a caller says of a schedule to what the store keeps: checked, as if it fired now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from svcq.adder import encode_command, with_directory
from svcq.config import Config
from svcq.cron import find_zone, parse_cron
from svcq.errors import InvalidInput, shown
from svcq.policy import (
    OPTION_NAMES,
    NewJob,
    Options,
    Plan,
    check_choice,
    check_name,
    clean_text,
    encode_json,
    make_plan,
    read_options,
)
from svcq.schedules import MISSED, OVERLAP, Definition, Schedule
from svcq.times import DAY, SECOND, Duration, Moment, moment, parse_duration, parse_moment
from svcq.triggers import Trigger

SHORTEST = SECOND
LONGEST = 3650 * DAY

_TIMES = ("cron", "every", "at")
_SPAN = (*_TIMES, "tz", "start", "end")
_WORDS = (*_SPAN, "jitter", "missed", "overlap")
_WHAT = ("command", "task", "args", "kwargs")
# What speaks of one job, and not of each that a schedule queues.
_NOT_FOR_MANY = {
    "run_at": "its times say when; give cron, every or at",
    "after": "that job ends once, and the schedule goes on",
    "after_any": "that job ends once, and the schedule goes on",
    "if_parent_fails": "its jobs come after no other",
}


class ScheduledTask(Protocol):
    """A task, with its options: how a call of it becomes a job."""

    @property
    def said(self) -> Options: ...

    def plan(self, default_queue: str, owner: str | None) -> Plan: ...

    def new_job(
        self, plan: Plan, limit: int, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> NewJob: ...


class Template(NamedTuple):
    """What each firing queues: as a job, for what was checked, and as words, to be kept."""

    new: NewJob
    said: Options


class Definer(NamedTuple):
    config: Config
    owner: str | None
    sees_directories: bool = True

    def define(self, name: str, words: Mapping[str, Any], template: Template) -> Definition:
        """`words` are those of the schedule itself: its times, jitter, missed and overlap."""
        trigger = make_trigger(**{word: words.get(word) for word in _SPAN})
        missed = check_choice(words.get("missed") or "once", "choice for missed times", MISSED)
        overlap = words.get("overlap") or ("queue" if missed == "all" else "skip")
        overlap = check_choice(overlap, "choice for overlaps", OVERLAP)
        new, said = template
        if missed == "all" and overlap != "queue":
            raise InvalidInput(
                f"missed is all, which queues a job for each time, and overlap is {overlap}, which "
                "would leave one of them: give overlap queue, or missed once."
            )
        if said.name is not None and overlap != "skip":
            raise InvalidInput(
                f"Every job of the schedule would have the name {said.name!r}, which one "
                "unfinished job alone can have: leave it out, or give overlap skip."
            )
        jitter = words.get("jitter")
        kept = {key: _plain(value) for key, value in said.said().items() if key != "env"}
        return Definition(
            check_name(name, "schedule"), trigger,
            jitter_ms=0 if jitter is None else parse_duration(jitter, "jitter"),
            missed=missed, overlap=overlap, task=new.task, command=new.command, args=new.args,
            options=encode_json(kept, "options of the schedule", self.config.jobs.max_payload),
            env=new.plan.env, owner=new.plan.owner,
        )  # fmt: skip

    def redefine(
        self, old: Schedule, env: str | None, changes: Mapping[str, Any], more: Mapping[str, Any]
    ) -> Definition:
        """The same schedule with some words changed, and `more` options; None takes one away."""
        words = {word: changes[word] for word in _WORDS if word in changes}
        what = {word: changes[word] for word in _WHAT if word in changes}
        options = {k: v for k, v in changes.items() if k not in words and k not in what} | {**more}
        read_options(options)  # says so when there is no such option
        template = self._changed(old, env, what, options)
        return self.define(old.name, {**_words_of(old, words), **words}, template)

    def template(
        self, what: Any, task: str | None, args: Sequence[Any], kwargs: Mapping[str, Any],
        said: Options,
    ) -> Template:  # fmt: skip
        """`what` is a command or a task; `task` the name of one that is not imported here."""
        if (what is None) == (task is None):
            raise InvalidInput("Give what the schedule runs: a command, a task, or a task's name.")
        if (
            isinstance(args, str)
            or not isinstance(args, Sequence)
            or not isinstance(kwargs, Mapping)
        ):
            raise InvalidInput(
                f"The arguments {shown(args)} and {shown(kwargs)} are not a list and a mapping: "
                "give args as a list, and kwargs by their names."
            )
        limit = self.config.jobs.max_payload
        if task is not None:
            text = encode_json((args, kwargs), f"arguments of {shown(task)}", limit)
            return Template(NewJob(self._checked(said), clean_text(task, "task name"), text), said)
        if hasattr(what, "said"):
            said = said.over(what.said)
            return Template(what.new_job(self._checked(said), limit, args, kwargs), said)
        if callable(what):
            raise InvalidInput(f"{shown(what)} is not a task: put @svcq.task above its definition.")
        if args or kwargs:
            raise InvalidInput("args and kwargs are for tasks: put a command's words into it.")
        said = with_directory(said, look=self.sees_directories)
        return Template(NewJob(self._checked(said), command=encode_command(what, limit)), said)

    def _changed(
        self, old: Schedule, env: str | None, what: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Template:
        merged = {**old.options, **options}
        # A newer program may have written options this one does not know.
        said = Options(**{key: value for key, value in merged.items() if key in OPTION_NAMES})
        args, kwargs = what.get("args") or (), what.get("kwargs") or {}
        task = what.get("task")
        if what.get("command") is not None or task is not None:
            by_name = isinstance(task, str)
            run = what.get("command") if task is None or by_name else task
            new, said = self.template(run, task if by_name else None, args, kwargs, said)
        elif old.task:
            old_args, old_kwargs = old.call
            new, said = self.template(
                None, old.task, what.get("args", old_args), what.get("kwargs", old_kwargs), said
            )
        else:
            if args or kwargs:
                raise InvalidInput("args and kwargs are for tasks, and the schedule has a command.")
            # Its directory may be away for now: looked for only when it is what changes.
            if options.get("cwd") is not None:
                said = with_directory(said, look=self.sees_directories)
            new = NewJob(self._checked(said), command=old.command_json)
        if "env" not in options:
            new = new._replace(plan=new.plan._replace(env=env))
        return Template(new, said)

    def _checked(self, said: Options) -> Plan:
        for key, why in _NOT_FOR_MANY.items():
            if getattr(said, key) is not None:
                raise InvalidInput(
                    f"A schedule cannot have {key} {shown(getattr(said, key))}: {why}."
                )
        return make_plan(said, default_queue=self.config.queue, owner=self.owner)


def make_trigger(
    *,
    cron: str | None = None,
    every: Duration | None = None,
    at: Moment | None = None,
    tz: str | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
) -> Trigger:
    """When a schedule fires, checked; what is to come of it depends on the present."""
    given = [word for word, said in zip(_TIMES, (cron, every, at), strict=True) if said is not None]
    if len(given) != 1:
        named = f"{' and '.join(given)} are given" if given else "No time is given"
        raise InvalidInput(f"{named}: give one of cron, every and at.")
    if tz is not None:
        find_zone(tz)
    trigger = Trigger(
        start=None if start is None else _moment(start, "start", tz),
        end=None if end is None else _moment(end, "end", tz),
    )
    if cron is not None:
        checked = parse_cron(cron, tz or local_zone())
        return trigger._replace(cron=checked.text, zone=checked.zone.key)
    if every is not None:
        return trigger._replace(every=_interval(every))
    assert at is not None
    return trigger._replace(at=_moment(at, "time", tz))


def local_zone() -> str:
    """The IANA name of this machine's zone, as this program first found it."""
    from tzlocal import get_localzone_name

    try:
        return find_zone(get_localzone_name()).key
    except (InvalidInput, LookupError, ValueError, OSError):
        raise InvalidInput(
            "The time zone of this machine has no name that is known: give one, "
            "such as Europe/Paris, as tz."
        ) from None


def _interval(every: Duration) -> int:
    ms = parse_duration(every, "interval")
    if not SHORTEST <= ms <= LONGEST:
        raise InvalidInput(
            f"The interval {shown(every)} is out of range: give one second to ten years."
        )
    return ms


def _moment(value: Moment, what: str, tz: str | None) -> int:
    """A time that names no zone is in the schedule's."""
    if tz is not None:
        found: Moment = value
        with suppress(ValueError):
            found = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(found, datetime) and found.tzinfo is None:
            value = found.replace(tzinfo=find_zone(tz))
    return parse_moment(value, what)


def _words_of(old: Schedule, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of a schedule, as far as the changes leave it."""
    words: dict[str, Any] = {
        "start": _said_moment(old.start_ms),
        "end": _said_moment(old.end_ms),
        "jitter": old.jitter_ms / SECOND,
        "missed": old.missed,
        "overlap": old.overlap,
        "tz": old.zone,
    }
    if not any(changes.get(word) is not None for word in _TIMES):
        words["cron"] = old.cron
        words["every"] = None if old.every_ms is None else old.every_ms / SECOND
        words["at"] = _said_moment(old.at_ms)
    if changes.get("missed") == "all":
        del words["overlap"]  # its default follows
    return words


def _said_moment(ms: int | None) -> datetime | None:
    return None if ms is None else moment(ms)


def _plain(value: Any) -> Any:
    """An option as JSON has it: durations in seconds."""
    return value / timedelta(seconds=1) if isinstance(value, timedelta) else value
