"""Reading a crontab: every line that can be used, and a sentence about each that cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from svcq.cron import find_zone, parse_cron
from svcq.crontab.entry import Entry
from svcq.errors import InvalidInput, shown

# Above the line it names; write.py writes it.
NAME_COMMENT = "# svcq schedule: "
_LONGEST_DELAY = 24 * 60

_SETTING = re.compile(
    r"""(?: "(?P<name1>[^"=]+)" | '(?P<name2>[^'=]+)' | (?P<name3>[^\s='"][^\s=]*) ) \s* = \s*
        (?: "(?P<value1>[^"]*)" \s* | '(?P<value2>[^']*)' \s* | (?P<value3>[^\s'"].*?) \s* )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_FIELDS = re.compile(
    r"(?P<time>@[^ \t]*|(?:[^ \t]+[ \t]+){4}[^ \t]+)(?:[ \t]+(?P<rest>.*))?", re.DOTALL
)
_INPUT_BEGINS = re.compile(r"(?<!\\)%")
# What write.py puts in front of a command, and it alone: where its comment names the schedule.
_PROLOGUE = re.compile(
    r"""(?:unset[ ](?P<unset>\w+(?:[ ]\w+)*);[ ])?
        (?:cd[ ](?P<cd>(?:'[^']*'|"'"|[^\s'"]+)+)[ ]\|\|[ ]exit;[ ])?""",
    re.VERBOSE | re.ASCII,
)


class Remark(NamedTuple):
    """Something to tell about a line."""

    line: int
    says: str


class Crontab(NamedTuple):
    entries: list[Entry]
    problems: list[Remark]  # about lines that cannot be used
    remarks: list[Remark]  # about lines that mean something else to some crons


class _Reader:
    def __init__(self, *, system: bool) -> None:
        self._system = system
        self._variables: dict[str, str] = {}
        self._name: str | None = None
        self.read = Crontab([], [], [])

    def line(self, number: int, text: str) -> None:
        if text.startswith("#"):
            if text.startswith(NAME_COMMENT):
                self._name = text.removeprefix(NAME_COMMENT).strip()
            return
        name, self._name = self._name, None
        try:
            if "\0" in text:
                raise InvalidInput("It contains a NUL character: remove it.")  # noqa: TRY301
            if setting := _SETTING.fullmatch(text):
                self._set(number, *_name_and_value(setting))
            else:
                self.read.entries.append(self._entry(number, text, name))
        except InvalidInput as error:
            self.read.problems.append(Remark(number, str(error)))

    def _set(self, number: int, name: str, value: str) -> None:
        if name == "CRON_TZ":
            find_zone(value)
        if name == "RANDOM_DELAY" and not (value.isdigit() and int(value) <= _LONGEST_DELAY):
            raise InvalidInput(
                f"RANDOM_DELAY is {shown(value)}: give minutes, 0 to {_LONGEST_DELAY}."
            )
        if "$" in value:
            self._remark(number, f"{name} has a $, which crontab(5) does not expand: "
                                 "it is taken as it stands.")  # fmt: skip
        self._variables[name] = value

    def _entry(self, number: int, text: str, name: str | None) -> Entry:
        expression, rest = _split_time(text)
        variables = dict(self._variables)
        zone = variables.pop("CRON_TZ", None)
        delay = int(variables.pop("RANDOM_DELAY", 0))
        parse_cron(expression, zone or "UTC")
        user = None
        if self._system:
            user, rest = _split_user(rest)
        elif rest.startswith("*"):
            raise InvalidInput(
                f"Its command begins with {shown(rest.split()[0])}: give five fields of time, "
                "then the command."
            )
        if "\\\\" in _INPUT_BEGINS.split(rest, maxsplit=1)[0]:
            self._remark(number, "Two backslashes are kept as they stand; Debian's cron takes "
                                 "them for one.")  # fmt: skip
        command, stdin = _split_input(rest)
        entry = Entry(expression, command, stdin, variables, zone, delay, user=user, line=number)
        if name is not None:
            entry = _without_prologue(entry)._replace(name=name)
        if not entry.command.strip():
            raise InvalidInput(f"It names a time ({shown(expression)}) and no command: add one.")
        return entry

    def _remark(self, number: int, says: str) -> None:
        self.read.remarks.append(Remark(number, says))


def read_crontab(text: str, *, system: bool = False) -> Crontab:
    """The entries of a crontab; `system` for one whose sixth column is a user."""
    reader = _Reader(system=system)
    for number, line in _lines(text):
        reader.line(number, line)
    return reader.read


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # Not splitlines, which ends lines where cron does not.
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.removesuffix("\r").lstrip(" \t")
        if stripped:
            yield number, stripped


def _name_and_value(found: re.Match[str]) -> tuple[str, str]:
    name, value = (
        next(text for n in "123" if (text := found[f"{what}{n}"]) is not None)
        for what in ("name", "value")
    )
    return name, value


def _split_time(text: str) -> tuple[str, str]:
    found = _FIELDS.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"{shown(text)} is neither NAME=value nor five fields of time and a command: "
            "correct it, or put a # in front."
        )
    expression = " ".join(found["time"].split())
    if expression == "@reboot":
        raise InvalidInput(
            "@reboot names no time that svcq could wait for: leave the line in the crontab."
        )
    return expression, found["rest"] or ""


def _split_user(rest: str) -> tuple[str, str]:
    user, *command = re.split(r"[ \t]+", rest, maxsplit=1)
    if not user or not command:
        raise InvalidInput("It has no user or no command after the time: add both.")
    return user, command[0]


def _split_input(text: str) -> tuple[str, str | None]:
    """The command, and what it reads: from the first % on, with newlines for the others."""
    begins = _INPUT_BEGINS.search(text)
    if begins is None:
        return text.replace("\\%", "%"), None
    command, rest = text[: begins.start()].replace("\\%", "%"), text[begins.end() :]
    if not rest:
        return command, None
    stdin = re.sub(r"\\?%", lambda found: "\n" if found[0] == "%" else "%", rest)
    return command, stdin if stdin.endswith("\n") else f"{stdin}\n"


def _without_prologue(entry: Entry) -> Entry:
    import shlex

    found = _PROLOGUE.match(entry.command)
    if found is None:
        return entry
    unset = (found["unset"] or "").split()
    directory = shlex.split(found["cd"])[0] if found["cd"] else None
    kept = {name: value for name, value in entry.variables.items() if name not in unset}
    return entry._replace(command=entry.command[found.end() :], variables=kept, directory=directory)
