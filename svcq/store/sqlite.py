"""SQLite as an engine: one file in WAL mode, one connection for a process.

Durable transactions commit with synchronous=FULL, the others with NORMAL: a FULL commit syncs the
write-ahead log and with it everything that was written before.

SQLite lets one writer in at a time and polls for its turn with growing sleeps, which starves
whoever waits longest. We poll ourselves, in short steps, so that a busy store is a delay and
never an error; and workers, who write all the time, let go first whoever else waits.
"""

from __future__ import annotations

import os
import sqlite3
import time
from _thread import RLock, allocate_lock  # as functools has it: threading brings more
from _weakref import ref  # and weakref more than references
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

from svcq import errors
from svcq.host.bell import ring
from svcq.host.turn import Turn
from svcq.store.engine import BATCH, Queries, Row, Statement, load_queries
from svcq.times import format_duration, now_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from svcq.host.bell import Bell

# "svcq" in ASCII: how the file says whose it is.
APPLICATION_ID = 0x73766371

_FIRST_NAP = 0.0002
_LONGEST_NAP = 0.0005
# How long a worker lets others go first; then it takes its chance like everyone.
_POLITE = 0.02


class SqliteTransaction:
    __slots__ = ("_execute", "_queries", "cursor", "now")

    alone = True

    def __init__(self, cursor: sqlite3.Cursor, queries: Queries, now: int) -> None:
        self.cursor = cursor
        self.now = now
        self._execute = cursor.execute
        self._queries = queries

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        query = self._queries[name]
        return self._execute(query.sql, query.ordered(values)).fetchall()

    def row(self, name: str, /, **values: Any) -> Row | None:
        query = self._queries[name]
        # All rows are fetched: a statement left half-read would keep its snapshot open.
        found = self._execute(query.sql, query.ordered(values)).fetchall()
        return found[0] if found else None

    def first(self, name: str, values: Sequence[Any], /) -> Row | None:
        found = self._execute(self._queries[name].sql, values).fetchall()
        return found[0] if found else None

    def each(self, *statements: Statement) -> None:
        execute, queries = self._execute, self._queries
        for name, values in statements:
            execute(queries[name].sql, values)

    def all(self, *statements: Statement) -> list[list[Row]]:
        execute, queries = self._execute, self._queries
        return [execute(queries[name].sql, values).fetchall() for name, values in statements]

    def run(self, name: str, /, **values: Any) -> int:
        query = self._queries[name]
        return self._execute(query.sql, query.ordered(values)).rowcount

    def many(self, name: str, rows: Iterable[Sequence[Any]], /) -> None:
        self.cursor.executemany(self._queries[name].sql, rows)

    def stream(self, name: str, /, **values: Any) -> Iterator[list[Row]]:
        query = self._queries[name]
        cursor = self.cursor.connection.execute(query.sql, query.ordered(values))
        while rows := cursor.fetchmany(BATCH):
            yield rows

    def fill(self, name: str, rows: Sequence[Sequence[Any]], /) -> None:
        table, columns = self._queries[name].reads()
        marks = ", ".join("?" * len(columns))
        # The names are those of a statement of ours.
        into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        self.cursor.executemany(into, rows)

    def script(self, text: str, /) -> None:
        """Statement by statement: executescript would commit the transaction we are in."""
        statement = ""
        for line in text.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self._execute(statement)
                statement = ""


class Writing(SqliteTransaction):
    """A transaction that writes, as a context. Not a generator, which costs as much as a statement
    or two."""

    __slots__ = ("_durable", "_engine", "_polite")

    def __init__(self, engine: SqliteEngine, queries: Queries, durable: bool, polite: bool) -> None:
        self._engine = engine
        self._queries = queries
        self._durable = durable
        self._polite = polite

    def __enter__(self) -> Self:
        cursor, self.now = self._engine.begin(self._durable, self._polite)
        self.cursor = cursor
        self._execute = cursor.execute
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        self._engine.end(self.cursor, error)


