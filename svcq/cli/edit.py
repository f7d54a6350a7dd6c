"""`svcq edit`: change a job that waits, by flags or in an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svcq.cli.add import set_command_aside
from svcq.cli.command import read_command
from svcq.cli.options import FLAGS, add_options, said_options
from svcq.cli.parser import Namespace, Parser, add_json, answer
from svcq.cli.text import print_json, sentence
from svcq.errors import InvalidInput, Refused, SvcqError, WrongState
from svcq.jobs import WAITING, Job

if TYPE_CHECKING:
    from svcq.client import Client

_ABOUT = """
With options, or a new command after --, it changes what they say. Without any it opens the job in
$VISUAL or $EDITOR; what is wrong there is said and, in a terminal, offered again.

  svcq edit 12 --priority 5 --in 2h
  svcq edit 12 -- ffmpeg -i b.mov b.mp4
  svcq edit 12
"""
_HEAD = """\
# Job {id}, which is {state}. Save and leave to change it; leave it as it is to change nothing.
# What you remove stays as it was. Times: run_at = "tomorrow 03:00", delay = "90m".
# svcq add --help lists the options; here they have _ for - and the names of svcq.Options.
"""


def _edit_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.usage = "svcq edit JOB [OPTIONS] [-- COMMAND...]"
    parser.add_argument("job", metavar="JOB", help="an id or a name")
    parser.add_argument("--cwd", metavar="DIR", help="the directory a command runs in")
    parser.add_argument("--shell", action="store_true", help="the words are a line for the shell")
    parser.add_argument("--no-shell", action="store_true", help="the word is a program")
    add_json(parser)
    add_options(parser)
    parser.set_defaults(run=_edit, after_dashes=None)
    parser.prepare = lambda arguments: set_command_aside(parser, arguments)


def _edit(options: Namespace) -> int:
    from svcq.client import Client

    with Client() as client:
        said = said_options(options, client)
        if options.cwd is not None:
            said["cwd"] = _directory(options.cwd)
        if options.after_dashes is not None:
            said["command"] = read_command(
                options.after_dashes, shell=options.shell, no_shell=options.no_shell
            )
        if said:
            job = client.edit(options.job, **said)
        else:
            edited = _edit_by_hand(client, client.get(options.job))
            if edited is None:
                print("Nothing was changed.")
                return 1
            job = edited
    print_json(job.as_json()) if options.json else print(f"Job {job.id} is {job.state}.")
    return 0


def _directory(name: str) -> str:
    path = os.path.abspath(name)
    if not os.path.isdir(path):
        raise InvalidInput(f"There is no directory {path!r}: name one that exists.")
    return path


def _edit_by_hand(client: Client, job: Job) -> Job | None:
    """The job after the edit; None when nothing was changed."""
    import tempfile

    if job.state not in WAITING:
        raise WrongState(f"Job {job.id} is {job.state}: only a job that waits can be edited.")
    asks = sys.stdin.isatty()
    if not (asks or _editor()):
        raise InvalidInput(
            "There is no terminal for an editor: give options instead, or set EDITOR to a program "
            "that needs none."
        )
    before = _as_toml(job)
    with tempfile.TemporaryDirectory(prefix="svcq-") as folder:
        file = Path(folder) / f"job-{job.id}.toml"
        file.write_text(before, encoding="utf-8")
        while True:
            _open_editor(file)
            text = file.read_text(encoding="utf-8", errors="surrogateescape")
            if text == before:
                return None
            try:
                changes = _changes(text, before)
                return client.edit(job, **changes) if changes else None
            except WrongState:
                raise  # it has moved on: no edit will help
            except SvcqError as error:
                if not asks:
                    raise
                print(f"svcq: {sentence(error)}", file=sys.stderr)
            if answer("Edit it again? [Y/n] ") in ("n", "no", "q"):
                return None


def _editor() -> str | None:
    return os.environ.get("VISUAL") or os.environ.get("EDITOR")


def _open_editor(file: Path) -> None:
    editor = _editor() or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"The editor {editor!r} cannot be started ({getattr(error, 'strerror', error)}): "
            "set EDITOR to one that can."
        ) from None
    if code:
        raise Refused(f"The editor {editor!r} ended with {code}: nothing was changed.")


def _as_toml(job: Job) -> str:
    import tomlkit

    shown: dict[str, Any] = {}
    if job.task is None:
        shown["command"] = job.command
        shown["cwd"] = job.cwd
    shown |= {
        "queue": job.queue,
        "name": job.name,
        "priority": job.priority,
        "tags": list(job.tags),
        "run_at": None if job.run_at is None else job.run_at.astimezone().isoformat(),
        "host": job.host,
        "when": job.condition,
        "concurrency_key": job.concurrency_key,
        "unique_key": job.unique_key,
        **job.options,
    }
    said = {name: value for name, value in shown.items() if value is not None}
    return _HEAD.format(id=job.id, state=job.state) + "\n" + tomlkit.dumps(said)


def _changes(text: str, before: str) -> dict[str, Any]:
    """What differs from before, as Client.edit takes it."""
    import tomllib

    try:
        now = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"This is not TOML ({error}).") from None
    old = tomllib.loads(before)
    changed = {name: value for name, value in now.items() if old.get(name) != value}
    if isinstance(changed.get("run_at"), str):
        from svcq.when import parse_time

        changed["run_at"] = parse_time(changed["run_at"])
    if isinstance(changed.get("cwd"), str):
        changed["cwd"] = _directory(changed["cwd"])
    return {_OPTION_NAMES.get(name, name): value for name, value in changed.items()}


# The flags are what a person knows: their names are understood as well.
_OPTION_NAMES = {flag.flag.removeprefix("--").replace("-", "_"): flag.option for flag in FLAGS}

PARSERS = {"edit": _edit_parser}
