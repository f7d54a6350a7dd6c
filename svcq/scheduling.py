"""Schedules, as callers say them: jobs that come again at times of their own.

client.schedule("nightly", ["backup", "--all"], cron="0 3 * * *", tz="Europe/Paris")
client.schedule("poll", fetch, args=["inbox"], every="15m", jitter="1m", missed="skip")
client.schedule("launch", "make release", at="2031-05-01T09:00+02:00")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from svcq.errors import InvalidInput, Refused
from svcq.later import Later
from svcq.policy import Options, check_bool, check_int, check_name, clean_text, read_options
from svcq.times import Duration, Moment, moment, parse_moment

if TYPE_CHECKING:
    from datetime import datetime

    from svcq import cron as crons
    from svcq import definitions
    from svcq.config import Config
    from svcq.definitions import ScheduledTask
    from svcq.jobs import Job
    from svcq.schedules import Firing, Schedule
    from svcq.store import Store

    Runnable: TypeAlias = Sequence[str] | str | ScheduledTask
    """A command (words, or a line for the shell), or a task."""
else:
    # Few of those who have a client have schedules, and zones take their time to import.
    crons = Later("svcq.cron")
    definitions = Later("svcq.definitions")


class Scheduling:
    """The verbs of schedules; a part of the client."""

    config: Config
    store: Store
    _owner: str | None
    _sees_directories: bool

    def schedule(
        self,
        name: str,
        what: Runnable | None = None,
        /,
        *,
        task: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        cron: str | None = None,
        every: Duration | None = None,
        at: Moment | None = None,
        tz: str | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        jitter: Duration | None = None,
        missed: str | None = None,
        overlap: str | None = None,
        paused: bool = False,
        replace: bool = False,
        options: Options | None = None,
        **more: Any,
    ) -> Schedule:
        """Queue a job again and again: by crontab(5), at an interval, or once at a moment.

        `what` is a command or a task; `task` names one that is not imported here. `tz` is the zone
        of `cron` and of times that name none: this machine's, unless given. Each firing waits up
        to `jitter` longer. `missed`, for times that pass while nobody could fire: "once" makes up
        for all of them with one job, "skip" leaves them out, "all" queues one for each.
        `overlap`, while the job before has not ended: "skip" leaves the time out, "queue" lets the
        new job wait for it, "replace" ends it first. The rest is what its jobs are told: see
        svcq.Options, which may also be given as a whole. With `paused`, it fires when it has been
        resumed. With `replace`, a schedule of that name is said anew.
        """
        words = {
            "cron": cron, "every": every, "at": at, "tz": tz, "start": start, "end": end,
            "jitter": jitter, "missed": missed, "overlap": overlap,
        }  # fmt: skip
        said = read_options(more).over(options or Options())
        definer = self._definer()
        template = definer.template(what, task, args, kwargs or {}, said)
        return self.store.timetable.add(
            definer.define(name, words, template), replace=replace, paused=paused
        )

    def edit_schedule(
        self, name: str, *, options: Mapping[str, Any] | None = None, **changes: Any
    ) -> Schedule:
        """Change what `schedule` says: times, `missed`, `overlap`, `jitter`, `command`, `task`,
        `args`, `kwargs`, or any option of its jobs, which may also stand in `options` (as `jitter`
        must, to be that of their retries). None takes an option away."""
        definer = self._definer()
        return self.store.timetable.change(
            _name(name), lambda old, env: definer.redefine(old, env, changes, options or {})
        )

    def remove_schedule(self, name: str) -> None:
        """Take a schedule away, with its history; the jobs it queued stay."""
        self.store.timetable.remove(_name(name))

    def pause_schedule(self, name: str) -> Schedule:
        """Fire no more until it is resumed; times that pass meanwhile do not count as missed."""
        return self.store.timetable.pause(_name(name))

    def resume_schedule(self, name: str) -> Schedule:
        return self.store.timetable.pause(_name(name), paused=False)

    def fire_schedule(self, name: str) -> Job:
        """Queue its job now, beside its times; Refused where `overlap` is skip and one is there."""
        fired = self.store.timetable.fire_now(_name(name))
        if fired.job is None:
            raise Refused(
                f"The schedule {name!r} was not fired, since {fired.note}: "
                "wait for that job, cancel it, or give the schedule another overlap."
            )
        return self.store.get(fired.job)

    def fire_if_due(self, name: str) -> list[Firing]:
        """Fire a schedule for which a time has come, as the clock would; what became of it, or
        nothing where none has. For another scheduler that was told its times."""
        return self.store.timetable.fire_if_due(_name(name))

    def hand_off(self, name: str, to: str) -> Schedule:
        """Note that another scheduler fires it from now on, by calling `fire_if_due`."""
        return self.store.timetable.hand(_name(name), check_name(to, "scheduler"))

    def take_back(self, name: str) -> Schedule:
        """Let the clock of svcq fire it again."""
        return self.store.timetable.hand(_name(name))

    # Looking

    def get_schedule(self, name: str) -> Schedule:
        return self.store.timetable.get(_name(name))

    def schedules(
        self,
        *,
        paused: bool | None = None,
        task: str | None = None,
        fired_by: str | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> list[Schedule]:
        """Schedules by name; `after` is the last name of the page before."""
        return self.store.timetable.list(
            after=after if after == "" else _name(after),
            limit=check_int(limit, "limit", 1, 1_000_000),
            paused=None if paused is None else check_bool(paused, "paused"),
            task=None if task is None else clean_text(task, "task"),
            fired_by=None if fired_by is None else check_name(fired_by, "scheduler"),
        )

    def schedule_environment(self, name: str) -> dict[str, str] | None:
        """The environment its commands get; it may hold secrets. None if it has none."""
        return self.store.timetable.environment(_name(name))

    def next_runs(
        self,
        schedule: str | Schedule | None = None,
        n: int = 5,
        *,
        after: Moment | None = None,
        **times: Any,
    ) -> list[datetime]:
        """The next times of a schedule, or of one that is yet to be: `next_runs(cron=..., tz=...)`.

        They are in the zone of a cron expression, so that a change of the clocks shows, and in UTC
        otherwise. Jitter is not in them.
        """
        now = self.store.engine.clock()
        if (schedule is None) == (not times):
            raise InvalidInput("Give a schedule, or the times of one: cron, every or at.")
        if schedule is None:
            trigger = definitions.make_trigger(**times)
            trigger = trigger._replace(anchor=now if trigger.start is None else trigger.start)
        elif isinstance(schedule, str):
            trigger = self.get_schedule(schedule).trigger
        else:
            trigger = schedule.trigger
        begin = now if after is None else parse_moment(after, "after")
        n = check_int(n, "number of times", 1, 10_000)
        zone = None if trigger.zone is None else crons.find_zone(trigger.zone)
        return [moment(one).astimezone(zone) if zone else moment(one)
                for one in islice(trigger.after(begin), n)]  # fmt: skip

    def firings(
        self, name: str | None = None, limit: int = 100, *, before: int | None = None
    ) -> list[Firing]:
        """What became of the times of a schedule, or of all of them, newest first.

        `before` is the number of the last one of the page before.
        """
        return self.store.timetable.firings(
            None if name is None else _name(name),
            check_int(limit, "limit", 1, 100_000),
            None if before is None else check_int(before, "number of a firing", 1, 1 << 62),
        )

    def firing_of(self, job: int) -> Firing | None:
        """Which schedule queued a job, and for which time; None for others."""
        return self.store.timetable.firing_of(check_int(job, "job id", 1, 1 << 62))

    def _definer(self) -> definitions.Definer:
        return definitions.Definer(self.config, self._owner, self._sees_directories)


def _name(name: object) -> str:
    return check_name(name, "schedule")
