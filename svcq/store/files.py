"""The store's file: made whole or not at all, checked before it is trusted, copied while in use."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

from svcq import host
from svcq.errors import InvalidInput, NotAStore, NotPermitted, StoreDamaged, StoreReadOnly, shown
from svcq.store.engine import load_queries
from svcq.store.sqlite import APPLICATION_ID, SqliteTransaction, explain, not_a_store
from svcq.store.versions import migrate, schema_folder
from svcq.times import now_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from svcq.store.engine import Transaction


def open_or_make(path: str) -> None:
    """Make sure there is a store at `path` that is ours, whole, and closed to others."""
    try:
        there = True
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise NotAStore(f"The store {path} is a directory: name a file, such as svcq.db in it.")
    except (FileNotFoundError, NotADirectoryError):
        there = False
    except PermissionError as error:
        raise NotPermitted(
            f"The store {path} cannot be looked at ({error.strerror}): run svcq as its owner."
        ) from error
    if not there:
        _make(path)
    host.check_private(path)
    check_file(path)


def _make(place: str) -> None:
    """Build the store beside its place and put it there in one step, so that none is half made."""
    from pathlib import Path

    path = Path(place)
    host.private_directory(path.parent)
    draft = path.with_name(f".{path.name}.{_token()}.new")
    try:
        os.close(host.create_private(draft))
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            tx = _begin_store(connection)
            name_anew(tx)
            connection.execute("COMMIT")
        _publish(draft, path)
    except sqlite3.Error as error:
        raise explain(error, place, 0) from error
    except PermissionError as error:
        raise NotPermitted(
            f"The store {path} cannot be made ({error.strerror}): name another place as the store."
        ) from error
    except OSError as error:
        if error.errno == 30:  # EROFS
            raise StoreReadOnly(
                f"The store {path} cannot be made, its file system is read-only: "
                "name another place as the store."
            ) from error
        raise InvalidInput(
            f"The store {path} cannot be made ({error.strerror}): name another place as the store."
        ) from error
    finally:
        for name in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm")):
            name.unlink(missing_ok=True)


def _token() -> str:
    from secrets import token_hex

    return token_hex(8)


def _begin_store(connection: sqlite3.Connection) -> SqliteTransaction:
    """The tables of a new store, in a transaction that is the caller's to end."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    tx = SqliteTransaction(connection.cursor(), load_queries("sqlite"), now_ms())
    migrate(tx, schema_folder("sqlite"), fresh=True)
    return tx


def name_anew(tx: Transaction) -> None:
    """Give a store a name that no other has, by which its processes are told from others'."""
    tx.run("set_meta", key="store_id", value=_token())


def _publish(draft: Path, path: Path) -> None:
    """Give the draft its name unless another process was faster; then that one's store is used."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links. A rename could replace a store, so look first;
        # the window is the instant between, on a store that is younger than that.
        if not path.exists():
            os.rename(draft, path)
    host.sync_directory(path.parent)


def check_file(path: str) -> None:
    """Refuse what cannot be a store, by its name and mode alone.

    The file itself is read by SQLite only: to open and close it beside a connection of this
    process would drop the locks of that connection.
    """
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise NotAStore(f"{path} is a directory, not a svcq store: name a file in it.")
    if status.st_size < 512:  # the smallest page: SQLite would take less for a new database
        raise not_a_store(path)
    if not os.access(path, os.R_OK):
        raise NotPermitted(f"The store {path} may not be read: run svcq as its owner.")
    if not os.access(path, os.W_OK):
        # SQLite would give the files beside it the same mode, and they would stay that way.
        raise StoreReadOnly(
            f"The store {path} may not be written: "
            "check the permissions of the file, its folder and its file system."
        )


def backup_name(store: str, version: int) -> Path:
    """Where the copy before an upgrade goes: beside the store, with the schema it had."""
    from pathlib import Path

    path = Path(store)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return path.with_name(f"{path.stem}-schema{version}-{stamp}{path.suffix}")


def copy(
    source: str,
    target: Path,
    *,
    environments: bool,
    settle: Callable[[str], None] = lambda _: None,
) -> None:
    """An online copy that others can go on writing under; checked before it gets its name.

    Environments may hold secrets, so they stay behind unless asked for. `settle` may write the
    copy before it is checked.
    """
    with _draft_of(target) as (draft, connection):
        with closing(sqlite3.connect(source, timeout=30, isolation_level=None)) as original:
            # One read view: in steps, each write of another process would start it over.
            original.backup(connection)
        settle(str(draft))
        if not environments:
            _leave_environments(connection)


def build(
    target: Path, fill: Callable[[Transaction], None], *, environments: bool, now: int | None = None
) -> None:
    """A new store at `target` that `fill` writes, as of `now`; all of it or nothing."""
    with _draft_of(target) as (_, connection):
        tx = _begin_store(connection)
        name_anew(tx)
        tx.now = tx.now if now is None else now
        fill(tx)
        connection.execute("COMMIT")
        if not environments:
            _leave_environments(connection)


@contextmanager
def _draft_of(target: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """A file beside `target` that gets its name once it is checked, and never replaces another."""
    if os.path.lexists(target):
        raise InvalidInput(f"{target} exists already: name a new file.")
    if not target.parent.is_dir():
        raise InvalidInput(f"The folder {target.parent} does not exist: make it first.")
    draft = target.with_name(f".{target.name}.{_token()}.new")
    try:
        os.close(host.create_private(draft))
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            yield draft, connection
            found = connection.execute("PRAGMA integrity_check").fetchone()[0]
            if found != "ok":
                raise StoreDamaged(f"The store is damaged ({found}): no copy of it was made.")
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        host.replace_durably(draft, target)
    except sqlite3.Error as error:
        raise explain(error, str(target), 0) from error
    except OSError as error:
        forbidden = isinstance(error, PermissionError)
        raise (NotPermitted if forbidden else InvalidInput)(
            f"The file {shown(str(target))} cannot be written ({error.strerror}): "
            "name another place for it."
        ) from error
    finally:
        for name in (draft, f"{draft}-wal", f"{draft}-shm"):
            with suppress(OSError):
                os.unlink(name)


def _leave_environments(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("DELETE FROM environments")
    connection.execute("UPDATE specs SET env = NULL WHERE env IS NOT NULL")
    connection.execute("UPDATE schedules SET env = NULL WHERE env IS NOT NULL")
    connection.execute("VACUUM")
