"""The command line: each command parses, calls the client, prints.

`COMMANDS` is the whole list. Only the module of the command that runs is imported; `svcq --help`
imports none. A module has `PARSERS`: for each of its commands a function that adds the arguments
to a parser and says, with `set_defaults(run=...)`, which function runs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from svcq.errors import SvcqError, WaitTimeout
from svcq.host.console import prepare
from svcq.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from svcq.cli.parser import Parser

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Queueing": {
        "add": ("add", "queue a command or a task"),
        "enqueue": ("enqueue", "queue jobs given as JSON: one object, or a file of them"),
        "schedule": ("schedules", "jobs that come again: by cron, at an interval, or once"),
    },
    "Watching": {
        "list": ("look", "list jobs"),
        "show": ("look", "show a job with its runs"),
        "why": ("why", "say why a job is where it is"),
        "log": ("log", "print the output of a job, also while it is written"),
        "wait": ("wait", "wait until jobs have ended, and exit as the job did"),
        "status": ("status", "how many jobs are in each state, and who works on them"),
        "stats": ("numbers", "how long jobs wait and run, by queue"),
        "activity": ("numbers", "what happened, minute by minute"),
        "top": ("top", "a live screen of what runs, waits and ended"),
        "open": ("web", "open the page in your browser"),
        "tray": ("tray", "show svcq in the panel of your desktop"),
    },
    "Steering": {
        "cancel": ("steer", "stop jobs, running ones too"),
        "retry": ("steer", "run ended jobs again"),
        "edit": ("edit", "change a job that waits"),
        "hold": ("steer", "park jobs until they are released"),
        "release": ("steer", "let held jobs go"),
        "move": ("steer", "put a pending job first, or last, in its queue"),
        "when-done": ("when_done", "sleep, shut down or run a command when all is done"),
        "dlq": ("letters", "the dead letter queue: list, show, retry or purge what is dead"),
        "purge": ("tidy", "remove all jobs in a state for good"),
        "cleanup": ("tidy", "remove what is past its retention now"),
    },
    "Queues and settings": {
        "queue": ("queues", "list, show, set or delete queues"),
        "pause": ("queues", "start nothing more from a queue"),
        "resume": ("queues", "let a paused queue go on"),
        "config": ("settings", "read and change settings"),
        "notify": ("notify", "where ends are told beyond the desktop, through Apprise"),
    },
    "Workers": {
        "up": ("workers", "run workers here until Ctrl-C"),
        "worker": ("workers", "list, start, stop or run workers"),
        "project": ("projects", "whose Python functions workers run"),
    },
    "Service": {
        "install": ("service", "let svcq run as a service of your session"),
        "uninstall": ("service", "remove the service; jobs and settings stay"),
        "start": ("service", "start the service"),
        "stop": ("service", "stop the service; running jobs finish"),
        "restart": ("service", "start the service anew; running jobs go on"),
        "user": ("users", "who else may use the service: add, remove or list them"),
        "token": ("web", "the tokens by which programs reach the service"),
    },
    "The store": {
        "backup": ("transfer", "copy the store to a new file while it is in use"),
        "export": ("transfer", "write everything as lines of JSON"),
        "import": ("transfer", "add what an export wrote"),
        "migrate": ("migrate", "move the whole store to PostgreSQL, or to a file"),
        "upgrade-store": ("transfer", "bring the store up to date with this program"),
        "doctor": ("doctor", "look for what is wrong, and say what to do"),
        "completion": ("completion", "print the completion script of a shell"),
    },
}
# They work, but --help does not list them.
HIDDEN: dict[str, tuple[str, str]] = {
    "man": ("manual", "print the manual page"),
    "service": ("service", "run the service, as the service manager does"),
}

# They speak to the service manager, as root where it is the machine's.
_WITH_THE_MANAGER = ("install", "uninstall", "start", "stop", "restart", "schedule")

# They are all the client's: who does not own the store asks the service.
_ASKING = (
    "add", "enqueue", "list", "show", "why", "log", "wait", "status", "stats", "activity", "top",
    "open", "cancel", "retry", "edit", "hold", "release", "move", "dlq", "purge", "cleanup",
    "queue", "pause", "resume", "config", "worker", "tray",
)  # fmt: skip

PIPE_CLOSED = 128 + 13
# `svcq wait` exits as the job did, so what goes wrong with the wait itself has a code apart.
ERRORS_OF_WAIT = 125


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    _fill_closed_streams()
    try:
        return _run(arguments)
    except BrokenPipeError:
        return PIPE_CLOSED
    finally:
        _let_go()


def _run(arguments: Sequence[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        # A locale that lacks a character must not cost the line it stands in.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        prepare(stream)
    words = _as_text(arguments)
    system = words[:1] == ["--system"]
    name, *rest = words[system:] or ["--help"]
    done = False
    try:
        code = _run_command(name, rest, system=system)
        done = True
        sys.stdout.flush()
    except SvcqError as error:
        return _complain(error, name)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _complain(_unwritten(error) if done else _from_system(error), name)
    return code


def _run_command(name: str, rest: Sequence[str], *, system: bool) -> int:
    try:
        if name in ("-h", "--help", "help") and rest[:1]:
            name, rest = rest[0], ["--help"]
        if name in ("-h", "--help", "help"):
            print(overview())
            return 0
        if name in ("-V", "--version"):
            print(f"svcq {__version__}")
            return 0
        if name == "add" and _add_words(rest, system=system):
            return 0
        parser = parser_of(name)
        options = parser.read(rest)
        options.system = system or getattr(options, "system", False)
        if options.system and name not in _WITH_THE_MANAGER:
            _be_the_account(asking=name in _ASKING)
        return int(options.run(options) or 0)
    except SystemExit as done:  # argparse has printed the help that was asked for
        return int(done.code or 0)


def _as_text(arguments: Sequence[str]) -> list[str]:
    if all(word.isascii() for word in arguments):
        return list(arguments)
    from svcq.environment import rescued

    return [rescued(word) for word in arguments]


def _be_the_account(*, asking: bool) -> None:
    """What is the machine's belongs to an account of its own, and root opens none of it."""
    from svcq.host.service import become_account

    become_account(asking=asking)


