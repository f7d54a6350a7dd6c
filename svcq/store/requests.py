"""Adding jobs once, though the request for it may come twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from svcq.errors import Refused
from svcq.states import State
from svcq.store.engine import Transaction
from svcq.store.enqueue import Added


class Request(NamedTuple):
    """A request by its caller's own key; `digest` tells whether it is the same one."""

    caller: str
    key: str
    digest: str


def once(
    tx: Transaction, request: Request, add: Callable[[], list[Added]]
) -> tuple[list[Added], bool]:
    """Add the jobs, or answer with those that were added before; whether that was so."""
    row = tx.row("request", caller=request.caller, key=request.key)
    if row is None:
        added = add()
        told = json.dumps([(one.id, one.state, one.created) for one in added])
        tx.run(
            "add_request", caller=request.caller, key=request.key, digest=request.digest,
            added=told, now=tx.now,
        )  # fmt: skip
        return added, False
    if row[0] != request.digest:
        raise Refused(
            f"The key {request.key!r} was used for another request within the last day: "
            "give each request a key of its own."
        )
    before = [
        Added(job, State(state), tx.now, created=created)
        for job, state, created in json.loads(row[1])
    ]
    return before, True