class SqliteEngine:
    name = "sqlite"
    shared = False

    def __init__(
        self, path: str, *, busy_wait_ms: int = 30_000, clock: Callable[[], int] | None = None
    ) -> None:
        self.path = self.where = path
        self.bells = f"{path}-bells"
        self.clock = clock or now_ms
        self._busy_wait_ms = busy_wait_ms
        self._queries = load_queries(self.name)
        self._turn = Turn(f"{path}-turn")
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._durable: bool | None = None
        self._own_writes = 0
        _engines.add(ref(self, _engines.discard))

    @contextmanager
    def read(self) -> Iterator[SqliteTransaction]:
        with self._lock, self._explained():
            cursor = self._cursor()
            if cursor.connection.in_transaction:
                raise self._in_use()
            try:
                cursor.execute("BEGIN")
                # What takes the snapshot is the first look, and that may find the store locked:
                # by whoever was the last to close it, or by a program that wants it for itself.
                self._patiently(cursor.execute, "PRAGMA schema_version")
                yield SqliteTransaction(cursor, self._queries, self.clock())
            finally:
                if cursor.connection.in_transaction:
                    cursor.execute("COMMIT")

    def look(self, *statements: Statement) -> list[list[Row]]:
        with self.read() as tx:
            return tx.all(*statements)

    def add_call(self, _: Row) -> None:
        """It has no messages to spare."""

    def write(self, *, durable: bool, polite: bool = False, alone: bool = True) -> Writing:  # noqa: ARG002 (whoever writes here is)
        return Writing(self, self._queries, durable, polite)

    def begin(self, durable: bool, polite: bool) -> tuple[sqlite3.Cursor, int]:
        """Start a write, now; the lock of this process is held until `end`."""
        self._lock.acquire()
        if self._connection is not None and self._connection.in_transaction:
            self._lock.release()
            raise self._in_use()
        try:
            cursor = self._writer if self._connection is not None else self._cursor()
            if durable is not self._durable:
                cursor.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            if polite:
                self._let_others_go_first()
            try:
                cursor.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                self._wait_to_begin(cursor, error, polite)
            return cursor, self.clock()
        except BaseException as error:
            self._undo()  # an interrupt may come when it has begun
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise explain(error, self.path, self._busy_wait_ms) from error
            raise

    def end(self, cursor: sqlite3.Cursor, error: BaseException | None) -> None:
        """Commit a write, or undo it where there was an error."""
        try:
            if error is None:
                try:
                    cursor.execute("COMMIT")
                    self._own_writes += 1
                    return
                except sqlite3.Error as failed:
                    error = failed
            self._undo()
            if isinstance(error, sqlite3.Error):
                raise explain(error, self.path, self._busy_wait_ms) from error
        finally:
            self._lock.release()

    def _in_use(self) -> errors.StoreError:
        return errors.StoreError(
            f"The store {self.path} is in the middle of a transaction of this very thread: use it "
            "when that has ended, not from a signal handler or from lines that an import reads."
        )

    def _undo(self) -> None:
        # SQLite has already rolled back after some errors (a full disk, say).
        with suppress(sqlite3.Error):
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def borrowed(self, connection: Any, *, alone: bool = True) -> Iterator[SqliteTransaction]:  # noqa: ARG002
        """A part of the caller's own transaction: it commits, or does not, with theirs."""
        if not isinstance(connection, sqlite3.Connection):
            raise errors.InvalidInput(
                f"The connection is one of {type(connection).__module__.partition('.')[0]}, and "
                f"the store {self.path} is a file of SQLite: give a connection of sqlite3 to it."
            )
        with self._explained():
            cursor = connection.cursor()
            cursor.row_factory = None
            cursor.execute("PRAGMA database_list")
            main = next(file for _, schema, file in cursor.fetchall() if schema == "main")
        if not main or not os.path.samefile(main, self.path):
            raise errors.InvalidInput(
                f"The connection is on {main or 'a database in memory'}, not on the store "
                f"{self.path}: open the store's own file."
            )
        with self._explained():
            if not connection.in_transaction and connection.isolation_level is not None:
                # As Python does before a write: a savepoint outside a transaction commits itself.
                cursor.execute(f"BEGIN {connection.isolation_level}")
            cursor.execute("SAVEPOINT svcq")
            try:
                yield SqliteTransaction(cursor, self._queries, self.clock())
            except BaseException:
                with suppress(sqlite3.Error):
                    cursor.execute("ROLLBACK TO svcq")
                    cursor.execute("RELEASE svcq")
                raise
            cursor.execute("RELEASE svcq")

    def connection(self) -> sqlite3.Connection:
        """The raw connection, for what is SQLite's own: backup, migration."""
        return self._cursor().connection

    def write_mark(self) -> tuple[int, int]:
        """Changes whenever someone has written: other connections, or this one."""
        with self._lock, self._explained():
            version = self._cursor().execute("PRAGMA data_version").fetchone()[0]
            return version, self._own_writes

    def settle(self, tx: SqliteTransaction) -> None:
        """Whoever writes is alone."""

    def ring(self, whom: str = "") -> None:
        ring(os.path.join(self.bells, whom) if whom else self.bells)

    def at_once(self, name: str, /, **values: Any) -> int:
        with self.write(durable=False) as tx:
            return tx.run(name, **values)

    def hear(self, bell: Bell, whom: str = "") -> nullcontext[None]:  # noqa: ARG002
        """Everyone who writes here can reach it."""
        return nullcontext()

    def size(self) -> int:
        """Of the file and what stands beside it."""
        total = 0
        for name in (self.path, f"{self.path}-wal"):
            with suppress(FileNotFoundError):
                total += os.stat(name).st_size
        return total

    def keep_copy(self, version: int) -> None:
        """Before an upgrade from a version."""
        from svcq.store import files

        files.copy(self.path, files.backup_name(self.path, version), environments=True)

    def fresh(self) -> SqliteEngine:
        return SqliteEngine(self.path, busy_wait_ms=self._busy_wait_ms, clock=self.clock)

    def tidy(self) -> None:
        """Shrink the file by pages that deletions freed."""
        with self._lock, self._explained():
            # It answers each page with a row of no columns, at the first of which execute() stops.
            self._patiently(self._cursor().executescript, "PRAGMA incremental_vacuum(2000)")

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._turn.close()

    def before_fork(self) -> None:
        """Let go of the connection: a child that has a copy of one believes to hold locks that are
        its parent's, and loses what it writes once that has closed."""
        self._lock.acquire()
        self.close()

    def after_fork(self) -> None:
        self._lock.release()

    def _cursor(self) -> sqlite3.Cursor:
        if self._connection is None:
            self._connection = self._open()
            self._durable = None
            self._writer = self._connection.cursor()
        return self._connection.cursor()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{_quoted(os.path.realpath(self.path))}?mode=rw",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            self._check_owner(connection)
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_owner(self, connection: sqlite3.Connection) -> None:
        """Reading its id, SQLite also sees whether the file is a database, and whole."""
        found = self._patiently(connection.execute, "PRAGMA application_id").fetchone()[0]
        if found != APPLICATION_ID:
            raise errors.NotAStore(
                f"{self.path} is a database of another program: name another file as the store."
            )

    def _let_others_go_first(self) -> None:
        until = time.monotonic() + _POLITE
        while self._turn.someone_waits() and time.monotonic() < until:
            time.sleep(_FIRST_NAP)

    def _wait_to_begin(
        self, cursor: sqlite3.Cursor, error: sqlite3.OperationalError, polite: bool
    ) -> None:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise error
        with nullcontext() if polite else self._turn.waiting():
            self._patiently(cursor.execute, "BEGIN IMMEDIATE")

    def _patiently(
        self, execute: Callable[[str], sqlite3.Cursor], statement: str
    ) -> sqlite3.Cursor:
        deadline = 0.0
        nap = _FIRST_NAP
        while True:
            try:
                return execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                now = time.monotonic()
                deadline = deadline or now + self._busy_wait_ms / 1000
                if now > deadline:
                    raise
            time.sleep(nap)
            nap = min(nap * 1.5, _LONGEST_NAP)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise explain(error, self.path, self._busy_wait_ms) from error


