"""What many tests need."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(predicate: Callable[[], T], timeout: float = 30.0, interval: float = 0.01) -> T:
    """Wait until `predicate` holds and return what it said; fail with what it last said."""
    deadline = time.monotonic() + timeout
    while True:
        answer = predicate()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {timeout:g} s; the last answer was {answer!r}.")
        time.sleep(interval)
