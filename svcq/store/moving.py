"""Moving a whole store from one database to another, table by table, with every id; or into a copy.

What was read is counted and summed up, and what was written is read again and must come to the same
before the transaction that wrote it ends. So a break-off, at whatever moment, leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

from svcq.errors import Refused, StoreDamaged, StoreVersion
from svcq.store.engine import Transaction
from svcq.store.versions import read_version

Told = Callable[[str, int], None]
"""Hears of a table how many of its rows are written so far."""


class Table(NamedTuple):
    """How all of a table is read, and written; without `write`, as it was read."""

    name: str
    read: str
    write: str = ""
    values: Mapping[str, Any] = MappingProxyType({})


TABLES = (
    *(
        Table(read.removeprefix("whole_"), read)
        for read in (
            "whole_queues", "whole_lanes", "whole_keys", "whole_environments", "whole_workers",
            "whole_tasks", "whole_requests", "whole_schedules", "whole_firings", "whole_specs",
            "whole_runs", "whole_tags", "whole_parents", "whole_unique_keys", "whole_jobs",
            "whole_changes",
        )
    ),
    # Engines differ in how many rows a sum is made of.
    Table("counts", "counts", "add_counts", {"queue": None}),
    Table("minutes", "minutes_since", "add_minutes", {"queue": None, "since": 0}),
)  # fmt: skip
# Facts that each database has of its own.
_OF_A_DATABASE = ("version", "oldest_program", "store_id", "last_job", "moved_from")


class Sum:
    """Of rows, in whatever order they come: how many, and a digest of all of them."""

    __slots__ = ("digest", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.digest = 0

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self.rows += 1
            text = repr(tuple(row)).encode("utf-8", "surrogatepass")
            self.digest += int.from_bytes(blake2b(text, digest_size=16).digest(), "little")

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Sum)
        return (self.rows, self.digest) == (other.rows, other.digest)

    __hash__ = None  # type: ignore[assignment]  # it goes on changing


def check_schema(tx: Transaction, program: int, where: str) -> None:
    """What a newer program has added would be left behind unseen."""
    version, _ = read_version(tx)
    if version != program:
        raise StoreVersion(
            f"The store {where} has schema {version}, and this program moves those of {program}: "
            + ("upgrade svcq first." if version > program else "run svcq upgrade-store first.")
        )


def check_unused(tx: Transaction, program: int, where: str, moved_from: str = "") -> None:
    """What is moved would otherwise be mixed with what is there. `moved_from` is the store that
    is to come."""
    check_schema(tx, program, where)
    before = tx.row("meta", key="moved_from")
    if before is not None and str(before[0]) == moved_from:
        raise Refused(
            f"The store {where} is this one already, moved there before: "
            "svcq config set store ADDRESS switches to it."
        )
    used = [table.name for table in TABLES if any(tx.stream(table.read, **table.values))]
    if used:
        raise Refused(
            f"The store {where} is in use already (it has {' and '.join(used[:3])}): "
            "name another database, or drop the schema svcq in that one."
        )


def copy_tables(source: Transaction, target: Transaction, told: Told = lambda *_: None) -> int:
    """Everything of a store into an empty one, checked; how many rows it is."""
    sums = {table.name: _copy(table, source, target, told) for table in TABLES}
    facts = _facts(source)
    for key, value in facts:
        target.run("set_meta", key=key, value=value)
    row = source.row("last_id")
    if row is not None and int(row[0]):
        target.row("ids_from", last=int(row[0]))
    _check(target, sums, facts)
    return sum(one.rows for one in sums.values())


def _copy(table: Table, source: Transaction, target: Transaction, told: Told) -> Sum:
    total = Sum()
    for rows in source.stream(table.read, **table.values):
        total.add(rows)
        if table.write:
            target.many(table.write, rows)
        else:
            target.fill(table.read, rows)
        told(table.name, total.rows)
    return total


def _facts(tx: Transaction) -> list[tuple[str, str]]:
    rows = [row for batch in tx.stream("whole_meta") for row in batch]
    return sorted((key, str(value)) for key, value in rows if key not in _OF_A_DATABASE)


def _check(target: Transaction, sums: dict[str, Sum], facts: list[tuple[str, str]]) -> None:
    for table in TABLES:
        found = Sum()
        for rows in target.stream(table.read, **table.values):
            found.add(rows)
        if found != sums[table.name]:
            raise StoreDamaged(
                f"The copy of the table {table.name} does not hold what was read "
                f"({found.rows:,} rows of {sums[table.name].rows:,}): nothing was moved. "
                "Check the disks of both, and try again."
            )
    if not set(facts) <= set(_facts(target)):
        raise StoreDamaged(
            "The copy of the table meta does not hold what was read: nothing was moved. "
            "Check the disks of both, and try again."
        )
