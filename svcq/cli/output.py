"""The output of a run: read while it grows, and made harmless for a terminal."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path
from unicodedata import category

from svcq.host import processes
from svcq.logs import dropped

_BLOCK = 1 << 16
# The only sequence a terminal gets: colours and their kin, of a length that someone could mean.
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_MAYBE_COLOUR = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")


class LogReader:
    """What was written to a log since the last look."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self.path = path
        self.position = position

    def read(self) -> Iterator[bytes]:
        """As logs.read_log, from where it stopped the last time; nothing when there is no file."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            size = os.fstat(file.fileno()).st_size
            if size == self.position:
                return
            for begin, end in processes.parts_with_data(file.fileno(), self.position, size):
                if begin > self.position:
                    yield dropped(begin - self.position)
                file.seek(begin)
                self.position = begin
                while self.position < end and (
                    chunk := file.read(min(end - self.position, _BLOCK))
                ):
                    self.position += len(chunk)
                    yield chunk


def start_of_tail(path: Path, lines: int) -> int:
    """Where the last lines of a file begin, found from its end."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        parts = list(processes.parts_with_data(file.fileno(), 0, size))
        if not lines:
            return size
        wanted = lines + 1  # the end of the line before them
        if size:
            file.seek(size - 1)
            wanted -= file.read(1) != b"\n"
        for begin, end in reversed(parts):
            position = end
            while position > begin:
                start = max(position - _BLOCK, begin)
                file.seek(start)
                block = file.read(position - start)
                found = block.count(b"\n")
                if found >= wanted:
                    return start + _nth_last(block, wanted) + 1
                wanted -= found
                position = start
    return 0


def _nth_last(block: bytes, n: int) -> int:
    at = len(block)
    for _ in range(n):
        at = block.rindex(b"\n", 0, at)
    return at


class Harmless:
    """Bytes of others as text that cannot take over a terminal.

    Colours, tabs and the ends of lines stay; a return to the start of a line becomes a new line,
    and every other control character is shown, not sent. What a chunk leaves unfinished waits for
    the next one.
    """

    def __init__(self, *, colours: bool = True) -> None:
        self._colours = colours
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
        self._rest = ""
        self.coloured = False

    def feed(self, data: bytes, *, last: bool = False) -> str:
        text = self._rest + self._decode(data, last)
        self._rest = ""
        if not last:
            unfinished = _MAYBE_COLOUR.search(text) or re.search(r"\r\Z", text)
            if unfinished:
                text, self._rest = text[: unfinished.start()], text[unfinished.start() :]
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if text.isprintable():
            return text
        shown, at = [], 0
        for found in _COLOUR.finditer(text):
            shown += [_shown(text[at : found.start()]), self._colour(found[0])]
            at = found.end()
        return "".join([*shown, _shown(text[at:])])

    def end(self) -> str:
        """What was held back, and the colours as they were."""
        rest = self.feed(b"", last=True)
        reset = "\x1b[0m" if self.coloured else ""
        self.coloured = False
        return rest + reset

    def _colour(self, sequence: str) -> str:
        if not self._colours:
            return ""
        self.coloured = True
        return sequence


def _shown(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" or category(char) == "Zs"
        else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in text
    )  # fmt: skip
