"""Lanes: jobs that share a fate for claiming, and the rank of a job within one."""

from __future__ import annotations

from svcq.config import Config
from svcq.store.engine import Transaction
from svcq.tuples import NamedTuple

# A queue whose aging is "never": priority is strict, since no job waits this long.
NEVER = 10**12


class Lane(NamedTuple):
    id: int
    aging_ms: int
    queue_options: str


def default_aging(config: Config) -> int:
    """The aging of a queue that nobody has set."""
    return NEVER if config.queues.aging is None else config.queues.aging


def rank_of(ready_at: int, priority: int, aging_ms: int) -> int:
    """Lower runs first: earlier, or of higher priority; a level is worth `aging` of waiting."""
    return ready_at - priority * aging_ms


def find_or_make_lane(
    tx: Transaction, queue: str, kind: str, host: str, condition: str, *, key: str, aging_ms: int
) -> Lane:
    """The lane of a job; `aging_ms` is for a queue that does not exist yet."""
    place = {"queue": queue, "kind": kind, "host": host, "condition": condition}
    found = tx.row("find_lane", key=key, **place)
    if found is None:
        tx.run("make_queue", name=queue, aging_ms=aging_ms)
        tx.run("make_lane", key="", **place)
        tx.run("make_lane", key=key, **place)
        found = tx.row("find_lane", key=key, **place)
        assert found is not None
    return Lane(*found)
