"""Opening the store that the configuration names, made if it is not there yet; upgrading it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from svcq import errors
from svcq.store import versions
from svcq.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from svcq.config import Config
    from svcq.store.engine import Engine


def open_store(config: Config, *, clock: Callable[[], int] | None = None) -> Store:
    """`clock` is for tests: the time as they set it."""
    store = Store(open_engine(config, clock=clock), config)
    try:
        with store.engine.read() as tx:
            versions.check_version(tx, store.program, store.engine.where)
    except BaseException:
        store.close()
        raise
    return store


def upgrade_store(config: Config) -> tuple[int, int]:
    """Bring the store's schema up to date, after a backup copy; the version before and after."""
    with closing(open_engine(config)) as engine:
        folder = versions.schema_folder(engine.name)
        with engine.read() as tx:
            versions.check_upgrade(tx, versions.newest(folder), engine.where)
            version, _ = versions.read_version(tx)
        if version < versions.newest(folder):
            engine.keep_copy(version)
        with engine.write(durable=True) as tx:
            return versions.migrate(tx, folder)


def open_engine(config: Config, *, clock: Callable[[], int] | None = None) -> Engine:
    if "://" in config.store:
        return _open_server(config, clock)
    return _open_file(config, clock)


def _open_file(config: Config, clock: Callable[[], int] | None) -> Engine:
    from svcq.store import files
    from svcq.store.sqlite import SqliteEngine

    files.open_or_make(config.store)
    return SqliteEngine(config.store, busy_wait_ms=config.busy_wait, clock=clock)


def _open_server(config: Config, clock: Callable[[], int] | None) -> Engine:
    need_psycopg()
    from svcq.store import postgres_setup

    return postgres_setup.open_or_make(config, clock)


def need_psycopg() -> None:
    """It is an extra: who keeps the store in a file does without."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:  # without its library, the package alone cannot be imported either
        raise errors.StoreError(
            "A store on PostgreSQL needs the package psycopg, which cannot be used here "
            f"({error}): pip install 'svcq[postgres]'."
        ) from None
