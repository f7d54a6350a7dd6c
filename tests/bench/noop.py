"""Tasks that do nothing, or wait: what they take is the queue's own."""

from __future__ import annotations

import asyncio

from svcq import task


@task
def plain() -> None:
    pass


@task
async def asynchronous() -> None:
    pass


@task
async def tenth_of_a_second() -> None:
    await asyncio.sleep(0.1)
