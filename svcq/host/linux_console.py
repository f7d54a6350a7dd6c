"""Linux: terminals understand colours, and everything is in the encoding of the locale."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def prepare(stream: "TextIO") -> None:
    """Nothing to do."""


def shows_colours(stream: "TextIO") -> bool:  # noqa: ARG001 (all do)
    return True
