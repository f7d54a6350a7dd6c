"""`svcq schedule`: jobs that come again at times of their own."""

from __future__ import annotations

from collections.abc import Callable

from svcq.cli import (
    schedule_export,
    schedule_fire,
    schedule_hand,
    schedule_import,
    schedule_look,
    schedule_say,
)
from svcq.cli.add import set_command_aside
from svcq.cli.parser import Namespace, Parser

# After -- these have a command, and not a name that begins with a dash.
_WITH_COMMAND = ("add", "edit")


def _schedule_parser(parser: Parser) -> None:
    def command(name: str, about: str, run: Callable[[Namespace], int | None]) -> Parser:
        return parser.command(name, about, _as_account(run))

    schedule_say.add_commands(command)
    schedule_look.add_commands(command)
    schedule_fire.add_commands(command)
    # These speak to the service manager as well, as root where it is the machine's.
    schedule_say.add_commands_with_the_manager(parser.command)
    schedule_hand.add_commands(parser.command)
    schedule_import.add_commands(command)
    schedule_export.add_commands(command)
    parser.prepare = lambda arguments: _prepare(parser, arguments)


def _as_account(run: Callable[[Namespace], int | None]) -> Callable[[Namespace], int | None]:
    """Root opens nothing of the machine's queue, which belongs to an account of its own."""

    def run_as_account(options: Namespace) -> int | None:
        if options.system:
            from svcq.host.service import become_account

            become_account(asking=True)
        return run(options)

    return run_as_account


def _prepare(parser: Parser, arguments: list[str]) -> list[str]:
    if arguments[:1] and arguments[0] in _WITH_COMMAND:
        return set_command_aside(parser.subcommands[arguments[0]][0], arguments)
    return arguments


PARSERS = {"schedule": _schedule_parser}
