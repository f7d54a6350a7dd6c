"""One line of a crontab that names a time and a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple

SHELL = "/bin/sh"  # what runs a command where no line says SHELL=
_MARK = "SVCQ_INPUT"
_INPUT = re.compile(
    rf"exec (?P<words>.+) <<'(?P<mark>{_MARK}\d*)'\n(?P<text>.*)(?P=mark)\n", re.DOTALL
)
# Words in front of the one that tells what a line is about.
_PASSED_OVER = frozenset(
    ["cd", "env", "exec", "export", "ionice", "nice", "nohup", "set", "sh", "bash", "sleep", "sudo",
     "test", "[", "time", "timeout", "then", "if", "unset", "flock", "command", "chronic", "cronic"]
)  # fmt: skip


class Entry(NamedTuple):
    """A command and when it runs; what cron itself would add to `variables` is left out."""

    expression: str  # five fields, or a name such as @daily
    command: str
    stdin: str | None = None  # ends with a newline, as cron sees to
    variables: Mapping[str, str] = {}
    zone: str | None = None  # None: that of the machine
    delay: int = 0  # minutes by which it may start later, at random
    directory: str | None = None  # None: the home of its user
    user: str | None = None  # in a system's crontab
    name: str | None = None  # in one that svcq wrote
    line: int = 0
    note: str | None = None  # stands in a comment above it, and is not read

    @property
    def shell(self) -> str:
        return self.variables.get("SHELL", SHELL)


class Input(NamedTuple):
    """A command with what it reads, as `shell_line` joined them."""

    shell: str
    command: str
    stdin: str


def shell_line(given: Input) -> str:
    """A line for /bin/sh that runs the command with this standard input, whatever they hold."""
    mark, n = _MARK, 0
    lines = set(given.stdin.split("\n"))
    while mark in lines:
        n += 1
        mark = f"{_MARK}{n}"
    words = shlex.join([given.shell, "-c", given.command])
    # Between quoted marks nothing is special but the mark itself, on a line of its own.
    return f"exec {words} <<'{mark}'\n{given.stdin}{mark}\n"


def without_input(line: str) -> Input | None:
    """What `shell_line` was given; None for a line that it did not make."""
    found = _INPUT.fullmatch(line)
    if found is None:
        return None
    try:
        words = shlex.split(found["words"])
    except ValueError:
        return None
    if len(words) != 3:
        return None
    given = Input(words[0], words[2], found["text"])
    return given if shell_line(given) == line else None


def derived_names(entries: Iterable[Entry]) -> list[str]:
    """A name for each, the same whenever the same commands are read: when they run, and in which
    order they stand, does not matter. A name that an export wrote is kept."""
    from hashlib import sha256

    names: list[str] = []
    for entry in entries:
        name = entry.name
        if name is None:
            said = "\0".join([entry.user or "", entry.command, entry.stdin or ""])
            name = f"{_about(entry.command)}-{sha256(said.encode()).hexdigest()[:6]}"
        n, first = 1, name
        while name in names:
            n += 1
            name = f"{first}-{n}"
        names.append(name)
    return names


def _about(command: str) -> str:
    """The program that a line is about, as far as one can tell."""
    for word in re.findall(r"[^\s;&|()<>\"'`$]+", command):
        base = word.rstrip("/").rpartition("/")[2]
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", base).strip("-._")[:40]
        if plain and "=" not in word and not word.startswith("-") and base not in _PASSED_OVER:
            return plain
    return "cron"
