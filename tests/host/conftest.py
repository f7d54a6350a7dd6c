"""Processes that are ended with the test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that are ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start_it(*argv: str, **options: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(argv, **options))  # type: ignore[call-overload]
        return started[-1]

    yield start_it
    for process in started:
        process.kill()
        process.wait()
