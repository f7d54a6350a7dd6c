"""Asking the service how it stands: what the icon and the menu are made of."""

from __future__ import annotations

from svcq.client.remote import RemoteClient
from svcq.ends import rule_of
from svcq.jobs import Job, State

from .model import Snapshot
from .view import MOST_RECENT, MOST_RUNNING, MOST_SCHEDULES


def look(client: RemoteClient) -> Snapshot:
    """A few short questions; each is answered from an index, however large the store is."""
    service = client.ask("GET", "/service")
    counts = client.counts()
    queues = client.queues()
    running = client.list(state=["processing"], limit=MOST_RUNNING)
    return Snapshot(
        counts=counts,
        running=tuple(sorted(running, key=lambda job: job.id)),
        recent=_recent(client, counts),
        queues={queue.name: queue.paused for queue in queues},
        rules={queue.name: rule_of(queue.options) for queue in queues},
        schedules=tuple(client.schedules(limit=MOST_SCHEDULES + 1)),
        role=service["caller"]["role"],
        account=service["caller"]["name"],
        version=service["version"],
    )


def _recent(client: RemoteClient, counts: dict[str, int]) -> tuple[Job, ...]:
    """Those that ended last: of each state by itself, which the store has in that order."""
    found: list[Job] = []
    for state in (State.COMPLETED, State.DEAD, State.CANCELLED):
        if counts.get(state):
            found += client.list(state=[state.value], limit=MOST_RECENT)
    ended = [job for job in found if job.finished_at is not None]
    ended.sort(key=lambda job: (job.finished_at, job.id), reverse=True)
    return tuple(ended[:MOST_RECENT])
