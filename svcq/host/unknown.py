"""What a machine does not say about itself."""

from typing import NamedTuple


class Unknown(NamedTuple):
    missing: str  # what would have to be there, as a part of a sentence
