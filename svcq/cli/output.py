"""The output of a run, made harmless for a terminal."""

from __future__ import annotations

import codecs
import re
from unicodedata import category

from svcq.cli.text import escaped

# The only sequence a terminal gets: colours and their kin, of a length that someone could mean.
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_MAYBE_COLOUR = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")


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
        else escaped(char)
        for char in text
    )  # fmt: skip
