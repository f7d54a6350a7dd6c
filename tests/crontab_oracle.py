"""How cron reads a line, letter by letter, as a daemon does it.

Written from crontab(5) and from what Debian's cron and cronie do; shares no code with svcq.
"""

from __future__ import annotations

BLANK = " \t"
SPACE = " \t\n\r\v\f"


def setting(line: str) -> tuple[str, str] | None:
    """The name and value of a line that sets a variable; None for any other."""
    name, at = _word(line, 0, stops="=" + SPACE)
    if not name or at is None:
        return None
    at = _skip(line, at)
    if line[at : at + 1] != "=":
        return None
    at = _skip(line, at + 1)
    if at == len(line):
        return None
    if line[at] not in "'\"":
        return name, line[at:].rstrip(SPACE)
    value, end = _word(line, at, stops="")
    if end is None or _skip(line, end) != len(line):
        return None
    return name, value


def _word(line: str, at: int, stops: str) -> tuple[str, int | None]:
    """A word, in quotes or up to a stop; None where its quote is never closed."""
    quote = line[at] if line[at] in "'\"" else ""
    at += len(quote)
    word = ""
    while at < len(line):
        letter = line[at]
        if quote and letter == quote:
            return word, at + 1
        if quote and "=" in stops and letter == "=":
            return word, None
        if not quote and letter in stops:
            return word, at
        word += letter
        at += 1
    return word, None if quote else at


def _skip(line: str, at: int) -> int:
    while at < len(line) and line[at] in SPACE:
        at += 1
    return at


def entry(line: str) -> tuple[list[str], str] | None:
    """The fields of time and all that follows; None where there is no command."""
    fields: list[str] = []
    at = 0
    wanted = 1 if line.startswith("@") else 5
    while len(fields) < wanted:
        field = ""
        while at < len(line) and line[at] not in BLANK:
            field += line[at]
            at += 1
        while at < len(line) and line[at] in BLANK:
            at += 1
        fields.append(field)
    return (fields, line[at:]) if at < len(line) else None


def command_and_input(rest: str) -> tuple[str, str | None]:
    """What the shell is given, and what it reads."""
    parts, escaped = [""], False
    for letter in rest:
        if letter == "%" and not escaped:
            parts.append("")
        elif letter == "%":
            parts[-1] = parts[-1][:-1] + "%"
        else:
            parts[-1] += letter
        escaped = letter == "\\"
    command, *lines = parts
    if lines in ([], [""]):
        return command, None
    if lines[-1] != "":
        lines.append("")
    return command, "\n".join(lines)
