"""Looking after others: jobs of workers that died here, jobs whose time has passed, the service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from svcq.errors import StoreAway, SvcqError
from svcq.host import processes
from svcq.store import Store
from svcq.worker.leases import Neighbours
from svcq.worker.places import Places

LOOK = 0.5  # seconds: the jobs of a dead worker wait for it
ORPHANED = 30.0  # seconds without a service after which its worker takes nothing new


def has_keeper(places: Places) -> bool:
    """Whether a service lives here, or someone who sees a job through, so that workers go on."""
    locks = [places.service_lock, *places.attendants.glob("*.lock")]
    return any(map(processes.lock_is_held, locks))


async def look_after(
    neighbours: Neighbours,
    store: Store,
    places: Places,
    say: Callable[[str], None],
    orphaned: Callable[[], None] | None,
    is_full: Callable[[], bool],
) -> None:
    """For as long as the worker lives, however busy it is. `orphaned` is called, for a worker that
    a service keeps, when that has been gone for a while: nobody would look after it any more."""
    last_kept = time.monotonic()
    while True:
        processes.killed_for_memory_lately()  # to know how many there were before
        await asyncio.sleep(LOOK)
        processes.bury_orphans()
        if orphaned is not None:
            if has_keeper(places):
                last_kept = time.monotonic()
            elif time.monotonic() - last_kept > ORPHANED:
                say(f"The service has been gone for {ORPHANED:g} s: no new jobs.")
                orphaned()
                orphaned = None
        try:
            # Not in the thread of the store: killing what will not die takes its time.
            await asyncio.to_thread(neighbours.look)
            # A claim lets jobs expire, but a worker with no free slot makes none.
            if is_full():
                await asyncio.to_thread(store.expire)
        except StoreAway:
            pass  # the worker itself says so
        except (SvcqError, OSError) as error:
            say(str(error))
