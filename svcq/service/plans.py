"""What is to happen once when all work is done (`svcq when-done`), as files of the home.

It is about this machine and not about the store, which others may share, and it outlives whoever
will carry it out. Who takes the file away first, to act or to cancel, has it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from svcq import host
from svcq.jobs import State
from svcq.store import Queue
from svcq.times import SECOND, iso, now_ms

# What there still is to do. A person holds what is held, and what is pending in a paused queue:
# neither starts by itself.
UNDONE = (State.PROCESSING, State.PENDING, State.RETRYING, State.SCHEDULED, State.BLOCKED)


class Plan(NamedTuple):
    action: str  # sleep, shutdown or command
    asked_at: int
    wait: int  # milliseconds between the end of all work and the action
    queues: tuple[str, ...] = ()  # whose work it is about; none: all
    boot: str | None = None  # sleep and shutdown are not meant for the next start of the machine
    command: list[str] | str | None = None
    cwd: str | None = None
    env: Mapping[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """As it is shown: an environment may hold secrets."""
        return {
            "action": self.action, "command": self.command, "queues": list(self.queues),
            "wait": self.wait / SECOND, "asked_at": iso(self.asked_at),
        }  # fmt: skip


class Result(NamedTuple):
    """What became of the last one."""

    at: int
    done: bool
    says: str


class Plans:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = home / "when-done.json"
        self._due = home / "when-done.due"
        self._last = home / "when-done.last"
        self.lock = home / "when-done.lock"
        """Held by whoever will carry it out."""

    def read(self) -> Plan | None:
        return _read(self._file)

    def write(self, plan: Plan) -> None:
        """In place of any other."""
        host.private_directory(self._home)
        host.write_private(self._file, json.dumps(plan._asdict()))

    def take(self) -> Plan | None:
        """Take it away, to act upon it or not; None when someone was faster."""
        taken = self._file.with_name(f".{self._file.name}.{os.urandom(8).hex()}")
        try:
            os.rename(self._file, taken)
        except FileNotFoundError:
            return None
        plan = _read(taken)
        taken.unlink()
        self.note_due(None)
        return plan

    def note_due(self, at: int | None) -> None:
        """When it happens, if nothing comes between; for whoever asks."""
        if at is None:
            self._due.unlink(missing_ok=True)
        else:
            host.write_private(self._due, str(at))

    def due(self) -> int | None:
        with suppress(OSError, ValueError):
            return int(self._due.read_text())
        return None

    def note_result(self, *, done: bool, says: str) -> None:
        host.write_private(self._last, json.dumps(Result(now_ms(), done, says)._asdict()))

    def last(self) -> Result | None:
        with suppress(OSError, ValueError, TypeError):
            return Result(**json.loads(self._last.read_text()))
        return None

    def someone_will(self) -> bool:
        """Whether a service, or `svcq up`, is there to carry it out."""
        from svcq.host import processes  # with more than a look at what is planned needs

        return processes.lock_is_held(self.lock)


def _read(file: Path) -> Plan | None:
    with suppress(OSError, ValueError, TypeError):
        plan = Plan(**json.loads(file.read_text()))
        return plan._replace(queues=tuple(plan.queues))
    return None


class _Counted(Protocol):
    """A store, or a client of one."""

    def counts(self, queue: str | None = None) -> dict[str, int]: ...

    def queues(self) -> list[Queue]: ...


def left_to_do(store: _Counted, queues: tuple[str, ...]) -> dict[str, int]:
    """How many jobs a plan waits for, by state."""
    paused = {queue.name for queue in store.queues() if queue.paused}
    found = [store.counts(queue) for queue in queues] if queues else [store.counts()]
    left = {state.value: sum(counts[state] for counts in found) for state in UNDONE}
    parked = [store.counts(queue) for queue in paused if queue in queues or not queues]
    left[State.PENDING] -= sum(counts[State.PENDING] for counts in parked)
    return {state: n for state, n in left.items() if n}
