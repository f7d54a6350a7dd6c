"""The connections of one process to its store: taken for a transaction, kept while they are good.

Not psycopg's own pool: that connects in threads of its own, and answers a wrong password as it does
a slow server, with a timeout. Here whoever asks is told why at once.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from svcq import errors
from svcq.passwords import hide_password
from svcq.store.engine import Row
from svcq.store.postgres_errors import explain, refused

SCHEMA = "svcq"
OLDEST_SERVER = 13
_MOST_IDLE = 8
# After how long a server that has gone without a word, or a cable, is given up: otherwise that is
# for the system to say, which takes a quarter of an hour.
_GONE_UNHEARD = {
    "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}  # fmt: skip
_FRESH = 1.0  # seconds

Connection = psycopg.Connection[Row]


def adapt(context: Any) -> None:
    """One type for each kind of value: statements are prepared for the types they first saw."""
    context.adapters.register_dumper(int, Int8Dumper)
    context.adapters.register_dumper(str, StrDumper)


def parsed(address: str) -> dict[str, Any]:
    with suppress(psycopg.Error):
        parameters = dict(conninfo_to_dict(address))
        port = str(parameters.get("port") or "").replace(",", "")
        if port.isdigit() or not port:  # the name of a port is half of someone's password
            return parameters
    # Its own words may hold a part of the password.
    raise errors.InvalidInput(
        f"The store's address {hide_password(address)} is none of PostgreSQL: give one such as "
        "postgresql://user@host/database, with signs such as @ and / in a password as %40 and %2F."
    )


def place(parameters: dict[str, Any]) -> str:
    """Where a store is, as people are told: never with its password."""
    user = parameters.get("user")
    host = str(parameters.get("host") or parameters.get("hostaddr") or "")
    port = parameters.get("port")
    shown = f"{user}@" if user else ""
    name = parameters.get("dbname") or user or ""
    if host.startswith("/"):
        return f"postgresql://{shown}/{name}?host={host}"
    return f"postgresql://{shown}{host or 'localhost'}{f':{port}' if port else ''}/{name}"


def check_server(version: int, where: str) -> None:
    if version < OLDEST_SERVER * 10_000:
        raise errors.StoreError(
            f"The store {where} is on PostgreSQL {version // 10_000}, which is too old: svcq needs "
            f"{OLDEST_SERVER} or later."
        )


class Connections:
    def __init__(self, address: str, busy_wait_ms: int) -> None:
        self._parameters = parsed(address)
        self.where = place(self._parameters)
        self.busy_wait_ms = busy_wait_ms
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        # Nobody has to close a client: psycopg would complain of what it finds open.
        weakref.finalize(self, _close_all, self._idle, os.getpid())
        self._pid = os.getpid()
        self._given = 0.0  # when the last of them was in use

    def take(self) -> tuple[Connection, bool]:
        """A connection that nobody else has; whether it was used before, and may be dead."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._idle.clear()  # those of the process we are a copy of
            if self._idle:
                return self._idle.pop(), True
        return self.make(), False

    def take_fresh(self) -> Connection | None:
        """One that was used a moment ago, so that it is alive; None if there is none."""
        with self._lock:
            if self._pid != os.getpid() or not self._idle:
                return None
            if time.monotonic() - self._given > _FRESH:
                return None
            return self._idle.pop()

    def give(self, connection: Connection) -> None:
        with self._lock:
            good = not connection.closed and not connection.broken
            quiet = good and connection.info.transaction_status.name == "IDLE"
            if quiet and self._pid == os.getpid() and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                self._given = time.monotonic()
                return
        connection.close()

    def make(self) -> Connection:
        """A new one, told what holds for all of its transactions."""
        # The address may say what it likes of these.
        defaults = {**_GONE_UNHEARD, "connect_timeout": 10, "application_name": "svcq"}
        try:
            connection: Connection = psycopg.connect(
                **{**defaults, **self._parameters}, autocommit=True, client_encoding="UTF8",
            )  # fmt: skip
        except psycopg.Error as error:
            raise refused(error, self.where) from error
        # As psycopg marks those of a pool: they end with the program, or belong to its parent.
        connection._pool = None  # noqa: SLF001
        try:
            self._prepare(connection)
        except psycopg.Error as error:
            connection.close()
            raise explain(error, self.where) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: Connection) -> None:
        check_server(connection.info.server_version, self.where)
        adapt(connection)
        connection.prepare_threshold = 2
        connection.prepared_max = 500
        connection.execute(
            f"SET search_path = {SCHEMA}; SET lock_timeout = {self.busy_wait_ms};"
            # The statements are written to go along their indexes, row by row, as SQLite has it.
            # Plans are kept, and one that was made while a table was small, or not yet counted,
            # would read all of it when it has grown.
            "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
            "SET jit = off;"
            # Whoever turned it off for a whole server did not think of what is told as done here.
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'",
            prepare=False,
        )

    def close(self) -> None:
        with self._lock:
            _close_all(self._idle, self._pid)


def _close_all(connections: list[Connection], pid: int) -> None:
    """But for those of the process that this one is a copy of."""
    idle, connections[:] = list(connections), []
    if pid == os.getpid():
        for connection in idle:
            connection.close()
