"""Tasks that do nothing: what they take is the queue's own."""

from __future__ import annotations

from svcq import task


@task
def plain() -> None:
    pass


@task
async def asynchronous() -> None:
    pass
