"""Running all dead jobs again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from svcq.errors import NotFound, Refused
from svcq.jobs import State

if TYPE_CHECKING:
    from svcq.client.client import Client

_PAGE = 1000


def retry_dead(client: Client, queue: str | None) -> int:
    again = 0
    for job in _dead(client, queue):
        # Another has its unique key, or someone was quicker: it stays as it is.
        with suppress(Refused, NotFound):
            client.store.retry(job)
            again += 1
    return again


def _dead(client: Client, queue: str | None) -> list[int]:
    """All of them, before the first is run again: a list that shrinks has no pages."""
    found: list[int] = []
    while True:
        last = found[-1] if found else None
        page = client.list(state=State.DEAD, queue=queue, before=last, limit=_PAGE)
        found += [job.id for job in page]
        if len(page) < _PAGE:
            return found
