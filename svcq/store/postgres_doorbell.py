"""The doorbell on PostgreSQL: NOTIFY, and a thread that listens and rings a bell of this machine.

A burst rings once: who has just rung does not ring again for a moment, and who hears a ring looks
once more after that moment has passed. What was written before either is seen.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import psycopg

from svcq.errors import SvcqError
from svcq.host.bell import Bell
from svcq.store.engine import Row
from svcq.store.postgres_connections import Connections

CHANNEL = "svcq"
_BURST = 0.02  # seconds for which a ring counts
_AFTER = 0.03  # and after which it is looked again
_FIRST_NAP = 0.1
_LONGEST_NAP = 5.0


class Doorbell:
    """Tells others that something was written."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._rung: dict[str, float] = {}

    def ring(self, whom: str) -> None:
        now = time.monotonic()
        if now - self._rung.get(whom, 0.0) < _BURST:
            return
        # What was written is written: that nobody could be told must not look like a failure.
        with suppress(psycopg.Error, SvcqError):
            connection, _ = self._connections.take()
            try:
                # Whoever waits for a disk to be told would hold up all others who ring.
                connection.execute(
                    f"SELECT set_config('synchronous_commit', 'off', true),"
                    f" pg_notify('{CHANNEL}', '{whom}')"
                )
                self._rung[whom] = now
            finally:
                self._connections.give(connection)

    @staticmethod
    def ring_in(cursor: psycopg.RawCursor[Any], whom: str) -> None:
        """When the transaction commits."""
        cursor.execute("SELECT pg_notify($1, $2)", (CHANNEL, whom))


class Listener:
    """Rings a bell of this machine when someone rings anywhere, until it is left."""

    def __init__(self, connections: Connections, bell: Bell, whom: str) -> None:
        self._connections = connections
        self._bell = bell
        self._whom = whom
        self._leaving = threading.Event()
        self._hands = threading.Lock()  # on the bell: whoever leaves us closes it next

    def __enter__(self) -> None:
        self._left, self._leave = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="svcq-doorbell", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        with self._hands:
            self._leaving.set()
        self._leave.close()
        # It may be waiting for a server that does not answer; it rings no more.
        self._thread.join(0.5)

    def _listen(self) -> None:
        nap = _FIRST_NAP
        while not self._leaving.is_set():
            try:
                with self._connections.make() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._ring()  # for what was written while nobody listened
                    nap = _FIRST_NAP
                    self._hear(connection)
            except (psycopg.Error, SvcqError):
                # Workers look about once a second besides, and say what is wrong with the store.
                self._leaving.wait(nap)
                nap = min(nap * 2, _LONGEST_NAP)
        self._left.close()

    def _hear(self, connection: psycopg.Connection[Row]) -> None:
        again, line, left = None, connection.fileno(), self._left.fileno()
        while not self._leaving.is_set():
            patience = None if again is None else max(again - time.monotonic(), 0)
            ready, _, _ = select.select([line, left], [], [], patience)
            if line in ready and self._whom in _payloads(connection):
                self._ring()
                again = again or time.monotonic() + _AFTER
            if again is not None and time.monotonic() >= again:
                again = None
                self._ring()

    def _ring(self) -> None:
        with self._hands:
            if not self._leaving.is_set():
                self._bell.ring()


def _payloads(connection: psycopg.Connection[Row]) -> set[str]:
    """Of what has arrived; an error where the connection has ended."""
    connection.pgconn.consume_input()
    found = set()
    while (one := connection.pgconn.notifies()) is not None:
        found.add(one.extra.decode())
    return found
