"""What became of the last services of a home: a loop of crashes is told, and slowed down.

The manager starts what fails anew at once, which is right for one crash and wrong for the tenth.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from svcq import host
from svcq.errors import SvcqError
from svcq.host import processes, service
from svcq.times import MINUTE, SECOND, format_duration, now_ms
from svcq.version import __version__

WITHIN = 10 * MINUTE  # the time in which crashes make a loop
BEFORE_WAITING = 3
_LONGEST_WAIT = 60
_REMEMBERED = 20
_WELL = "ended when asked"


class Start(NamedTuple):
    """One service: when it began, and how it ended, as far as it could still say so."""

    at: int
    boot: str
    pid: int
    version: str
    how: str | None = None


class Crashes(NamedTuple):
    """How often in a row services ended unasked for, a short while ago."""

    times: int
    last: str  # how the last one ended


class Starts:
    """Notes a start and its end, and waits before it where the last ones have crashed."""

    def __init__(self, home: Path, leaving: threading.Event, say: Callable[[str], None]) -> None:
        self._home = home
        self._leaving = leaving
        self._say = say

    def __enter__(self) -> None:
        crashes = recent_crashes(self._home)
        self._note(Start(now_ms(), processes.boot_id(), os.getpid(), __version__))
        if crashes.times < BEFORE_WAITING:
            return
        wait = min(2 ** (crashes.times - BEFORE_WAITING), _LONGEST_WAIT)
        says = (
            f"The service has crashed {crashes.times} times in a row ({crashes.last}); "
            f"it waits {format_duration(wait * SECOND)} before it tries again."
        )
        self._say(says)
        service.notify(f"STATUS={says}")
        self._leaving.wait(wait)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or (isinstance(error, SystemExit) and not error.code):
            self._end(_WELL)
        else:
            sentence = isinstance(error, SvcqError)
            self._end(str(error) if sentence else f"{type(error).__name__}: {error}")

    def _end(self, how: str) -> None:
        known = read(self._home)
        if known and known[-1].pid == os.getpid():
            _write(self._home, [*known[:-1], known[-1]._replace(how=how)])

    def _note(self, start: Start) -> None:
        _write(self._home, [*read(self._home), start])


def recent_crashes(home: Path, running: int | None = None) -> Crashes:
    """Of this boot, since the end of the machine is no crash; `running` is a pid that lives."""
    boot, since = processes.boot_id(), now_ms() - WITHIN
    times, last = 0, ""
    for start in reversed(read(home)):
        if start.pid == running:
            continue
        if start.boot != boot or start.at < since or start.how == _WELL:
            break
        times += 1
        last = last or start.how or "without a word"
    return Crashes(times, last)


def forget(home: Path) -> None:
    """Someone asks for a start: the past shall not slow it down."""
    with suppress(OSError):
        _file(home).unlink()


def read(home: Path) -> list[Start]:
    """Oldest first; nothing where the file is missing or not ours to understand."""
    try:
        return [Start(**one) for one in json.loads(_file(home).read_text())]
    except (OSError, ValueError, TypeError):
        return []


def _write(home: Path, starts: list[Start]) -> None:
    text = json.dumps([start._asdict() for start in starts[-_REMEMBERED:]], indent=1)
    with suppress(OSError):  # a full disk is told elsewhere
        host.write_private(_file(home), text)


def _file(home: Path) -> Path:
    return home / "service.starts"
