"""The store's version: what a program may open, and how a store is brought up to date.

`version` is the schema of the store, `oldest_program` the oldest schema version whose programs may
still use it. schema/ENGINE/NNNN.sql adds to the schema; NNNN-remove.sql takes away what the
version before still used, and is held back while a worker of an older program is registered.
"""

from __future__ import annotations

import os

from svcq.errors import StoreVersion
from svcq.store.engine import Transaction


def schema_folder(engine: str) -> str:
    return os.path.join(os.path.dirname(__file__), "schema", engine)


def newest(folder: str) -> int:
    """The schema version this program was made for."""
    return max(_numbers(folder))


def check_version(tx: Transaction, program: int, where: str) -> None:
    """Refuse a store this program cannot use, with the remedy."""
    check_upgrade(tx, program, where)
    version, _ = read_version(tx)
    if version < program:
        raise StoreVersion(
            f"The store {where} has schema {version}, older than this program's {program}: "
            "run `svcq upgrade-store` (it keeps a backup)."
        )


def check_upgrade(tx: Transaction, program: int, where: str) -> None:
    """Refuse a store that is beyond this program."""
    version, oldest = read_version(tx)
    if program < oldest:
        raise StoreVersion(
            f"The store {where} has schema {version} and needs a program made for {oldest} or "
            f"later; this one was made for {program}: upgrade svcq."
        )


def read_version(tx: Transaction) -> tuple[int, int]:
    found = [tx.row("meta", key=key) for key in ("version", "oldest_program")]
    version, oldest = (0 if row is None else int(row[0]) for row in found)
    return version, oldest


def migrate(tx: Transaction, folder: str, *, fresh: bool = False) -> tuple[int, int]:
    """Bring the schema up to date inside an open transaction; return the version before and after.

    A removal waits, and with it `oldest_program`, until no older worker is registered.
    """
    before, oldest = (0, 0) if fresh else read_version(tx)
    numbers = sorted(_numbers(folder))
    for number in numbers:
        if number > before:
            _run_script(tx, os.path.join(folder, f"{number:04}.sql"))
    after = max(before, numbers[-1])
    for number in numbers:
        removal = os.path.join(folder, f"{number:04}-remove.sql")
        if number <= oldest or not os.path.isfile(removal):
            continue
        row = tx.row("older_workers", program=number)
        if row and row[0]:
            break
        _run_script(tx, removal)
        oldest = number
    tx.run("set_meta", key="version", value=after)
    tx.run("set_meta", key="oldest_program", value=max(oldest, 1))
    return before, after


def _run_script(tx: Transaction, script: str) -> None:
    with open(script, encoding="utf-8") as file:
        tx.script(file.read())


def _numbers(folder: str) -> list[int]:
    return [
        int(name[:-4])
        for name in os.listdir(folder)
        if name.endswith(".sql") and name[:-4].isdigit()
    ]