_engines: set[ref[SqliteEngine]] = set()
_forking: list[SqliteEngine] = []
_fork_lock = allocate_lock()  # two threads that fork at once would wait for each other's engines


def _before_fork() -> None:
    _fork_lock.acquire()
    _forking.extend(filter(None, [engine() for engine in list(_engines)]))
    for engine in _forking:
        engine.before_fork()


def _after_fork() -> None:
    while _forking:
        _forking.pop().after_fork()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


def _quoted(path: str) -> str:
    """A path in a URI, by SQLite's own recipe: these three have a meaning there."""
    path = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    # Where paths begin with a drive, the drive would be taken for a host.
    return path if path.startswith("/") else "/" + path.replace("\\", "/")


def not_a_store(path: str) -> errors.NotAStore:
    return errors.NotAStore(
        f"{path} is not a svcq store: name another file as the store, or move it away."
    )


def explain(error: sqlite3.Error, path: str, busy_wait_ms: int) -> errors.SvcqError:
    """SQLite's error as one of ours."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # raised by the Python module itself: a closed connection, a bad value
        return errors.StoreError(f"The store {path} could not be used: {error}.")
    code &= 0xFF
    folder = os.path.dirname(path)
    if code == sqlite3.SQLITE_CANTOPEN and os.path.exists(path) and not os.access(folder, os.W_OK):
        # Even to be read it needs its log beside it, which cannot be made there.
        code = sqlite3.SQLITE_READONLY
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return errors.StoreBusy(
                f"The store {path} was locked by another program for "
                f"{format_duration(busy_wait_ms)}: close what holds it (fuser names it), "
                "or raise busy_wait."
            )
        case sqlite3.SQLITE_FULL:
            return errors.StoreFull(
                f"The disk under the store {path} is full; nothing was written: free some space."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return errors.StoreReadOnly(
                f"The store {path} may not be written ({error}): "
                "check the permissions of the file, its folder and its file system."
            )
        case sqlite3.SQLITE_NOTADB:
            return not_a_store(path)
        case sqlite3.SQLITE_CORRUPT:
            return errors.StoreDamaged(
                f"The store {path} is damaged ({error}): "
                "stop svcq and restore it from a backup; what is there is left untouched."
            )
        case sqlite3.SQLITE_CANTOPEN:
            return errors.StoreError(
                f"The store {path} cannot be opened: check that it and its folder exist "
                "and are yours."
            )
        case _:
            return errors.StoreError(
                f"The store {path} could not be used ({error}): check the disk and try again."
            )
