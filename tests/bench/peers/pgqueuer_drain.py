"""Queue empty jobs with PgQueuer, run them with its worker; print the jobs a second, of both."""

import asyncio
import logging
import sys
import time

import asyncpg
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver
from pgqueuer.types import QueueExecutionMode

logging.disable(logging.CRITICAL)
address, n = sys.argv[1], int(sys.argv[2])


async def main():
    connection = await asyncpg.connect(address)
    queries = Queries(AsyncpgDriver(connection))
    if not await queries.schema_is_installed():
        await queries.install()
    pgq = PgQueuer.from_asyncpg_connection(connection)

    @pgq.entrypoint("work")
    async def work(job):
        pass

    start = time.perf_counter()
    await queries.enqueue(["work"] * n, [b'{"n": 1}'] * n, [0] * n)
    added = n / (time.perf_counter() - start)
    start = time.perf_counter()
    await pgq.run(batch_size=500, mode=QueueExecutionMode.drain)
    drained = n / (time.perf_counter() - start)
    left = await connection.fetchval("SELECT count(*) FROM pgqueuer")
    assert left == 0, f"{left} jobs were left"
    print(added, drained)


asyncio.run(main())
