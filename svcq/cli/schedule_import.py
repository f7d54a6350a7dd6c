"""`svcq schedule import`: schedules of the lines of a crontab."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from svcq.cli.parser import Namespace, Parser, add_json, read_source
from svcq.cli.text import clean, command_line, plural, print_json
from svcq.errors import InvalidInput, NotFound, Refused, SvcqError

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.crontab import Crontab, Entry, Remark
    from svcq.schedules import Schedule

_IMPORT = """
Every line becomes a schedule that does what cron does with it: in the home directory, by the SHELL
and with the variables that stand above it, tried once, with nothing made up for that was missed.
What svcq does not do: it never runs two jobs of a schedule at once (the later one waits), and it
mails nothing (output is kept: svcq log; --notify tells when a job has ended).

Names come from the commands, so that a crontab can be imported again: what is the same stays
unchanged, and a line whose time was changed changes its schedule.
"""
# As cron has it where no line says otherwise.
_PATH = "/usr/bin:/bin"
_SYSTEM_CRONTABS = ("/etc/crontab", "/etc/cron.d/")
Done = Literal["added", "changed", "unchanged"]


def add_commands(command: Callable[[str, str, Callable[[Namespace], int | None]], Parser]) -> None:
    imports = command("import", "make schedules of the lines of a crontab", _import)
    imports.description = f"{imports.description}\n{_IMPORT}"
    imports.add_argument("file", nargs="?", metavar="FILE", help="a crontab; - is standard input")
    imports.add_argument("--user-crontab", action="store_true", help="yours, as crontab -l has it")
    imports.add_argument(
        "--system-crontab", action="store_true",
        help="its sixth column is a user; taken for granted in /etc",
    )  # fmt: skip
    imports.add_argument("--strict", action="store_true", help="nothing, if a line is wrong")
    imports.add_argument(
        "--paused", action="store_true", help="new ones not before they are resumed"
    )
    imports.add_argument("--queue", metavar="QUEUE", help="the queue of new ones")
    imports.add_argument("--notify", action="store_true", help="tell of each end that cron mails")
    add_json(imports)


class _Imported(NamedTuple):
    line: int
    schedule: str
    done: Done
    times: str


def _import(options: Namespace) -> int:
    from svcq.client import Client
    from svcq.crontab import derived_names

    read = _read(options)
    problems = list(read.problems)
    imported = []
    with Client() as client:
        named = list(zip(derived_names(read.entries), read.entries, strict=True))
        wanted = _checked(client, named, problems)
        if options.strict and problems:
            _print_remarks(problems)
            raise InvalidInput("Nothing was imported: correct these lines, or leave --strict out.")
        for name, entry, said in wanted:
            try:
                imported.append(_import_one(client, options, name, entry, said))
            except SvcqError as error:
                problems.append(_remark(entry.line, str(error)))
    _report(options, read, imported, problems)
    return 1 if problems else 0


def _read(options: Namespace) -> Crontab:
    from svcq.crontab import read_crontab

    if (options.file is None) != options.user_crontab:
        raise InvalidInput("Name the crontab: a FILE, - for standard input, or --user-crontab.")
    text = _users_crontab() if options.user_crontab else read_source(options.file)
    system = options.system_crontab
    if options.file not in (None, "-"):
        system = system or os.path.realpath(options.file).startswith(_SYSTEM_CRONTABS)
    return read_crontab(text, system=system)


def _users_crontab() -> str:
    import subprocess

    try:
        ran = subprocess.run(
            ["crontab", "-l"], capture_output=True, check=False, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise Refused(
            "There is no program crontab here to read yours with: give a FILE instead."
        ) from None
    if ran.returncode:
        said = " ".join(ran.stderr.decode(errors="replace").split())
        raise Refused(f"crontab -l does not show your crontab ({said or ran.returncode}).")
    try:
        return ran.stdout.decode()
    except UnicodeDecodeError:
        raise InvalidInput("Your crontab is not UTF-8: save it as UTF-8.") from None


_Wanted = tuple[str, "Entry", dict[str, Any]]


def _checked(
    client: Client, named: list[tuple[str, Entry]], problems: list[Remark]
) -> list[_Wanted]:
    """What each line would be; a sentence about each that cannot be."""
    from svcq.policy import check_name

    wanted = []
    for name, entry in named:
        try:
            check_name(name, "schedule")
            _check_user(entry)
            said = _said(entry)
            client.next_runs(n=1, cron=said["cron"], tz=said.get("tz"))
            client.new_command(said["command"], cwd=said["cwd"], env=said["env"])
            wanted.append((name, entry, said))
        except InvalidInput as error:
            problems.append(_remark(entry.line, str(error)))
    return wanted


def _check_user(entry: Entry) -> None:
    import getpass

    user = getpass.getuser()
    if entry.user not in (None, user):
        raise InvalidInput(
            f"It is for the user {entry.user}, and its jobs would run as {user}: "
            f"import it as {entry.user}."
        )


def _said(entry: Entry) -> dict[str, Any]:
    """A line as the client takes it."""
    from svcq.crontab import Input, shell_line

    env = {**_defaults(), **entry.variables}
    command: str | list[str] = entry.command
    if entry.stdin is not None:
        # A job reads nothing: what the line hands over becomes a part of its command.
        command = shell_line(Input(entry.shell, entry.command, entry.stdin))
    elif entry.shell != "/bin/sh":
        command = [entry.shell, "-c", entry.command]
    said = {
        "cron": entry.expression, "command": command, "env": env,
        "cwd": entry.directory or env["HOME"], "jitter": f"{entry.delay}m",
    }  # fmt: skip
    return said if entry.zone is None else {**said, "tz": entry.zone}


def _defaults() -> dict[str, str]:
    import getpass

    return {
        "SHELL": "/bin/sh", "PATH": _PATH, "HOME": os.path.expanduser("~"),
        "LOGNAME": getpass.getuser(),
    }  # fmt: skip


def _import_one(
    client: Client, options: Namespace, name: str, entry: Entry, said: dict[str, Any]
) -> _Imported:
    try:
        old = client.get_schedule(name)
    except NotFound:
        schedule = _add(client, options, name, entry, said)
        return _Imported(entry.line, name, "added", schedule.times)
    changes = _differences(client, old, said)
    if not changes:
        return _Imported(entry.line, name, "unchanged", old.times)
    schedule = client.edit_schedule(name, **changes)
    return _Imported(entry.line, name, "changed", schedule.times)


def _add(
    client: Client, options: Namespace, name: str, entry: Entry, said: dict[str, Any]
) -> Schedule:
    from svcq.policy import Options

    mailed = entry.variables.get("MAILTO") != ""
    job = Options(
        queue=options.queue, cwd=said["cwd"], env=said["env"], max_attempts=1,
        notify=True if options.notify and mailed else None,
    )  # fmt: skip
    return client.schedule(
        name, said["command"], cron=said["cron"], tz=said.get("tz"), jitter=said["jitter"],
        paused=options.paused, options=job, missed="skip", overlap="queue",
    )  # fmt: skip


def _differences(client: Client, old: Schedule, said: dict[str, Any]) -> dict[str, Any]:
    """What a line says otherwise than its schedule; what it is silent about stays as it is."""
    from svcq.definitions import make_trigger
    from svcq.times import parse_duration

    changes: dict[str, Any] = {}
    trigger = make_trigger(cron=said["cron"], tz=said.get("tz"))
    if (trigger.cron, trigger.zone) != (old.cron, old.zone):
        changes |= {"cron": said["cron"], "tz": trigger.zone}
    if parse_duration(said["jitter"]) != old.jitter_ms:
        changes["jitter"] = said["jitter"]
    if old.command is None or command_line(old.command) != command_line(said["command"]):
        changes["command"] = said["command"]
    if old.options.get("cwd") != said["cwd"]:
        changes["cwd"] = said["cwd"]
    if {**_defaults(), **(client.schedule_environment(old.name) or {})} != said["env"]:
        changes["env"] = said["env"]
    return changes


def _report(
    options: Namespace, read: Crontab, imported: list[_Imported], problems: list[Remark]
) -> None:
    _print_remarks(problems)
    if options.json:
        print_json([one._asdict() for one in imported])
        return
    for remark in read.remarks:
        print(clean(f"Line {remark.line}: {remark.says}"))
    for one in imported:
        print(clean(f"Line {one.line}: {one.schedule} {one.done}: {one.times}"))
    counts = Counter(one.done for one in imported)
    told = [f"{counts[done]} {done}" for done in ("added", "changed", "unchanged") if counts[done]]
    if problems:
        told.append(f"{plural(len(problems), 'line')} not used")
    print(f"{', '.join(told) or 'There is nothing to import'}.")
    mailed = {to for entry in read.entries if (to := entry.variables.get("MAILTO"))}
    if mailed and not options.notify:
        print(clean(f"Nothing is mailed to {', '.join(sorted(mailed))}: output is kept "
                    "(svcq log JOB), and --notify tells when a job has ended."))  # fmt: skip
    if counts["added"] and not options.paused and options.file != "-":
        print("cron goes on with these lines as well: take them out there.")


def _print_remarks(remarks: list[Remark]) -> None:
    for remark in sorted(remarks):
        print(clean(f"svcq: Line {remark.line}: {remark.says}"), file=sys.stderr)


def _remark(line: int, says: str) -> Remark:
    from svcq.crontab import Remark

    return Remark(line, says)
