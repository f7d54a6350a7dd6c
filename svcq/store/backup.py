"""A copy of a whole store as one file of SQLite, made while others go on writing."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from svcq.config import Config
from svcq.jobs import interrupted
from svcq.store import files, workers
from svcq.store.engine import Engine, Transaction
from svcq.store.ledger import Ledger
from svcq.store.moving import copy_tables
from svcq.store.sqlite import SqliteEngine


def back_up(engine: Engine, target: Path, config: Config, *, environments: bool) -> None:
    """An online copy, checked; environments stay behind unless asked for."""
    if not isinstance(engine, SqliteEngine):
        with engine.read() as tx:
            copy = partial(_copy, tx, config)
            files.build(target, copy, environments=environments, now=tx.now)
        return

    def settle(path: str) -> None:
        copied = SqliteEngine(path, clock=engine.clock)
        with closing(copied), copied.write(durable=True) as tx:
            _settle(tx, config)

    files.copy(engine.path, target, environments=environments, settle=settle)


def _copy(source: Transaction, config: Config, target: Transaction) -> None:
    copy_tables(source, target)
    _settle(target, config)


def _settle(tx: Transaction, config: Config) -> None:
    """Nobody works on a copy: what was running waits again there. And no process is of a run of
    its: whoever opened it beside the original would end that one's jobs as left over."""
    ledger = Ledger(tx)
    for worker in workers.workers(tx, ended=False):
        outcome = interrupted("it was running when the backup was made")
        workers.rescue(tx, ledger, worker.id, outcome, config)
    ledger.write()
    files.name_anew(tx)
