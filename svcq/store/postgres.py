"""PostgreSQL as an engine: the schema svcq of one database, over psycopg.

Many write at once. What only adds jobs, takes free ones or ends what it holds is kept apart by
rows; everything else (people's verbs, schedules, jobs that have to do with others) is alone, by a
lock that its transactions take first, so that its code may look and then write as on SQLite. A
transaction that finds out too late that it had to be alone is undone and begun anew (NotAlone).

Times are the server's, so that all machines share one clock.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, cached_property
from typing import Any, Self

import psycopg

from svcq import errors
from svcq.host.bell import Bell
from svcq.store.engine import BATCH, Queries, Query, Row, Statement, load_queries
from svcq.store.postgres_connections import SCHEMA, Connections
from svcq.store.postgres_doorbell import Doorbell, Listener
from svcq.store.postgres_errors import explain
from svcq.times import now_ms

# Advisory locks, by these two numbers ("svcq", and which): whoever must be alone; whoever may add
# jobs, shared by all of them; and in the schema, the counter of ids.
LOCKS = 0x73766371
_ALONE, _WRITING = 1, 2

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_COPYABLE = re.compile(r"INSERT INTO (\w+) \(([^)]*)\)\s*VALUES \(((?:\$\d+[:\w ]*[,\s]*)*)\)$")
_IDLE = psycopg.pq.TransactionStatus.IDLE
_FEW = 4  # rows: so many are inserted one by one
_SOME = 1000  # and so many at once; more of them are copied
# What changes no row of changes, as the setting of a queue, is noticed within so many seconds.
_LOOK_ANYWAY = 5


_Asked = tuple[str, Sequence[Any]]


class PostgresTransaction:
    """A transaction that speaks as seldom as it can: it begins with its first statement, in one
    message, and what has no answer goes with the next statement, or with the commit.
    """

    __slots__ = (
        "_begin", "_behind", "_cursor", "_engine", "_now", "_queries", "_unsaid", "_used", "alone",
    )  # fmt: skip

    def __init__(
        self, engine: PostgresEngine, queries: Queries, begin: Sequence[str], *, alone: bool
    ) -> None:
        self.alone = alone
        self._engine = engine
        self._queries = queries
        self._begin = begin
        self._behind: list[tuple[str, Sequence[Any]]] = []
        self._now: int | None = None
        self._used = False
        self._unsaid = True

    # Beginning and ending

    def take(self, connections: Connections) -> None:
        connection, self._used = connections.take()
        self._cursor = psycopg.RawCursor(connection)

    def joined(self, cursor: psycopg.RawCursor[Row], now: int) -> Self:
        """A part of a transaction that someone else has begun."""
        self._cursor, self._now, self._begin, self._unsaid = cursor, now, (), False
        return self

    @property
    def connection(self) -> psycopg.Connection[Any]:
        return self._cursor.connection

    @property
    def cursor(self) -> psycopg.RawCursor[Row]:
        """For what is PostgreSQL's own; everything before it has been said."""
        self._flush()
        return self._cursor

    @property
    def now(self) -> int:
        if self._now is None:
            self._flush()
        assert self._now is not None
        return self._now

    def commit(self) -> None:
        if self._begin and not self._behind:
            return  # nothing was ever said
        if self._unsaid:
            self._flush()  # a first message may have to be said again, which no COMMIT may be
        if self._behind:
            self._execute_all([("COMMIT", ())])
        else:
            self._cursor.execute("COMMIT", prepare=False)

    def _flush(self) -> None:
        if self._begin or self._behind:
            self._execute_all([])

    def _execute(self, sql: str, values: Sequence[Any]) -> psycopg.RawCursor[Row]:
        if not self._begin and not self._behind:
            return self._cursor.execute(sql, values)
        (cursor,) = self._execute_all([(sql, values)])
        return cursor

    def _execute_all(self, statements: Sequence[_Asked]) -> list[psycopg.RawCursor[Row]]:
        while True:
            try:
                return self._execute_together(statements)
            except psycopg.Error:
                # A connection that idled may be dead by now, and nothing was said yet.
                if not (self._unsaid and self._used and self.connection.closed):
                    raise
                self.take(self._engine.connections)

    def _execute_together(self, statements: Sequence[_Asked]) -> list[psycopg.RawCursor[Row]]:
        connection = self.connection
        cursors = [self._cursor, *(psycopg.RawCursor(connection) for _ in statements[1:])]
        with connection.pipeline():
            began = psycopg.RawCursor(connection)
            for statement in self._begin:
                began.execute(statement)
            behind = psycopg.RawCursor(connection)
            for text, row in self._behind:
                behind.execute(text, row)
            for cursor, (text, row) in zip(cursors, statements, strict=False):
                cursor.execute(text, row)
        if self._begin:
            self._now = self._engine.set_clock(began)
            self._begin = ()
        self._unsaid = False
        self._behind.clear()
        return cursors[: len(statements)]

    # Statements

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        query = self._queries[name]
        return self._execute(query.sql, query.ordered(values)).fetchall()

    def row(self, name: str, /, **values: Any) -> Row | None:
        query = self._queries[name]
        return self._execute(query.sql, query.ordered(values)).fetchone()

    def first(self, name: str, values: Sequence[Any], /) -> Row | None:
        return self._execute(self._queries[name].sql, values).fetchone()

    def each(self, *statements: Statement) -> None:
        for name, values in statements:
            if sql := self._queries[name].sql:
                self._behind.append((sql, values))

    def all(self, *statements: Statement) -> list[list[Row]]:
        cursors = self._execute_all(
            [(self._queries[name].sql, values) for name, values in statements]
        )
        return [cursor.fetchall() for cursor in cursors]

    def run(self, name: str, /, **values: Any) -> int:
        query = self._queries[name]
        return self._execute(query.sql, query.ordered(values)).rowcount

    def many(self, name: str, rows: Iterable[Sequence[Any]], /) -> None:
        rows = list(rows)
        query = self._queries[name]
        copy = _copy_of(query) if len(rows) > _FEW else None
        if copy is None:
            self._behind += [(query.sql, row) for row in rows]
            return
        if len(rows) <= _SOME and (insert := _insert_of_arrays(query)) is not None:
            self._behind.append((insert, [_array(column) for column in zip(*rows, strict=True)]))
            return
        with self.cursor.copy(copy) as into:
            for row in rows:
                into.write_row(row)

    def stream(self, name: str, /, **values: Any) -> Iterator[list[Row]]:
        query = self._queries[name]
        with psycopg.RawServerCursor(self.cursor.connection, f"svcq_{name}") as cursor:
            cursor.execute(query.sql, query.ordered(values))
            while rows := cursor.fetchmany(BATCH):
                yield rows

    def fill(self, name: str, rows: Sequence[Sequence[Any]], /) -> None:
        table, columns = self._queries[name].reads()
        with self.cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as into:
            for row in rows:
                into.write_row(row)

    def script(self, text: str) -> None:
        self.cursor.execute(text, prepare=False)


