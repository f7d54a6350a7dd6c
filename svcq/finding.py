"""What one look for trouble has found: a line that says it, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from svcq.errors import SvcqError


class Finding(NamedTuple):
    check: str
    ok: bool
    says: str
    remedy: str = ""

    def as_json(self) -> dict[str, object]:
        return self._asdict()


def said_by(check: str, look: Callable[[], Finding]) -> Iterator[Finding]:
    """A check whose own errors are findings."""
    try:
        yield look()
    except SvcqError as error:
        yield problem(check, str(error))
    except OSError as error:
        yield problem(check, f"{error.filename or check}: {error.strerror or error}.")


def problem(check: str, sentence: str) -> Finding:
    """Our errors already end with their remedy."""
    return Finding(check, False, sentence.rstrip("."))
