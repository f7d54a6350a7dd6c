"""argparse, made to speak in sentences."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

from svcq.errors import InvalidInput

Namespace = argparse.Namespace


class Parser(argparse.ArgumentParser):
    """A parser of one command: no abbreviations, no option twice, errors as sentences."""

    given: ClassVar[list[str]] = []  # what is parsed: argparse does not tell what stood beside

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            allow_abbrev=False,  # an option added later must not break a script
            formatter_class=_Help,
            **settings,
        )
        self.register("action", None, _Once)
        self.register("action", "store", _Once)
        self.prepare: Callable[[list[str]], list[str]] = list
        self.subcommands: dict[str, tuple[Parser, str]] = {}
        self._group: Any = None

    def read(self, arguments: Sequence[str]) -> Namespace:
        """The options; `prepare` may first set arguments aside."""
        Parser.given = list(arguments)
        options: Namespace = self.parse_args(self.prepare(Parser.given))
        return options

    def _taken_for_an_option(self, option: str) -> str:
        """What to say of a value that begins with a hyphen."""
        for name, value in pairwise(Parser.given):
            known = value.partition("=")[0] in self._option_string_actions
            if name in option.split("/") and value.startswith("-") and value != "--" and not known:
                return f", and {value} looks like an option; to mean it, write {name}={value}"
        return ""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = getattr(options, "parser", self)
            parser.error(parser.unknown(unknown[0]))
        return options

    def unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"the word {word!r} is one too many"
        from difflib import get_close_matches

        near = get_close_matches(word.partition("=")[0], self._option_string_actions, 1)
        return f"there is no option {word}" + (f": did you mean {near[0]}?" if near else "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from difflib import get_close_matches

            known = [str(choice) for choice in action.choices]
            near = get_close_matches(str(value), known, 1)
            hint = f"did you mean {near[0]}?" if near else f"use {' or '.join(known)}."
            raise InvalidInput(f"There is no {word_for(action)} {value!r}: {hint}")

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        if message.startswith("the following arguments are required: "):
            message = f"{message.partition(': ')[2]} is missing"
            if self.subcommands:
                message = f"say which: {', '.join(self.subcommands)}"
        if message.endswith(": expected one argument"):
            option = message.removesuffix(": expected one argument")
            message = f"{option} needs a value{self._taken_for_an_option(option)}"
        end = "" if message.endswith("?") else f": see {self.prog} --help."
        raise InvalidInput(f"{message[:1].upper()}{message[1:]}{end}")

    def format_help(self) -> str:
        # Only here: argparse makes a formatter for every argument that is added, too.
        width = help_width()
        self.formatter_class = lambda prog: _Help(prog, width)
        return super().format_help()

    def command(self, name: str, about: str, run: Callable[[Namespace], int | None]) -> Parser:
        """A command of a group, such as `list` of `svcq queue`."""
        if self._group is None:
            self._group = self.add_subparsers(
                title="commands", metavar="COMMAND", required=True, parser_class=Parser
            )
        added: Parser = self._group.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}."
        )
        added.set_defaults(run=run, parser=added)
        self.subcommands[name] = (added, about)
        return added

    def arguments(self) -> list[argparse.Action]:
        """Its own arguments, without those of its commands, --help and what is ours alone."""
        return [
            action
            for action in self._actions
            if action is not self._group
            and "--help" not in action.option_strings
            and action.help is not argparse.SUPPRESS
        ]


def name_of(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def word_for(action: argparse.Action) -> str:
    """What its values are, in a sentence."""
    return name_of(action) if action.option_strings else name_of(action).lower()


class _Once(argparse.Action):
    """Stores a value, and refuses a second one: which of them was meant?"""

    def __call__(self, _: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if option_string is not None:
            given = vars(namespace).setdefault("_given", set())
            if self.dest in given:
                raise InvalidInput(f"The option {option_string} is given twice: give it once.")
            given.add(self.dest)
        setattr(namespace, self.dest, values)


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str, width: int = 80) -> None:
        super().__init__(prog, max_help_position=30, width=width)


def help_width() -> int:
    from svcq.cli.text import terminal_width

    return max(20, min(terminal_width(sys.stdout) or 80, 100))


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_system(
    parser: argparse.ArgumentParser, about: str = "the service of the whole machine, not yours"
) -> None:
    parser.add_argument("--system", action="store_true", help=about)


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def confirm(question: str, *, yes: bool) -> bool:
    """Ask before something that cannot be undone; without a terminal only --yes will do."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} Nobody is there to answer: add --yes.")
    return answer(f"{question} [y/N] ") in ("y", "yes")


def answer(question: str) -> str:
    """What is typed in reply, in small letters; nothing where the terminal is gone."""
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.buffer.readline().decode("utf-8", "replace").strip().lower()


def words_of(text: str) -> list[str]:
    """`a,b` as a list; empty parts are left out."""
    return [word for part in text.split(",") if (word := part.strip())]


def whole(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"The {what} {text!r} is not a whole number: give one.") from None


def number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"The {what} {text!r} is not a number: give one.") from None


def flat(lists: Iterable[Iterable[str]] | None) -> list[str]:
    """What an option that may be repeated, and may list words with commas, was given."""
    return [word for words in lists or () for word in words]


def read_source(name: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else _read(name)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{name}, line {line}, is not UTF-8: save it as UTF-8.") from None


def _read(name: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise InvalidInput(f"{os.fspath(name)} cannot be read ({error.strerror}).") from None
