"""`svcq add`: queue a command or a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from svcq.cli.command import captured_environment, print_added, read_command
from svcq.cli.options import add_options, said_options
from svcq.cli.parser import Namespace, Parser, add_json
from svcq.errors import InvalidInput

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.policy import NewJob

_ABOUT = """
Options come before the command; -- ends them.

Several words are a program and its arguments, run as they are, without a shell. A single word
with a space or a shell sign (| & ; < > $ * ? and quotes) is a line for the shell; with --shell,
several words are joined to one, and with --no-shell a single word is a program. A command runs in
the directory, and with the environment, it was queued from.

  svcq add -- ffmpeg -i a.mov a.mp4
  svcq add 'du -sh * | sort -h > sizes.txt'
  svcq add --task mail.send --args '["a@example.org"]' --kwargs '{"subject": "hi"}'

In a terminal it says what became of the job; elsewhere it prints the job's id.
"""


def _add_parser(parser: Parser) -> None:
    parser.usage = "svcq add [OPTIONS] [--] COMMAND...\n       svcq add [OPTIONS] --task NAME"
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.add_argument("command", nargs="...", metavar="COMMAND", help="what to run")
    add_what(parser)
    add_json(parser)
    add_options(parser)
    add_where(parser)
    parser.set_defaults(run=_add, after_dashes=None)
    parser.prepare = lambda arguments: set_command_aside(parser, arguments)


def add_what(parser: Parser) -> None:
    """How a command is meant, or which task instead of it."""
    parser.add_argument("--shell", action="store_true", help="the words are a line for the shell")
    parser.add_argument("--no-shell", action="store_true", help="the word is a program")
    parser.add_argument("--task", metavar="NAME", help="run this Python function: module.function")
    parser.add_argument("--args", metavar="JSON", help="its positional arguments, a JSON array")
    parser.add_argument("--kwargs", metavar="JSON", help="its named arguments, a JSON object")


def add_where(parser: Parser) -> None:
    group = parser.add_argument_group("where a command runs")
    group.add_argument("--cwd", metavar="DIR", help="the directory; the current one by default")
    group.add_argument(
        "--env", metavar="NAME[=VALUE]", action="append", default=[],
        help="set a variable, or take it along though it belongs to this session",
    )  # fmt: skip
    group.add_argument("--no-env", action="store_true", help="take no other variables along")


def set_command_aside(parser: Parser, arguments: list[str]) -> list[str]:
    """Keep what follows `--` from argparse, whose treatment of it differs between versions."""
    if "--" not in arguments:
        return arguments
    at = arguments.index("--")
    parser.set_defaults(after_dashes=arguments[at + 1 :])
    return arguments[:at]


def words_given(options: Namespace) -> list[str]:
    """The words of the command, with a second `--` that is its own."""
    after: list[str] | None = options.after_dashes
    if after is None:
        return list(options.command)
    return [*options.command, "--", *after] if options.command else after


def _add(options: Namespace) -> None:
    from svcq.client import Client

    check_usage(options)
    with Client() as client:
        (added,) = client.add([_new_job(options, client)])
        if options.json:
            from svcq.cli.text import print_json

            print_json(client.get(added.id).as_json())
        else:
            print_added(added)


def check_usage(options: Namespace) -> None:
    """A command or a task, and for each only what it can have."""
    words = words_given(options)
    if options.task is None:
        if not words:
            raise InvalidInput(
                "There is nothing to run: give a command after --, or a task with --task."
            )
        if options.args is not None or options.kwargs is not None:
            raise InvalidInput("--args and --kwargs are for a task: name it with --task.")
        return
    if words:
        raise InvalidInput(
            f"Both the task {options.task!r} and the command {words[0]!r} are given: give one."
        )
    if options.cwd is not None or options.env or options.no_env:
        raise InvalidInput(
            "--cwd, --env and --no-env are for commands: a task runs where its project is."
        )


def _new_job(options: Namespace, client: Client) -> NewJob:
    said = said_options(options, client)
    if options.task is not None:
        return client.new_task(options.task, *arguments_given(options), **said)
    command = read_command(words_given(options), shell=options.shell, no_shell=options.no_shell)
    if options.cwd is not None:
        said["cwd"] = options.cwd
    env = environment_given(options, lambda: captured_environment(client))
    if options.tty and not options.no_env:
        env = {**_size_of_terminal(), **env}
    return client.new_command(command, env=env, **said)


def _size_of_terminal() -> dict[str, str]:
    """Of the caller's, for the one of the command."""
    from os import get_terminal_size

    for stream in range(3):
        try:
            columns, lines = get_terminal_size(stream)
        except OSError:
            continue
        if columns and lines:
            return {"COLUMNS": str(columns), "LINES": str(lines)}
    return {}


def arguments_given(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a task: positional, named."""
    args: list[Any] = _json(options.args or "[]", "--args", list)
    kwargs: dict[str, Any] = _json(options.kwargs or "{}", "--kwargs", dict)
    return args, kwargs


def environment_given(options: Namespace, captured: Callable[[], dict[str, str]]) -> dict[str, str]:
    """The variables of the session that are taken along, and those that are named."""
    from os import environ

    variables = {} if options.no_env else captured()
    for given in options.env:
        name, separator, value = given.partition("=")
        if not separator and name not in environ:
            raise InvalidInput(f"There is no variable {name!r} here: give {name}=VALUE.")
        variables[name] = value if separator else environ[name]
    return variables


def _json(text: str, what: str, kind: type) -> Any:
    from svcq.strict import parse_json

    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The value of {what} is not JSON ({error}).") from None
    if not isinstance(value, kind):
        example = '["a", 1]' if kind is list else '{"name": 1}'
        raise InvalidInput(f"The value of {what} is {text}: give {example}, for example.")
    return value


PARSERS = {"add": _add_parser}
