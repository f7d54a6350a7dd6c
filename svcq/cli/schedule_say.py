"""`svcq schedule add`, `edit`, `remove`, `pause` and `resume`: what people say of schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from svcq.cli.add import (
    add_what,
    add_where,
    arguments_given,
    check_usage,
    environment_given,
    words_given,
)
from svcq.cli.command import read_command
from svcq.cli.options import OF_SCHEDULES, add_options, said_options
from svcq.cli.parser import Namespace, Parser, add_json, flat, words_of
from svcq.cli.schedule_hand import is_handed, opened, renewed
from svcq.cli.text import ago, clean, local, print_json
from svcq.environment import capture_lasting
from svcq.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from svcq.client import Client
    from svcq.schedules import Schedule

AddCommand = Callable[[str, str, Callable[[Namespace], int | None]], Parser]

_ADD = """
  svcq schedule add nightly --cron "0 3 * * *" --tz Europe/Paris -- backup --all
  svcq schedule add poll --every 15m --jitter 1m --task mail.fetch --args '["inbox"]'
  svcq schedule add launch --at "tomorrow 09:00" 'make release'

The command comes last, after --; it runs in the directory it was added from, with its PATH, HOME,
USER, LANG, TZ and VIRTUAL_ENV and what --env names. Its jobs can have what svcq add gives them.
--cron takes what crontab(5) does: minute, hour, day of month, month, day of week, or @daily and
its kin. A daily time fires once on the days when clocks change.
"""
_EDIT = """
  svcq schedule edit nightly --cron "30 2 * * *" --timeout 2h
  svcq schedule edit nightly --unset timeout --unset end
  svcq schedule edit nightly -- backup --all --verify
