"""Writing a crontab that is read back as the same entries; what it cannot say becomes a comment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from svcq.crontab.entry import Entry
from svcq.crontab.read import NAME_COMMENT, read_crontab
from svcq.errors import Refused

# Debian's cron refuses a file with a longer command or setting.
LONGEST = 998
# Cron sets these by itself where no line does.
_ALWAYS_SET = frozenset(["SHELL", "PATH", "HOME", "LOGNAME"])
_HEAD = """\
# Written by `svcq schedule export`. The comment above a line is its name in svcq, by which
# `svcq schedule import` finds it again. cron makes up for no time that was missed, and lets the
# runs of a line overlap.
"""
_CRONIE = "# cronie understands CRON_TZ and RANDOM_DELAY; Debian's cron takes them for variables.\n"


class Unsaid(NamedTuple):
    """A schedule that a crontab cannot hold: `what` it is, and why not."""

    name: str
    what: str
    why: str


def write_crontab(entries: Iterable[Entry], unsaid: Iterable[Unsaid] = ()) -> str:
    """A user's crontab. Each entry needs a name; its `user` and `line` are not written."""
    writer = _Writer()
    # What is set cannot be unset: first those without a zone, and with the fewest variables.
    for entry in sorted(entries, key=lambda one: (one.zone is not None, len(one.variables))):
        writer.add(entry)
    for one in [*writer.unsaid, *unsaid]:
        writer.comment(one)
    return _HEAD + (_CRONIE if writer.for_cronie else "") + "".join(writer.lines)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.unsaid: list[Unsaid] = []
        self.for_cronie = False
        self._set: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        note = f"# {_one_line(entry.note)}\n" if entry.note else ""
        entry = entry._replace(user=None, line=0, note=None)
        wanted = self._wanted(entry)
        try:
            settings = [_setting(n, v) for n, v in wanted.items() if self._set.get(n) != v]
            line = f"{entry.expression}\t{self._command(entry)}\n"
            _check_length(line, "its command")
            _check_same(entry, settings, line, self._set)
        except Refused as refused:
            self.unsaid.append(Unsaid(entry.name or "", _about(entry), str(refused)))
            return
        self.lines += ["\n", *settings, note, f"{NAME_COMMENT}{entry.name}\n", line]
        self._set.update(wanted)
        if entry.zone is not None or entry.delay:
            self.for_cronie = True

    def _wanted(self, entry: Entry) -> dict[str, str]:
        """The settings that hold for an entry, by name."""
        wanted = dict(sorted(entry.variables.items()))
        if entry.zone is not None:
            wanted["CRON_TZ"] = entry.zone
        if entry.delay or "RANDOM_DELAY" in self._set:
            wanted["RANDOM_DELAY"] = str(entry.delay)
        return wanted

    def _command(self, entry: Entry) -> str:
        inherited = self._set.keys() - entry.variables.keys() - {"CRON_TZ", "RANDOM_DELAY"}
        unset = sorted(inherited - _ALWAYS_SET)
        words = f"unset {' '.join(unset)}; " if unset else ""
        if entry.directory is not None:
            words += f"cd {shlex.quote(entry.directory)} || exit; "
        command = (words + entry.command).replace("%", "\\%")
        return command if entry.stdin is None else f"{command}%{_input(entry.stdin)}"

    def comment(self, one: Unsaid) -> None:
        self.lines += [
            "\n",
            f"# {_one_line(one.name)} cannot stand in a crontab: {_one_line(one.why)}\n",
            f"#   {_one_line(one.what)}\n",
        ]


def _setting(name: str, value: str) -> str:
    quote = "'" if '"' in value else '"'
    plain = re.fullmatch(r"[^\s'\"](?:.*[^\s])?", value, re.ASCII)
    line = f"{name}={value}\n" if plain else f"{name}={quote}{value}{quote}\n"
    _check_length(line, f"its variable {name}")
    return line


def _input(text: str) -> str:
    text = text.replace("%", "\\%")
    # Cron ends the last line by itself, but not an empty one.
    if re.search(r"[^\n]\n\Z", text):
        text = text[:-1]
    return text.replace("\n", "%")


def _check_length(line: str, what: str) -> None:
    if len(line.encode()) > LONGEST:
        raise Refused(f"{what[0].upper()}{what[1:]} is longer than cron takes ({LONGEST} bytes).")


def _check_same(entry: Entry, settings: list[str], line: str, before: Mapping[str, str]) -> None:
    """Refuse what would be read back as something else: a newline, a backslash before a %."""
    above = [_setting(name, value) for name, value in before.items()]
    text = "".join([*above, *settings, f"{NAME_COMMENT}{entry.name}\n", line])
    read = read_crontab(text)
    same = [one._replace(variables=_said(one, entry), line=0) for one in read.entries]
    if same != [entry._replace(variables=dict(entry.variables))]:
        raise Refused("Its command, input or a variable holds what no line of a crontab can say.")


def _said(read: Entry, entry: Entry) -> dict[str, str]:
    """Without what cron sets in any case, where the entry is silent about it."""
    silent = _ALWAYS_SET - entry.variables.keys()
    return {name: value for name, value in read.variables.items() if name not in silent}


def _about(entry: Entry) -> str:
    return f"{entry.expression} {entry.command}"


def _one_line(text: str) -> str:
    """A comment ends with its line: what could begin another one is shown instead."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
