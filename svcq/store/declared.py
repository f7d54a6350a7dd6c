"""What tasks say of themselves: told by workers that import them, kept for those that do not."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from svcq.store.engine import Transaction


class Declared(NamedTuple):
    """The options of a task's declaration, as JSON."""

    options: str = "{}"  # its words, for jobs that are queued by its name
    policy: str = "{}"  # those that hold for a run, in the store's units


SILENT = Declared()


def declared(tx: Transaction, names: Collection[str]) -> dict[str, Declared]:
    """What is known of these; those that say nothing, or that nobody knows, are left out."""
    rows = tx.rows("declared_tasks", names=json.dumps(list(names)))
    return {name: Declared(options, policy) for name, options, policy in rows}


def news(tx: Transaction, tasks: Mapping[str, Declared]) -> dict[str, Declared]:
    """Those of which something else is known so far."""
    known = declared(tx, tasks)
    return {name: said for name, said in tasks.items() if known.get(name, SILENT) != said}


def declare(tx: Transaction, tasks: Mapping[str, Declared]) -> None:
    for name, said in tasks.items():
        if said == SILENT:
            tx.run("forget_task", name=name)
        else:
            tx.run("declare_task", name=name, options=said.options, policy=said.policy)
