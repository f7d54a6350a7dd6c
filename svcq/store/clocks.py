"""Who fires schedules, and what comes next. Apart from the schedules themselves: `svcq status` asks
for this, and need not wait for time zones."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from svcq.host.bell import listening
from svcq.store.engine import Transaction
from svcq.store.machines import Service
from svcq.times import iso


class Standing(NamedTuple):
    """What there is for a clock to do, and who does it. Times in Unix milliseconds."""

    clocks: tuple[int, ...]  # the processes, on this machine
    schedules: int
    active: int  # those that a clock fires
    paused: int
    next_due: int | None  # when the next one fires
    next_name: str | None
    next_nominal: int | None  # and what for
    elsewhere: tuple[str, ...] = ()  # the machines (or homes) of other clocks, heard of lately

    def as_json(self) -> dict[str, Any]:
        return {
            "running": bool(self.clocks or self.elsewhere),
            "pids": list(self.clocks),
            "schedules": self.schedules,
            "active": self.active,
            "paused": self.paused,
            "next": self.next_name,
            "next_at": iso(self.next_nominal),
            "elsewhere": list(self.elsewhere),
        }


def standing(
    tx: Transaction, bells: str, services: Sequence[Service] = (), home: str = ""
) -> Standing:
    """`home`: whose clocks are known by their bells."""
    clocks = tuple(int(name.partition("-")[0]) for name in listening(bells))
    counted, first = tx.row("count_schedules"), tx.row("next_schedule")
    assert counted is not None
    here = socket.gethostname()
    others = [
        one.host if one.host != here else one.home
        for one in services if one.runs and (one.host, one.home) != (here, home)
    ]  # fmt: skip
    found = Standing(clocks, *counted, *(first or (None, None, None)))
    return found._replace(elsewhere=tuple(others))
