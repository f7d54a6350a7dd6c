"""What the tests of the client share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.config import load
from svcq.errors import SvcqError

ROOT = Path(__file__).parents[1]


def open_client(home: Path) -> Client:
    """A client of that home, whatever the variables of whoever runs the tests say."""
    return Client(config=load(home, {}))


def assert_sentence(error: BaseException, *named: object) -> None:
    """One of our errors: one sentence that names the value, written for a reader."""
    message = str(error)
    assert isinstance(error, SvcqError), repr(error)
    assert message.endswith((".", "?")), message
    assert "\n" not in message, message
    assert len(message) < 600, f"{len(message)} characters: {message[:600]}"
    for value in named:
        assert str(value) in message or repr(value) in message, message


@contextmanager
def refused(client: Client, kind: type[SvcqError], *named: object) -> Iterator[None]:
    """What happens inside is refused with a sentence, leaves no trace, and harms nothing."""
    before = client.counts(), client.queues(), client.follow().cursor
    with pytest.raises(kind) as caught:
        yield
    assert_sentence(caught.value, *named)
    assert (client.counts(), client.queues(), client.follow().cursor) == before
    job = client.command("true", queue="after-a-refusal")
    assert client.get(job) == job


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A process of its own: it may fork, and be killed, as it likes."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
