"""`svcq schedule export`: schedules as a crontab."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser
from svcq.cli.text import command_line, plural

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.crontab import Entry, Unsaid
    from svcq.schedules import Schedule

_EXPORT = """
What a crontab cannot say (--every, tasks, a start or an end) stands there as a comment.
"""
# What every imported schedule has, and no crontab need tell.
_PLAIN_OPTIONS = {"cwd": None, "max_attempts": 1}


def add_commands(command: Callable[[str, str, Callable[[Namespace], int | None]], Parser]) -> None:
    exports = command("export", "write schedules as a crontab", _export)
    exports.description = f"{exports.description}\n{_EXPORT}"
    exports.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="a new file; standard output without"
    )
    exports.add_argument(
        "--with-environments", action="store_true", help="with variables that look like secrets"
    )


def _export(options: Namespace) -> None:
    from svcq.cli.transfer import write_whole
    from svcq.client import Client
    from svcq.crontab import Entry, write_crontab

    with Client() as client:
        found = [
            _as_entry(client, one, secrets=options.with_environments)
            for one in client.schedules(limit=1_000_000)
        ]
    entries = [one for one in found if isinstance(one, Entry)]
    text = write_crontab(entries, [one for one in found if not isinstance(one, Entry)])
    if options.file == "-":
        print(text, end="")
        return
    write_whole(Path(options.file), iter(text.splitlines()))
    print(f"Wrote {plural(len(entries), 'line')} of a crontab to {options.file}.")


def _as_entry(client: Client, one: Schedule, *, secrets: bool) -> Entry | Unsaid:
    from svcq.crontab import Entry, Unsaid
    from svcq.definitions import local_zone

    what = f"{one.times}: {one.task if one.command is None else command_line(one.command)}"
    why_not = _why_not(one)
    if why_not is not None or one.cron is None or one.command is None:
        return Unsaid(one.name, what, why_not or "")
    env, left_out = _environment(client, one, secrets=secrets)
    command, stdin, shell = _command(one.command, env)
    directory = one.options.get("cwd")
    return Entry(
        one.cron, command, stdin, {**env, "SHELL": shell},
        zone=None if one.zone == local_zone() else one.zone,
        delay=one.jitter_ms // 60_000,
        directory=None if directory == env.get("HOME", os.path.expanduser("~")) else directory,
        name=one.name, note=_note(one, left_out),
    )  # fmt: skip


def _why_not(one: Schedule) -> str | None:
    if one.command is None:
        return "It runs a task of Python."
    if one.cron is None:
        return "Its times are no pattern of minutes, hours and days."
    if one.paused:
        return "It is paused."
    if one.start_ms is not None or one.end_ms is not None:
        return "It has a start or an end."
    if one.jitter_ms % 60_000:
        return "Its jitter is no whole number of minutes."
    return None


def _environment(
    client: Client, one: Schedule, *, secrets: bool
) -> tuple[dict[str, str], list[str]]:
    """Its variables, and the names of those that are left out."""
    from svcq.environment import looks_secret

    env = client.schedule_environment(one.name) or {}
    hidden = [] if secrets else [name for name, value in env.items() if looks_secret(name, value)]
    return {name: value for name, value in env.items() if name not in hidden}, sorted(hidden)


def _command(command: list[str] | str, env: Mapping[str, str]) -> tuple[str, str | None, str]:
    """The command, what it reads, and the shell that cron is to run it with."""
    from svcq.crontab import without_input

    if isinstance(command, str):
        given = without_input(command)
        return (command, None, "/bin/sh") if given is None else (
            given.command, given.stdin, given.shell)  # fmt: skip
    match command:
        case [shell, "-c", line] if shell == env.get("SHELL"):
            return line, None, shell
    return shlex.join(command), None, "/bin/sh"


def _note(one: Schedule, left_out: list[str]) -> str | None:
    """What cron will not do for it."""
    options = {
        name: value for name, value in one.options.items()
        if name not in _PLAIN_OPTIONS or _PLAIN_OPTIONS[name] not in (None, value)
    }  # fmt: skip
    without = [f"{name}={value}" for name, value in options.items()]
    without += [f"{name} (--with-environments writes it)" for name in left_out]
    return f"Without {', '.join(without)}." if without else None
