"""What a service manager says of the service, and what is not as it should be."""

from typing import NamedTuple


class Standing(NamedTuple):
    """What the service manager says of the service."""

    installed: bool
    running: bool
    pid: int | None = None
    text: str | None = None  # what the service last said of itself, or why it is not there


class Trouble(NamedTuple):
    """Something that is not as it should be, and what to do."""

    says: str
    remedy: str
