"""`svcq schedule list`, `show`, `next` and `history`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from svcq.cli.parser import Namespace, Parser, add_json, whole
from svcq.cli.schedule_say import add_times, times_said
from svcq.cli.text import (
    Column,
    ago,
    clean,
    command_line,
    local,
    plural,
    print_facts,
    print_json,
    print_table,
)
from svcq.errors import InvalidInput, NotFound, SvcqError
from svcq.times import format_duration

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.handoff import Trouble
    from svcq.jobs import Job
    from svcq.schedules import Schedule

_NEXT = """
Without a schedule and without times: what fires next of all there are.

  svcq schedule next nightly
  svcq schedule next --cron "30 2 * * *" --tz Europe/Paris --from 2027-03-27 -n 3
"""


def add_commands(command: Callable[[str, str, Callable[[Namespace], int | None]], Parser]) -> None:
    lists = command("list", "list schedules: who fires each, when next, how it went", _list)
    lists.add_argument("--paused", action="store_true", help="only those that are paused")
    lists.add_argument("--task", metavar="NAME", help="only those of this task")
    lists.add_argument("--by", metavar="WHO", help="only those that this one fires: svcq, systemd")
    lists.add_argument(
        "--grep", metavar="TEXT", help="only with this text in name, command or task"
    )
    lists.add_argument(
        "--limit", metavar="N", type=_number, default=1000, help="at most so many (1000)"
    )
    add_json(lists)
    show = command("show", "show a schedule", _show)
    show.add_argument("schedule", metavar="SCHEDULE", help="its name")
    add_json(show)
    upcoming = command("next", "show the times to come, across a change of the clocks", _next)
    upcoming.description = f"{upcoming.description}\n{_NEXT}"
    upcoming.add_argument("schedule", nargs="?", metavar="SCHEDULE", help="its name")
    upcoming.add_argument("-n", metavar="N", type=_number, default=10, help="how many (10)")
    upcoming.add_argument("--from", metavar="TIME", dest="begin", help="those after this (now)")
    add_times(upcoming)
    add_json(upcoming)
    history = command("history", "show what became of the times of a schedule, or of all", _history)
    history.add_argument("schedule", nargs="?", metavar="SCHEDULE", help="its name")
    history.add_argument(
        "--limit", metavar="N", type=_number, default=50, help="at most so many (50)"
    )
    add_json(history)


def _number(text: str) -> int:
    return whole(text, "number")


# List and show


_COLUMNS = [
    Column("schedule", least=8),
    Column("state", least=6),
    Column("times", least=10),
    Column("next", dispensable=1),
    Column("by", dispensable=3),
    Column("last", least=8, dispensable=2),
    Column("runs", least=10, dispensable=4),
]


def _list(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        found = client.schedules(
            paused=True if options.paused else None, task=options.task, fired_by=options.by,
            limit=options.limit,
        )  # fmt: skip
        if options.grep is not None:
            wanted = options.grep.casefold()
            found = [one for one in found if wanted in f"{one.name} {_runs(one)}".casefold()]
        last = _last_jobs(client, found)
        troubles = _troubles(client, found, system=options.system)
    if options.json:
        print_json([_json(one, last, troubles) for one in found])
        return
    if not found:
        print('No schedule: svcq schedule add NAME --cron "0 3 * * *" -- COMMAND makes one.')
        return
    print_table(_COLUMNS, [_row(one, last, troubles) for one in found])
    for name, trouble in troubles.items():
        print(clean(f"svcq: {name}: {trouble.says}: {trouble.remedy}."), file=sys.stderr)


def _row(one: Schedule, last: dict[int, Job | None], troubles: dict[str, Trouble]) -> list[object]:
    by = f"{one.fired_by} (!)" if one.name in troubles else one.fired_by
    return [one.name, _state(one), one.times, local(one.next_at), by, _went(one, last), _runs(one)]


def _state(one: Schedule) -> str:
    return "paused" if one.paused else "over" if one.over else "active"


def _went(one: Schedule, last: dict[int, Job | None]) -> str:
    """How its last job ended, or what became of its last time if that had none."""
    from svcq.schedules import How

    if one.last_how in (How.SKIPPED, How.MISSED, How.FAILED):
        return one.last_how
    if one.last_job is None:
        return ""
    job = last.get(one.last_job)
    code = f" ({job.exit_code})" if job is not None and job.exit_code else ""
    return f"{job.state if job is not None else 'gone'}{code}, job {one.last_job}"


def _runs(one: Schedule) -> str:
    return one.task if one.command is None else command_line(one.command)


def _last_jobs(client: Client, found: Iterable[Schedule]) -> dict[int, Job | None]:
    jobs: dict[int, Job | None] = {}
    for one in found:
        if one.last_job is not None:
            try:
                jobs[one.last_job] = client.get(one.last_job)
            except NotFound:  # past its retention
                jobs[one.last_job] = None
    return jobs


def _troubles(client: Client, found: Iterable[Schedule], *, system: bool) -> dict[str, Trouble]:
    """Of those that were handed over; none where their scheduler cannot be asked."""
    from svcq.handoff import SCHEDULER, Trouble, find_troubles

    handed = [one for one in found if one.fired_by == SCHEDULER]
    if not handed:
        return {}
    try:
        return find_troubles(handed, client.config, system=system)
    except SvcqError as error:
        says = str(error).rstrip(".")
        return {one.name: Trouble(f"whether it fires is unknown ({says})", "svcq doctor")
                for one in handed}  # fmt: skip


def _json(
    one: Schedule, last: dict[int, Job | None], troubles: dict[str, Trouble]
) -> dict[str, Any]:
    job = None if one.last_job is None else last.get(one.last_job)
    trouble = troubles.get(one.name)
    return {
        **one.as_json(),
        "last_state": None if job is None else job.state,
        "last_exit_code": None if job is None else job.exit_code,
        "trouble": None if trouble is None else f"{trouble.says}: {trouble.remedy}",
    }


def _show(options: Namespace) -> None:
    from svcq.client import Client
    from svcq.environment import masked

    with Client() as client:
        one = client.get_schedule(options.schedule)
        last = _last_jobs(client, [one])
        troubles = _troubles(client, [one], system=options.system)
        env = client.schedule_environment(one.name)
        coming = [] if one.paused else client.next_runs(one, 3)
    if options.json:
        print_json({**_json(one, last, troubles), "env": None if env is None else masked(env)})
        return
    trouble = troubles.get(one.name)
    args, kwargs = one.call
    print_facts(
        [
            ("schedule", one.name),
            ("state", _state(one)),
            ("times", one.times),
            ("start", local(None if one.start_ms is None else _at(one.start_ms))),
            ("end", local(None if one.end_ms is None else _at(one.end_ms))),
            ("jitter", format_duration(one.jitter_ms) if one.jitter_ms else ""),
            ("missed", one.missed),
            ("overlap", one.overlap),
            ("fired by", one.fired_by),
            ("but", f"{trouble.says}: {trouble.remedy}" if trouble else ""),
            ("task" if one.task else "command", _runs(one)),
            ("args", args or ""),
            ("kwargs", kwargs or ""),
            ("options", ", ".join(f"{name}={value}" for name, value in one.options.items())),
            ("environment", "\n".join(f"{k}={v}" for k, v in masked(env or {}).items())),
            ("last", _went(one, last)),
            ("next", "\n".join(map(_shown, coming))),
            ("", one.explain()),
        ]
    )


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


# Next


def _next(options: Namespace) -> None:
    from svcq.client import Client
    from svcq.cron import find_zone
    from svcq.when import parse_time

    times = times_said(options)
    if options.schedule is not None and times:
        raise InvalidInput("Both a schedule and times are given: give one of them.")
    if times.keys() == {"tz"}:
        raise InvalidInput("A zone is given and no times: add --cron, --every or --at.")
    zone = None if options.tz is None else find_zone(options.tz)
    begin = None if options.begin is None else parse_time(options.begin, zone=zone, past=True)
    with Client() as client:
        if options.schedule is None and not times:
            _print_coming(client, options, begin or datetime.now(UTC))
            return
        coming = client.next_runs(options.schedule, options.n, after=begin, **times)
        if "every" in times or "at" in times or not _has_zone(client, options):
            coming = [at.astimezone(zone) for at in coming]
    if options.json:
        print_json([at.isoformat() for at in coming])
        return
    for line in _told(coming):
        print(line)
    if len(coming) < options.n:
        print("None after that." if coming else "None.")


def _has_zone(client: Client, options: Namespace) -> bool:
    return options.schedule is None or client.get_schedule(options.schedule).zone is not None


def _told(coming: list[datetime]) -> Iterator[str]:
    """A line each, and one between those that a change of the clocks lies between."""
    before: datetime | None = None
    for at in coming:
        if before is not None and before.utcoffset() != at.utcoffset():
            yield f"-- {_change(before, at)} --"
        yield _shown(at)
        before = at


def _change(before: datetime, after: datetime) -> str:
    old, new = before.utcoffset() or timedelta(), after.utcoffset() or timedelta()
    way = "forward" if new > old else "back"
    by = format_duration(round(abs(new - old).total_seconds()) * 1000)
    # In UTC: between two times of one zone, Python counts what the clocks on the wall show.
    low, high = before.astimezone(UTC), after.astimezone(UTC)
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(before.tzinfo).utcoffset() == old:
            low = middle
        else:
            high = middle
    when = high.replace(microsecond=0).astimezone(before.tzinfo)
    return f"clocks go {way} by {by}, to {when:%H:%M} {when:%Z} on {when:%a %Y-%m-%d}"


def _shown(at: datetime) -> str:
    return f"{at:%a %Y-%m-%d %H:%M:%S %Z}  {ago(at, datetime.now(UTC))}"


def _print_coming(client: Client, options: Namespace, begin: datetime) -> None:
    """The next firings of all schedules."""
    import heapq
    from itertools import islice

    ms = round(begin.timestamp() * 1000)
    active = [one for one in client.schedules(limit=1_000_000) if not one.paused]
    # Only those can be among the first whose own first time is.
    firsts = [(first, one) for one in active if (first := one.trigger.next_after(ms)) is not None]
    soonest = heapq.nsmallest(options.n, firsts, key=lambda pair: pair[0])
    merged = heapq.merge(*(_named_times(one, ms) for _, one in soonest))
    coming = list(islice(merged, options.n))
    if options.json:
        print_json([{"schedule": name, "at": _at(at).isoformat()} for at, name in coming])
        return
    if not coming:
        print("No schedule fires.")
        return
    print_table(
        [Column("schedule", least=8), Column("at"), Column("in")],
        [[name, local(_at(at)), ago(_at(at), datetime.now(UTC))] for at, name in coming],
    )


def _named_times(one: Schedule, ms: int) -> Iterator[tuple[int, str]]:
    for at in one.trigger.after(ms):
        yield at, one.name


# History


def _history(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        found = client.firings(options.schedule, options.limit)
    if options.json:
        print_json([one.as_json() for one in found])
        return
    if not found:
        print("Nothing has become of any time yet.")
        return
    print_table(
        [Column("schedule", least=8), Column("at"), Column("for"), Column("what", least=20)],
        [[one.schedule, local(one.at), local(one.nominal) or "asked", one.says] for one in found],
    )
    if len(found) == options.limit:
        print(f"The last {plural(len(found), 'firing')}: --limit shows more.")