def _fill_closed_streams() -> None:
    """A caller may have closed them (`>&-`): the next file opened would then take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  for as long as the program


def _let_go() -> None:
    """See that nothing is left to be written: it would fail again when the interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _add_words(arguments: Sequence[str], *, system: bool) -> bool:
    """Do without a parser where there is no option to parse."""
    from svcq.cli.command import add_command, words_alone

    words = words_alone(arguments)
    if words:
        if system:
            _be_the_account(asking=True)
        add_command(words)
    return bool(words)


def _complain(error: SvcqError, command: str) -> int:
    from contextlib import suppress

    from svcq.cli.text import sentence

    with suppress(OSError):  # when nobody can read it, the exit code tells
        print(f"svcq: {sentence(error)}", file=sys.stderr)
    if command == "wait" and not isinstance(error, WaitTimeout):
        return ERRORS_OF_WAIT
    return error.exit_code


def _from_system(error: OSError) -> SvcqError:
    from svcq.errors import NotPermitted, Refused

    where = error.filename or "Something could not be read or written"
    said = f"{where}: {error.strerror or error}."
    return NotPermitted(said) if isinstance(error, PermissionError) else Refused(said)


def _unwritten(error: OSError) -> SvcqError:
    from svcq.errors import Refused

    return Refused(f"It was done, but what it printed could not be written ({error.strerror}).")


def all_commands() -> dict[str, tuple[str, str]]:
    """Every command that is listed: its module and what it is for."""
    return {name: entry for group in COMMANDS.values() for name, entry in group.items()}


def parser_of(name: str) -> Parser:
    """The parser of one command; no other is built."""
    from importlib import import_module

    from svcq.cli.parser import Parser

    known = {**all_commands(), **HIDDEN}
    if name not in known:
        raise _unknown(name, list(known))
    module, about = known[name]
    parser = Parser(prog=f"svcq {name}", description=f"{about[0].upper()}{about[1:]}.")
    import_module(f"svcq.cli.{module}").PARSERS[name](parser)
    return parser


def _unknown(name: str, known: list[str]) -> SvcqError:
    from difflib import get_close_matches

    from svcq.errors import InvalidInput

    if name.startswith("-"):
        return InvalidInput(f"There is no option {name!r} before a command: see svcq --help.")
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else "svcq --help lists what there is."
    return InvalidInput(f"There is no command {name!r}: {hint}")


def overview() -> str:
    lines = [
        "usage: svcq [--system] COMMAND ...",
        "",
        "A job queue that a computer runs as a service.",
    ]
    for title, group in COMMANDS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<14} {about}" for name, (_, about) in group.items()]
    return "\n".join([*lines, *_AFTERWORD])


_AFTERWORD = """
First steps:
  svcq add -- echo hello              queue a command
  svcq add --in 90m 'du -sh * | sort' queue a shell line for later
  svcq list                           see what became of it

svcq COMMAND --help says more about one. Jobs are given by id or name. Every
command that reads has --json. SVCQ_HOME names the home directory, SVCQ_STORE
the store. svcq --system COMMAND is about the queue of the whole machine
(svcq install --system), for root.

Exit codes: 0 done, 1 the answer is no, 2 wrong usage or input, 3 no such job or
queue, 4 the store or service cannot be reached, 5 not permitted. svcq wait
exits as the job did; its own errors are 125, its timeout 124.""".splitlines()
