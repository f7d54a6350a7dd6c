"""What time does to jobs: they become due, expire, and are let go after their retention.

Each step is small: a batch is one short transaction, so that nobody waits for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from svcq.config import Config
from svcq.jobs import FINISHED, State, waiting_state
from svcq.store import ends
from svcq.store.engine import NotAlone, Transaction
from svcq.store.lanes import default_aging
from svcq.store.ledger import Ledger
from svcq.store.letters import copy_dead_letter
from svcq.store.place import place, read_standing
from svcq.times import DAY, MINUTE

BATCH = 200
MOST_FIRINGS = 1000  # kept of each schedule
CHANGES_BATCH = 5000


def must_be_alone(tx: Transaction) -> None:
    if not tx.alone:
        raise NotAlone


def promote(tx: Transaction, ledger: Ledger, n: int = BATCH) -> int:
    """Scheduled and retrying jobs whose time has come become pending."""
    due = tx.rows("due", now=tx.now, n=n)
    for (job,) in due:
        standing = read_standing(tx, job)
        state = waiting_state(held=False, waits_on=standing.waits_on, run_at=None, now=tx.now)
        place(tx, ledger, standing, state)
    return len(due)


def expire(tx: Transaction, ledger: Ledger, config: Config, n: int = BATCH) -> int:
    """Jobs that were to start by now and did not are dead."""
    expired = tx.rows("expired", now=tx.now, n=n)
    for (job,) in expired:
        # The end of a parent may have cancelled this one a moment ago.
        if read_standing(tx, job).state not in FINISHED:
            ends.end_waiting(tx, ledger, job, State.DEAD, "expired")
            copy_dead_letter(tx, ledger, job, default_aging(config))
    return len(expired)


def remove(tx: Transaction, ledger: Ledger, ids: Sequence[int]) -> None:
    """Delete finished jobs and all that hangs on them."""
    listed = json.dumps(ids)
    for state, queue, task in tx.rows("standing_of", ids=listed):
        ledger.removed(State(state), queue, task)
    tx.run("delete_tags", ids=listed)
    for statement in ("delete_jobs", "delete_specs", "delete_runs", "delete_parents"):
        tx.run(statement, ids=listed)


def remove_finished(tx: Transaction, ledger: Ledger, ids: Sequence[int]) -> int:
    """Remove those of `ids` that are still finished: a retry may have been faster."""
    states = tx.rows("states_of", ids=json.dumps(ids))
    finished = [job for job, state in states if state in FINISHED]
    remove(tx, ledger, finished)
    return len(finished)


def purge(
    tx: Transaction, ledger: Ledger, state: State, queue: str | None, after: int
) -> tuple[list[int], int]:
    """Remove the next batch of jobs in `state`; what waits is cancelled first.

    Return the batch, and how many of it are gone: a parent that is still waited for stays.
    """
    ids = [row[0] for row in tx.rows("in_state", state=state, queue=queue, after=after, n=BATCH)]
    if state not in FINISHED:
        for job in ids:
            # The end of a parent may have ended this one a moment ago, or let it go.
            if read_standing(tx, job).state not in FINISHED:
                ends.end_waiting(tx, ledger, job, State.CANCELLED, "purged")
    waited_for = {row[0] for row in tx.rows("waited_for", ids=json.dumps(ids))}
    gone = [job for job in ids if job not in waited_for]
    remove(tx, ledger, gone)
    return ids, len(gone)


def past_retention(
    rows: Iterable[tuple[int, int, str]], keep: dict[str, int], default: int, now: int
) -> list[int]:
    """Of (finished_at, id, queue), the ids that their queue no longer keeps."""
    return [job for at, job, queue in rows if at <= now - keep.get(queue, default)]


def sweep(tx: Transaction, config: Config) -> None:
    """The small things that pile up beside jobs."""
    tx.run("free_stale_windows", now=tx.now)
    unused = [row[0] for row in tx.rows("unused_environments")]
    tx.run("delete_environments", ids=json.dumps(unused))
    tx.run("forget_minutes", before=(tx.now - config.retention.activity) // MINUTE)
    tx.run("forget_firings", before=tx.now - config.retention.firings, n=5000)
    tx.run("forget_surplus_firings", most=MOST_FIRINGS, n=5000)
    tx.run("forget_workers", before=tx.now - config.retention.dead)
    tx.run("forget_requests", before=tx.now - DAY)


def forget_changes(tx: Transaction, config: Config) -> bool:
    """Let the next of the oldest changes go; whether there may be more."""
    keep = config.retention.changes
    gone = tx.run("forget_changes", since=tx.now - keep, until=tx.now + keep, n=CHANGES_BATCH)
    return gone == CHANGES_BATCH
