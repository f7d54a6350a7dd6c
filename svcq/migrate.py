"""Moving the store of a home to another database: only while nobody works on it."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from svcq.config import Config
from svcq.errors import NotFound, Refused
from svcq.host import processes
from svcq.passwords import hide_password
from svcq.store import Worker
from svcq.store.clocks import standing
from svcq.store.engine import Engine, Transaction
from svcq.store.moving import Told, check_schema, copy_tables
from svcq.store.opening import need_psycopg, open_engine
from svcq.store.versions import newest, schema_folder
from svcq.store.workers import workers
from svcq.worker.places import Places


class Moved(NamedTuple):
    """What there is in the new place."""

    jobs: int
    rows: int


def migrate(config: Config, to: str, told: Told = lambda *_: None) -> Moved:
    """Copy all of the store to `to`, where none may be yet; the old one stays as it is."""
    if "://" not in config.store and not os.path.exists(config.store):
        raise NotFound(f"There is no store {config.store}, so there is nothing to move.")
    with closing(open_engine(config)) as source:
        _refuse_itself(config.store, to)
        with source.write(durable=True) as tx:
            source.settle(tx)
            check_schema(tx, newest(schema_folder(source.name)), source.where)
            _check_nobody_works(tx, source, Places(config.home), now=tx.now)
            rows = _fill(config._replace(store=to), tx, told)
            return Moved(sum(n for _, _, _, n in tx.rows("counts", queue=None)), rows)


def _refuse_itself(store: str, to: str) -> None:
    same = store == to if "://" in store or "://" in to else os.path.realpath(store) == to
    if same:
        raise Refused(f"The store is at {hide_password(to)} already: name another place.")


def _fill(config: Config, source: Transaction, told: Told) -> int:
    row = source.row("meta", key="store_id")
    origin = str(row[0]) if row else ""
    rows = 0

    def write(target: Transaction) -> None:
        nonlocal rows
        rows = copy_tables(source, target, told)
        target.run("set_meta", key="moved_from", value=origin)

    if "://" in config.store:
        need_psycopg()
        from svcq.store.postgres_setup import fill

        fill(config, write, origin)
    else:
        from svcq.store import files

        files.build(Path(config.store), write, environments=True)
    return rows


def _check_nobody_works(tx: Transaction, source: Engine, places: Places, *, now: int) -> None:
    """Who went on writing to the old store would write what is lost with it."""
    then = "then migrate again"
    if processes.lock_is_held(places.service_lock):
        pid = places.service_lock.read_text().strip()
        raise Refused(
            f"The service runs (pid {pid}) and would go on writing to the store: svcq stop, {then}."
        )
    here = standing(tx, f"{source.bells}/clocks").clocks
    if here:
        raise Refused(f"A clock fires schedules here (pid {here[0]}): end its svcq up, {then}.")
    registered = workers(tx, ended=False)
    working = [one for one in registered if _works(one, places, now)]
    if working:
        raise Refused(f"{_named(working)} at work on the store: svcq worker stop, wait until "
                      f"svcq worker list is empty, {then}.")  # fmt: skip
    holding = [one for one in registered if one.running and one.lease_until is None]
    if holding:
        raise Refused(
            f"Worker {holding[0].id} (pid {holding[0].pid} on {holding[0].host}) died and holds "
            f"{holding[0].running} of the jobs: svcq worker start gives them back; stop it, {then}."
        )
    if places.spool.is_dir() and any(places.spool.glob("*.json")):
        raise Refused(
            "The ends of some jobs were not written to the store yet (they are in "
            f"{places.spool}): svcq worker start delivers them; stop it, {then}."
        )


def _works(worker: Worker, places: Places, now: int) -> bool:
    if worker.lease_until is not None:
        return worker.lease_until >= now
    if worker.host != socket.gethostname():
        return True  # for all that can be told from here
    return processes.lock_is_held(places.worker_lock(worker.pid, worker.born or ""))


def _named(working: list[Worker]) -> str:
    first = f"Worker {working[0].id} (pid {working[0].pid} on {working[0].host})"
    more = len(working) - 1
    return f"{first} and {more} more are" if more else f"{first} is"
