"""Windows: whether a program may be run as a service of the whole machine.

Whoever may write its code, or put something else in the place of it or of a folder above it, could
run anything as that service.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from svcq.errors import NotPermitted, Refused
from svcq.host import windows

_ELSEWHERE = "install Python and svcq for all users, such as in C:\\Program Files"


def check_program(python: str) -> None:
    """Refuse a Python, or the svcq in it, that others than administrators could replace."""
    try:
        for path in _places(python):
            windows.check_administrators_alone(path)
    except NotPermitted as error:
        raise Refused(
            f"{python} cannot be run as a service of the whole machine: {error} Or {_ELSEWHERE}."
        ) from None


def _places(python: str) -> Iterator[Path]:
    """Where its code is, and all that leads there."""
    ours = Path(__file__).resolve().parents[1]
    folders = [Path(path) for path in sys.path if path and os.path.isdir(path)]
    seen: dict[Path, None] = {}
    for place in (Path(python), ours, *folders):
        for step in (place, *place.parents):
            seen.setdefault(step)
    yield from seen
    for folder, _, files in os.walk(ours):
        yield from (Path(folder, name) for name in (".", *files))