"""


def add_commands(command: AddCommand) -> None:
    add = command("add", "run a command or a task again and again", _add)
    add.description = f"{add.description}\n{_ADD}"
    add.usage = (
        "svcq schedule add NAME TIMES [OPTIONS] -- COMMAND...\n"
        "       svcq schedule add NAME TIMES [OPTIONS] --task TASK"
    )
    add.add_argument("schedule", metavar="NAME", help="what to call it")
    add_times(add)
    _add_manner(add)
    add.add_argument("--paused", action="store_true", help="not before it is resumed")
    _add_what(add)
    for name, about, run in (
        ("pause", "let schedules fire no more until they are resumed", _pause),
        ("resume", "let paused schedules fire again", _resume),
    ):
        parser = command(name, about, run)
        parser.add_argument("schedules", nargs="+", metavar="SCHEDULE", help="its name")


def add_commands_with_the_manager(command: AddCommand) -> None:
    edit = command("edit", "change a schedule", _edit)
    edit.description = f"{edit.description}\n{_EDIT}"
    edit.usage = "svcq schedule edit SCHEDULE [OPTIONS] [-- COMMAND...]"
    edit.add_argument("schedule", metavar="SCHEDULE", help="its name")
    add_times(edit)
    _add_manner(edit)
    edit.add_argument(
        "--unset", metavar="OPTION", action="append", type=words_of,
        help="take an option away, such as timeout; may be repeated",
    )  # fmt: skip
    _add_what(edit)
    remove = command("remove", "take schedules away; the jobs they queued stay", _remove)
    remove.add_argument("schedules", nargs="+", metavar="SCHEDULE", help="its name")


def add_times(parser: Parser) -> None:
    group = parser.add_argument_group("its times")
    group.add_argument("--cron", metavar="EXPRESSION", help='as crontab(5) has it: "0 3 * * 1-5"')
    group.add_argument("--every", metavar="TIME", help="at an interval, such as 15m")
    group.add_argument("--at", metavar="TIME", help="once: tomorrow 03:00, 2031-05-01 03:00")
    group.add_argument("--tz", metavar="ZONE", help="their zone, such as Europe/Paris (this one)")
    group.add_argument("--start", metavar="TIME", help="none before this")
    group.add_argument("--end", metavar="TIME", help="none after this")


def _add_manner(parser: Parser) -> None:
    group = parser.add_argument_group("how it fires")
    group.add_argument(
        "--jitter", metavar="TIME", dest="spread", help="up to so much later, at random"
    )
    group.add_argument(
        "--missed", choices=["once", "skip", "all"],
        help="times that passed while nobody could fire: one job for all of them (the default), "
        "none, or one for each",
    )  # fmt: skip
    group.add_argument(
        "--overlap", choices=["skip", "queue", "replace"],
        help="while its last job has not ended: leave the time out (the default), wait for it, "
        "or end it",
    )  # fmt: skip


def _add_what(parser: Parser) -> None:
    add_what(parser)
    add_json(parser)
    add_options(parser, OF_SCHEDULES)
    add_where(parser)
    parser.set_defaults(after_dashes=None, command=[])
    known = parser.unknown
    parser.unknown = lambda word: (  # type: ignore[method-assign]
        known(word) if word.startswith("-")
        else f"the word {word!r} is one too many, and a command comes after --"
    )  # fmt: skip


def times_said(options: Namespace) -> dict[str, Any]:
    """The times that are given, as the client takes them; words such as tomorrow in their zone."""
    said = {
        word: value for word in ("cron", "every", "tz")
        if (value := getattr(options, word)) is not None
    }  # fmt: skip
    for word in ("at", "start", "end"):
        value = getattr(options, word)
        if value is not None:
            said[word] = _moment(value, options.tz, past=word != "at")
    return said


def _moment(text: str, zone: str | None, *, past: bool) -> datetime:
    from svcq.cron import find_zone
    from svcq.when import parse_time

    return parse_time(text, zone=None if zone is None else find_zone(zone), past=past)


def _manner_said(options: Namespace) -> dict[str, Any]:
    said = {"jitter": options.spread, "missed": options.missed, "overlap": options.overlap}
    return {word: value for word, value in said.items() if value is not None}


def _add(options: Namespace) -> None:
    from svcq.client import Client
    from svcq.policy import Options

    check_usage(options)
    with Client() as client:
        said = said_options(options, client)
        words = {**times_said(options), **_manner_said(options), "paused": options.paused}
        if options.task is not None:
            args, kwargs = arguments_given(options)
            schedule = client.schedule(
                options.schedule, task=options.task, args=args, kwargs=kwargs,
                options=Options(**said), **words,
            )  # fmt: skip
        else:
            said["env"] = environment_given(options, capture_lasting)
            if options.cwd is not None:
                said["cwd"] = options.cwd
            schedule = client.schedule(
                options.schedule, _command(options), options=Options(**said), **words
            )
        _print(client, schedule, as_json=options.json)


def _command(options: Namespace) -> Any:
    return read_command(words_given(options), shell=options.shell, no_shell=options.no_shell)


def _print(client: Client, schedule: Schedule, *, as_json: bool) -> None:
    if as_json:
        print_json(schedule.as_json())
        return
    print(says_when(schedule))
    if schedule.next_ms is not None and not is_handed(schedule) and not _clocks(client):
        print("No clock runs here to fire it: svcq start, or svcq up, runs one.")


def _clocks(client: Client) -> int:
    return len(client.clock().clocks)


def says_when(schedule: Schedule) -> str:
    from datetime import UTC, datetime

    if schedule.paused:
        return f"{schedule.name} is paused: svcq schedule resume {schedule.name} lets it fire."
    if schedule.next_at is None:
        return f"{schedule.name} is over: none of its times is to come."
    when = ago(schedule.next_at, datetime.now(UTC))
    return f"{schedule.name} fires next at {local(schedule.next_at)}, {when}."


def _edit(options: Namespace) -> int:
    with opened(options) as client:
        changes = {**times_said(options), **_manner_said(options)}
        more = said_options(options, client)
        if options.cwd is not None:
            more["cwd"] = options.cwd
        if options.env or options.no_env:
            more["env"] = _changed_environment(options, client)
        changes |= _what_said(options)
        for word in flat(options.unset):
            _unset(word, changes, more)
        if not changes and not more:
            raise InvalidInput(
                "There is nothing to change: give options, or a new command after --."
            )
        schedule = client.edit_schedule(options.schedule, options=more, **changes)
    note = renewed(options, schedule)
    with opened(options) as client:
        schedule = client.get_schedule(schedule.name)
        _print(client, schedule, as_json=options.json)
    if note:
        print(clean(note))
    return 0


def _what_said(options: Namespace) -> dict[str, Any]:
    """A new command, task or arguments."""
    said: dict[str, Any] = {}
    words = words_given(options)
    if words and options.task is not None:
        raise InvalidInput(
            f"Both the task {options.task!r} and the command {words[0]!r} are given: give one."
        )
    if words:
        said["command"] = _command(options)
    if options.task is not None:
        said["task"] = options.task
    args, kwargs = arguments_given(options)
    if options.args is not None:
        said["args"] = args
    if options.kwargs is not None:
        said["kwargs"] = kwargs
    return said


def _changed_environment(options: Namespace, client: Client) -> dict[str, str]:
    kept = client.schedule_environment(options.schedule) or {}
    return environment_given(options, lambda: kept)


def _unset(word: str, changes: dict[str, Any], more: dict[str, Any]) -> None:
    name = word.removeprefix("--")
    if name in ("start", "end", "jitter"):
        changes[name] = None
        return
    flags = {flag.flag.removeprefix("--"): flag.option
             for group in OF_SCHEDULES.values() for flag in group}  # fmt: skip
    if name not in flags:
        from difflib import get_close_matches

        near = get_close_matches(name, [*flags, "start", "end", "jitter"], 1)
        hint = f"did you mean {near[0]}?" if near else "see svcq schedule edit --help."
        raise InvalidInput(f"There is no option {name!r} to take away: {hint}")
    more[flags[name]] = None


def _pause(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        for name in _all_there(client, options.schedules):
            print(says_when(client.pause_schedule(name)))


def _resume(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        for name in _all_there(client, options.schedules):
            print(says_when(client.resume_schedule(name)))


def _remove(options: Namespace) -> None:
    from svcq.cli.schedule_hand import forget

    with opened(options) as client:
        found = [client.get_schedule(name) for name in dict.fromkeys(options.schedules)]
    for schedule in found:
        if is_handed(schedule):
            forget(options, schedule.name)
        with opened(options) as client:
            client.remove_schedule(schedule.name)
        print(f"{schedule.name} is removed; the jobs it queued are still there.")


def _all_there(client: Client, names: list[str]) -> list[str]:
    """Each is looked up before any is changed."""
    return [client.get_schedule(name).name for name in dict.fromkeys(names)]