def _copy_of(query: Query) -> str | None:
    """A plain insert as a COPY, which takes rows several times as fast."""
    found = _COPYABLE.match(query.sql)
    if found is None:
        return None
    table, columns, values = found.groups()
    if [int(n) for n in re.findall(r"\$(\d+)", values)] != list(
        range(1, len(columns.split(",")) + 1)
    ):
        return None
    return f"COPY {table} ({columns}) FROM STDIN"


@cache
def _insert_of_arrays(query: Query) -> str | None:
    """A plain insert as one of many rows, which are said column by column: unlike a COPY it can go
    in one message with others."""
    found = _COPYABLE.match(query.sql)
    if found is None or any("::" not in value for value in found[3].split(",")):
        return None
    arrays = re.sub(r"\$(\d+)::([\w ]+)", r"$\1::text::\2[]", found[3])
    return f"INSERT INTO {found[1]} ({found[2]}) SELECT * FROM unnest({arrays})"  # noqa: S608 (of queries.sql)


def _array(values: Sequence[Any]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


class Writing(AbstractContextManager[PostgresTransaction]):
    """A transaction that writes."""

    def __init__(self, engine: PostgresEngine, *, durable: bool, alone: bool) -> None:
        self._engine = engine
        self._durable = durable
        self._alone = alone

    def __enter__(self) -> PostgresTransaction:
        self._tx = self._engine.begin(durable=self._durable, alone=self._alone)
        return self._tx

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        self._engine.end(self._tx, error)


class PostgresEngine:
    name = "postgres"
    shared = True

    def __init__(
        self, address: str, bells: str, *, busy_wait_ms: int = 30_000,
        clock: Callable[[], int] | None = None,
    ) -> None:  # fmt: skip
        self.address = address
        self.bells = bells
        self.connections = Connections(address, busy_wait_ms)
        self.where = self.connections.where
        self._doorbell = Doorbell(self.connections)
        self._queries = load_queries(self.name)
        self._clock = clock
        self._ahead = 0  # of the server's clock before ours
        self._heard = False

    # Time

    def clock(self) -> int:
        """The server's time, as far as the last transaction told."""
        if self._clock is not None:
            return self._clock()
        if not self._heard:
            with self.read() as tx:
                return tx.now
        return now_ms() + self._ahead

    def set_clock(self, cursor: psycopg.RawCursor[Row]) -> int:
        """The time that a transaction began with."""
        row = cursor.fetchone()
        assert row is not None
        self._ahead, self._heard = row[-1] - now_ms(), True
        return self.clock()

    # Transactions

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        tx = PostgresTransaction(self, self._queries, (_READ, f"SELECT {_NOW}"), alone=False)
        tx.take(self.connections)
        try:
            yield tx
        except psycopg.Error as error:
            raise explain(error, self.where) from error
        finally:
            self._let_go(tx)

    def look(self, *statements: Statement) -> list[list[Row]]:
        # What goes in one message is a transaction of its own: it has no beginning and no end.
        tx = PostgresTransaction(self, self._queries, (), alone=False)
        tx.take(self.connections)
        try:
            return tx.all(*statements)
        except psycopg.Error as error:
            raise explain(error, self.where) from error
        finally:
            self._let_go(tx)

    def add_call(self, values: Row) -> Row | None:
        connection = self.connections.take_fresh()
        if connection is None:
            return None  # it may be dead by now, and this must not be said twice
        try:
            # Both are one transaction, since they go in one message. Whoever keeps adders out has
            # ended when the second one looks.
            with connection.pipeline():
                connection.execute(f"SELECT pg_advisory_xact_lock_shared({LOCKS}, {_WRITING})")
                cursor = psycopg.RawCursor(connection)
                now = None if self._clock is None else self._clock()
                cursor.execute(self._queries["add_one_call"].sql, (now, *values))
            return cursor.fetchone()
        except psycopg.errors.AdminShutdown:
            return None  # the server had let go of us before it heard this
        except psycopg.Error as error:
            raise explain(error, self.where, committing=not error.sqlstate) from error
        finally:
            self.connections.give(connection)

    def write(self, *, durable: bool, polite: bool = False, alone: bool = True) -> Writing:  # noqa: ARG002 (nobody waits for a worker here)
        return Writing(self, durable=durable, alone=alone)

    def begin(self, *, durable: bool, alone: bool) -> PostgresTransaction:
        lazily = () if durable else ("SET LOCAL synchronous_commit = off",)
        # In this order everywhere: who waits to be alone must not hold up who waits for all others.
        locks = [f"pg_advisory_xact_lock({LOCKS}, {_ALONE})"] if alone else []
        locks.append(f"pg_advisory_xact_lock_shared({LOCKS}, {_WRITING})")
        begin = ("BEGIN", *lazily, f"SELECT {', '.join(locks)}, {_NOW}")
        tx = PostgresTransaction(self, self._queries, begin, alone=alone)
        tx.take(self.connections)
        return tx

    def end(self, tx: PostgresTransaction, error: BaseException | None) -> None:
        """Commit a write, or undo it where there was an error."""
        if error is None:
            try:
                tx.commit()
            except psycopg.Error as failed:
                raise explain(failed, self.where, committing=not failed.sqlstate) from failed
            finally:
                self._let_go(tx)
            return
        self._let_go(tx)
        if isinstance(error, psycopg.Error):
            raise explain(error, self.where) from error

    def _let_go(self, tx: PostgresTransaction) -> None:
        """What was not committed by now is not to be."""
        connection = tx.connection
        with suppress(psycopg.Error):
            if not connection.closed and connection.info.transaction_status != _IDLE:
                connection.execute("ROLLBACK", prepare=False)
        self.connections.give(connection)

    def at_once(self, name: str, /, **values: Any) -> int:
        return self._at_once(name, self._queries[name].ordered(values)).rowcount

    def _at_once(self, name: str, values: Sequence[Any]) -> psycopg.RawCursor[Row]:
        """One statement is a transaction of its own."""
        while True:
            connection, used = self.connections.take()
            try:
                return psycopg.RawCursor(connection).execute(self._queries[name].sql, values)
            except psycopg.Error as error:
                # One that idled may be dead by now; what comes here may be said twice.
                if not (used and connection.closed):
                    raise explain(error, self.where) from error
            finally:
                self.connections.give(connection)

    @contextmanager
    def borrowed(self, connection: Any, *, alone: bool = True) -> Iterator[PostgresTransaction]:
        """A part of the caller's own transaction: it commits, or does not, with theirs."""
        self._check_lent(connection)
        try:
            if not connection.autocommit and connection.info.transaction_status.name == "IDLE":
                # As psycopg does before a statement: a block outside a transaction commits itself.
                connection.execute("SELECT 1")
            with connection.transaction():
                cursor = self._borrowed_cursor(connection)
                before = self._step_in(cursor, alone=alone)
                tx = PostgresTransaction(self, self._queries, (), alone=alone)
                yield tx.joined(cursor, self._clock_of(cursor))
                self._doorbell.ring_in(tx.cursor, "")
                cursor.execute("SELECT set_config('search_path', $1, true)", (before,))
        except psycopg.Error as error:
            raise explain(error, self.where) from error

    def _check_lent(self, connection: Any) -> None:
        if not isinstance(connection, psycopg.Connection):
            kind = type(connection)
            raise errors.InvalidInput(
                f"The connection is a {kind.__module__.partition('.')[0]}.{kind.__name__}, and the "
                f"store {self.where} is on PostgreSQL: give a psycopg.Connection (of psycopg 3)."
            )
        if connection.closed:
            raise errors.StoreError(
                f"The connection to the store {self.where} is closed: open another one."
            )
        if connection.info.transaction_status.name == "INERROR":
            raise errors.StoreError(
                "The transaction of the connection has failed already, so that nothing can be "
                "added to it: roll it back first."
            )

    def _borrowed_cursor(self, connection: psycopg.Connection[Any]) -> psycopg.RawCursor[Row]:
        from psycopg.rows import tuple_row

        from svcq.store.postgres_connections import adapt

        cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
        adapt(cursor)
        return cursor

    def _step_in(self, cursor: psycopg.RawCursor[Row], *, alone: bool) -> str:
        """Find our tables, until the end of this; what the search path was before."""
        row = cursor.execute(
            "SELECT current_setting('search_path'), set_config('search_path', $1, true)",
            # Temporary tables of theirs would come first if they were not named last.
            (f"{SCHEMA}, pg_temp",),
        ).fetchone()
        assert row is not None
        there = cursor.execute("SELECT to_regclass('meta')").fetchone()
        theirs = None
        if there is not None and there[0] is not None:
            found = cursor.execute(self._queries["meta"].sql, ("store_id",)).fetchone()
            theirs = found and found[0]
        if theirs != self._store_id:
            raise errors.InvalidInput(
                f"The connection is not to the database of the store {self.where}: "
                "open one to that."
            )
        first = f"pg_advisory_xact_lock({LOCKS}, {_ALONE}), " if alone else ""
        cursor.execute(
            f"SELECT set_config('svcq.slot', (-pg_backend_pid())::text, true), {first}"
            f"pg_advisory_xact_lock_shared({LOCKS}, {_WRITING})"
        )
        return str(row[0])

    @cached_property
    def _store_id(self) -> str:
        with self.read() as tx:
            row = tx.row("meta", key="store_id")
        return "" if row is None else str(row[0])

    def _clock_of(self, cursor: psycopg.RawCursor[Row]) -> int:
        if self._clock is not None:
            return self._clock()
        row = cursor.execute(f"SELECT {_NOW}").fetchone()
        assert row is not None
        return int(row[0])

    def settle(self, tx: PostgresTransaction) -> None:
        """Wait until nobody else is adding jobs, and keep them out until this transaction ends."""
        tx.script("SET LOCAL lock_timeout = '5s'")
        tx.script(f"SELECT pg_advisory_xact_lock({LOCKS}, {_WRITING})")

    # The rest

    def write_mark(self) -> tuple[int, int]:
        """Changes whenever someone has written, or after a while."""
        row = self._at_once("newest_change", ()).fetchone()
        assert row is not None
        return int(row[0]), int(time.monotonic() / _LOOK_ANYWAY)

    def ring(self, whom: str = "") -> None:
        self._doorbell.ring(whom)

    def hear(self, bell: Bell, whom: str = "") -> AbstractContextManager[object]:
        """Let a bell of this machine ring when someone rings anywhere."""
        return Listener(self.connections, bell, whom)

    def tidy(self) -> None:
        """Put together the rows of counters that only one transaction had."""
        with self.write(durable=False) as tx:
            tx.run("gather_counts")
            tx.run("gather_minutes")

    def size(self) -> int:
        with self.read() as tx:
            row = tx.row("schema_size", schema=SCHEMA)
            return 0 if row is None else int(row[0] or 0)

    def keep_copy(self, version: int) -> None:
        """An upgrade is one transaction, and copies are what pg_dump is for."""

    def fresh(self) -> Self:
        """Another one on the same store, with connections of its own."""
        return type(self)(
            self.address, self.bells, busy_wait_ms=self.connections.busy_wait_ms,
            clock=self._clock,
        )  # fmt: skip

    def close(self) -> None:
        self.connections.close()
