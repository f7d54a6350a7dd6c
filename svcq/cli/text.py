"""Text for people: escaped, aligned, cut to the terminal, in colour where that helps."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TextIO

from svcq.times import format_duration
from svcq.tuples import NamedTuple

_COLOURS = {
    "completed": "32",
    "running": "32",
    "processing": "36",
    "pending": "",
    "scheduled": "34",
    "blocked": "35",
    "held": "35",
    "paused": "33",
    "retrying": "33",
    "draining": "33",
    "dead": "31",
    "cancelled": "2",
}


class Column(NamedTuple):
    """A column of a table. `least` is how narrow it may get; the most dispensable goes first."""

    title: str
    least: int = 0  # 0: as wide as its widest cell
    dispensable: int = 0  # 0: not at all
    right: bool = False


def clean(text: str, *, lines: bool = False) -> str:
    """Text of others, safe to show: what does not print is escaped, with `lines` but for \\n."""
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(char if char.isprintable() or char in kept else escaped(char) for char in text)


def sentence(error: Exception) -> str:
    """What an error says, safe to show, with bytes that are no text as the shell writes them."""
    text = clean(str(error), lines=True)
    if "\\udc" in text:  # as Python writes them
        import re

        text = re.sub(r"\\udc([89a-f][0-9a-f])", r"\\x\1", text)
    return text


def escaped(char: str) -> str:
    """A character that does not print, spelt out; a byte of a name that is no text as `\\xe9`."""
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) & 0xFF:02x}"
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def _as_written(text: str) -> str:
    """As standard output will have it: a locale may lack characters."""
    encoding = sys.stdout.encoding or "ascii"
    return text if text.isascii() else text.encode(encoding, "backslashreplace").decode(encoding)


def terminal_width(stream: TextIO) -> int | None:
    """The columns of the terminal; None when it is none."""
    if not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(word: str, text: str | None = None) -> str:
    """A state, or another text in its colour, as standard output shows it."""
    colour = _COLOURS.get(word, "")
    shown = word if text is None else text
    return f"\x1b[{colour}m{shown}\x1b[0m" if colour and coloured(sys.stdout) else shown


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """The text, or its beginning and a sign that there is more."""
    if width_of(text) <= width:
        return text
    more = "…" if _can_show("…") else "~"
    kept, used = [], 1
    for char in text:
        used += width_of(char)
        if used > width:
            break
        kept.append(char)
    return ("".join(kept) + more)[: max(width, 0)]


def _can_show(char: str) -> bool:
    try:
        char.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    """Aligned columns; elsewhere whole, in a terminal cut to its width. Empty cells are `-`.

    Columns for which a terminal has no room are named below the table; where not even what matters
    most fits, each row becomes lines.
    """
    cells = [[_as_written(clean(str(value))) if value not in (None, "") else "-" for value in row]
             for row in rows]  # fmt: skip
    widths = [
        max([len(column.title), *(width_of(row[index]) for row in cells)])
        for index, column in enumerate(columns)
    ]
    limit = terminal_width(sys.stdout)
    shown = list(range(len(columns)))
    if limit is not None:
        fits = _fit(columns, widths, limit)
        if fits is None:
            _print_stacked(columns, cells)
            return
        shown, widths = fits
    for row in [[column.title.upper() for column in columns], *cells]:
        print(_line(columns, [row[i] for i in shown], [widths[i] for i in shown], shown, limit))
    left_out = [column.title for i, column in enumerate(columns) if i not in shown]
    if limit is not None and left_out:
        from textwrap import wrap

        for line in wrap(f"No room for: {', '.join(left_out)}.", limit):
            print(paint("cancelled", line))


def without_empty(
    columns: Sequence[Column], rows: Sequence[Sequence[object]]
) -> tuple[list[Column], list[list[object]]]:
    """A column in which nothing stands takes room from those in which something does."""
    used = [i for i in range(len(columns)) if any(row[i] not in (None, "") for row in rows)]
    return [columns[i] for i in used], [[row[i] for i in used] for row in rows]


def _print_stacked(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """A line for each cell, broken by the terminal where it must be."""
    for n, row in enumerate(rows):
        if n:
            print()
        for column, cell in zip(columns, row, strict=True):
            print(f"{column.title}: {paint(cell)}")


def _fit(
    columns: Sequence[Column], widths: list[int], limit: int
) -> tuple[list[int], list[int]] | None:
    """Which columns to show, and how wide: first narrow what may be cut, then leave some out."""
    shown = list(range(len(columns)))

    def least(index: int) -> int:
        column = columns[index]
        may_be_cut_to = max(column.least, len(column.title)) if column.least else widths[index]
        return min(may_be_cut_to, widths[index])

    while sum(map(least, shown)) + 2 * (len(shown) - 1) > limit:
        next_out = max(shown, key=lambda i: (columns[i].dispensable, i))
        if not columns[next_out].dispensable:
            return None
        shown.remove(next_out)
    fitted = {i: least(i) for i in shown}
    spare = limit - 2 * (len(shown) - 1) - sum(fitted.values())
    for i in shown:
        more = min(max(spare, 0), widths[i] - fitted[i])
        fitted[i] += more
        spare -= more
    return shown, [fitted.get(i, 0) for i in range(len(columns))]


def _line(
    columns: Sequence[Column],
    cells: Sequence[str],
    widths: Sequence[int],
    shown: Sequence[int],
    limit: int | None,
) -> str:
    parts = []
    for cell, width, index in zip(cells, widths, shown, strict=True):
        text = cell if limit is None else cut(cell, min(width, limit))
        pad = " " * (width - width_of(text))
        text = paint(cell, text)
        parts.append(pad + text if columns[index].right else text + pad)
    return "  ".join(parts).rstrip()


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """`name  value` lines; what is empty is left out."""
    told = [(name, value) for name, value in facts if value not in (None, "", [], (), {})]
    width = max([len(name) for name, _ in told], default=0)
    for name, value in told:
        text = clean(str(value), lines=True).replace("\n", "\n" + " " * (width + 2))
        print(f"{name:<{width}}  {paint(text) if name == 'state' else text}")


def print_json(value: Any) -> None:
    """One object over several lines; a list with one element a line.

    Pure ASCII: every locale can print it, and no terminal takes it for a command.
    """
    import json

    if isinstance(value, list):
        lines = ",\n ".join(json.dumps(element) for element in value)
        print(f"[{lines}]")
    else:
        print(json.dumps(value, indent=2))


def tell(sentence: str, *, as_json: bool, **facts: object) -> None:
    """What was done: a sentence for people, or its facts for a program."""
    print_json(facts) if as_json else print(sentence)


def ago(then: datetime | None, now: datetime) -> str:
    """`5m ago`, or `in 5m`."""
    if then is None:
        return ""
    seconds = (now - then).total_seconds()
    if abs(seconds) < 1:
        return "now"
    span = format_duration(int(abs(seconds)) * 1000)
    return f"{span} ago" if seconds > 0 else f"in {span}"


def local(moment: datetime | None) -> str:
    """A time as the clock on the wall shows it."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def command_line(command: Sequence[str] | str) -> str:
    """A command as one would type it."""
    if isinstance(command, str):
        return command
    import shlex

    return shlex.join(command)


def plural(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
