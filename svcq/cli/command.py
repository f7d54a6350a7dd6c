"""The words of a command, from the command line to the store.

`svcq add -- COMMAND...`, without an option, is what people and scripts call most. Nothing has to be
parsed then, and argparse, which takes longer than the rest, is not imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from svcq.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from svcq.adder import Adder
    from svcq.store import Added

_SHELL_SIGNS = frozenset(" \t\n|&;<>()$`\"'*?")


def words_alone(arguments: Sequence[str]) -> list[str]:
    """The command, where no option is given before it; empty where a parser has to look."""
    if arguments[:1] == ["--"]:
        return list(arguments[1:])
    return [] if arguments[:1] and arguments[0].startswith("-") else list(arguments)


def add_command(words: list[str]) -> None:
    with _open_adder() as adder:
        env = captured_environment(adder)
        new = adder.new_command(read_command(words), env=env)
        (added,) = adder.add([new])
        print_added(added)


def _open_adder() -> Adder:
    """The quick part of the client; all of it for those who ask the service."""
    from svcq.door import find_socket

    if find_socket() is None:
        from svcq.adder import Adder

        return Adder()
    from svcq.client import Client

    return Client()


def read_command(words: list[str], *, shell: bool = False, no_shell: bool = False) -> Any:
    """The words as the client takes them: a list, or a line for the shell."""
    if shell and no_shell:
        raise InvalidInput("Both --shell and --no-shell are given: give one.")
    if shell or (len(words) == 1 and not no_shell and _SHELL_SIGNS & set(words[0])):
        return " ".join(words)
    return words


def captured_environment(adder: Adder | None = None) -> dict[str, str]:
    """The caller's environment; what of it cannot be kept is said. In a store that machines share,
    others could read what is of this one alone."""
    from svcq.environment import capture, capture_lasting

    if adder is not None and "://" in adder.config.store:
        return capture_lasting()
    variables, left_out = capture()
    if left_out:
        names = ", ".join(sorted(left_out))
        print(f"svcq: Left out of the environment, for it is no text: {names}.", file=sys.stderr)
    return variables


def print_added(added: Added) -> None:
    if not sys.stdout.isatty():
        print(added.id)
    elif added.created:
        print(f"Job {added.id} is {added.state}.")
    else:
        print(f"Job {added.id} has that unique key already; it is {added.state}.")
