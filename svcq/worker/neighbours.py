"""Looking after others: jobs of workers that died here, jobs whose time has passed, the service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from svcq.errors import SvcqError
from svcq.host import processes
from svcq.store import Store
from svcq.worker.places import Places
from svcq.worker.rescue import rescue_dead

LOOK = 0.5  # seconds: the jobs of a dead worker wait for it
ORPHANED = 30.0  # seconds without a service after which its worker takes nothing new


async def look_after(
    store: Store,
    places: Places,
    me: int,
    say: Callable[[str], None],
    orphaned: Callable[[], None] | None,
) -> None:
    """For as long as the worker lives, however busy it is. `orphaned` is called, for a worker that
    a service keeps, when that has been gone for a while: nobody would look after it any more."""
    last_kept = time.monotonic()
    while True:
        await asyncio.sleep(LOOK)
        if orphaned is not None:
            if processes.lock_is_held(places.service_lock):
                last_kept = time.monotonic()
            elif time.monotonic() - last_kept > ORPHANED:
                say(f"The service has been gone for {ORPHANED:g} s: no new jobs.")
                orphaned()
                orphaned = None
        try:
            # Not in the thread of the store: killing what will not die takes its time.
            await asyncio.to_thread(rescue_dead, store, places, say, me=me)
            # A claim lets jobs expire, but a worker with no free slot makes none.
            await asyncio.to_thread(store.expire)
        except (SvcqError, OSError) as error:
            say(str(error))
