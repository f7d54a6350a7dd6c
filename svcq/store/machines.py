"""The machines that share a store: their services, and how each is asked for the output it keeps.

A store that machines do not share knows of none: there, what runs is seen on the machine itself.
"""

from __future__ import annotations

from typing import Any

from svcq.store.engine import Engine, Transaction
from svcq.times import iso
from svcq.tuples import NamedTuple

HEARD_EVERY = 5.0  # seconds
# Until then one that is silent may be slow; after a day it is history.
SILENT_AFTER = 20_000
_FORGOTTEN_AFTER = 86_400_000


class Door(NamedTuple):
    """Where a service is asked from beyond its machine, and what lets one read there. Whoever may
    open the store may run commands on that machine, and so may have this too."""

    address: str
    port: int
    name: str
    certificate: str
    token: str = ""  # where it is known


class Service(NamedTuple):
    host: str
    home: str
    pid: int
    heard_at: int
    runs: bool  # as far as was heard lately
    door: Door | None

    def as_json(self) -> dict[str, Any]:
        """Never with its token."""
        return {
            "host": self.host,
            "home": self.home,
            "pid": self.pid,
            "heard_at": iso(self.heard_at),
            "running": self.runs,
        }


def note(engine: Engine, host: str, home: str, pid: int) -> None:
    """A sign of life of a service and its clock."""
    if engine.shared:
        engine.at_once("note_service", host=host, home=home, pid=pid)


def leave(engine: Engine, host: str, home: str, pid: int) -> None:
    if engine.shared:
        engine.at_once("forget_service", host=host, home=home, pid=pid)


def offer(engine: Engine, host: str, home: str, door: Door | None) -> None:
    """How others get the output that is kept there; None when they do not."""
    if engine.shared:
        address, port, name, certificate, token = door or (None, None, None, None, None)
        engine.at_once("offer_output", host=host, home=home, address=address, port=port,
                       site=name, certificate=certificate, secret=token)  # fmt: skip


def token_of(tx: Transaction, service: Service) -> str:
    """What lets one read there."""
    row = tx.row("service_token", host=service.host, home=service.home)
    return "" if row is None or row[0] is None else str(row[0])


def services(tx: Transaction, engine: Engine) -> list[Service]:
    if not engine.shared:
        return []
    found = []
    for host, home, pid, heard_at, *door in tx.rows("services", since=tx.now - _FORGOTTEN_AFTER):
        runs = abs(tx.now - heard_at) < SILENT_AFTER
        found.append(Service(host, home, pid, heard_at, runs, Door(*door) if door[0] else None))
    return found
