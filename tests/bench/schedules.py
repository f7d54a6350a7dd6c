"""Many schedules: looking at all of them, asking for the next, and many that are due at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from svcq import Client
from svcq.schedules import Definition
from svcq.service.clock import Ticker
from svcq.store import schedules as rows
from svcq.times import DAY, HOUR, now_ms
from svcq.triggers import Trigger
from tests.bench.figures import Figure, Scale, limit_figure
from tests.bench.places import config_in

LOOK_MS = 100
FIRE_SECONDS = 2
ENVIRONMENT = '{"LANG":"C.UTF-8","PATH":"/usr/local/bin:/usr/bin:/bin"}'
OPTIONS = '{"timeout":"10m","cwd":"/srv"}'


def schedules(scale: Scale, folder: Path) -> Iterator[Figure]:
    now = now_ms()
    with Client(config=config_in(folder, "schedules"), clock=lambda: now) as client:
        fill(client, scale, now)
        name = f"{scale.schedules:,} schedules"
        listing = timed(scale, lambda: len(client.schedules(limit=scale.schedules)))
        yield limit_figure("schedules", f"{name}: list them all", listing * 1e3, LOOK_MS, "ms")
        coming = timed(scale, lambda: (client.store.clocks(), client.next_runs("s0", 10)))
        yield limit_figure("schedules", f"{name}: what is next", coming * 1e3, LOOK_MS, "ms")
        ticker = Ticker(client.store, lambda _: None)
        now += HOUR
        start = perf_counter()
        while client.store.timetable.next_due() <= now:  # type: ignore[operator]
            ticker.tick()
        took = perf_counter() - start
        assert client.counts()["pending"] == scale.due
        what = f"{scale.due:,} of them due at one instant"
        yield limit_figure("schedules", what, took, FIRE_SECONDS, "s")


def fill(client: Client, scale: Scale, now: int) -> None:
    """The first few are due in an hour, the others on other days."""
    with client.store.engine.write(durable=True) as tx:
        for n in range(scale.schedules):
            trigger = Trigger(cron="0 3 * * *", zone="Europe/Paris", start=now + 2 * DAY)
            if n < scale.due:
                trigger = Trigger(every=HOUR)
            definition = Definition(
                f"s{n}", trigger, command='["true"]', options=OPTIONS, env=ENVIRONMENT
            )
            rows.add(tx, definition, replace=False, paused=False)


def timed(scale: Scale, look: Callable[[], object]) -> float:
    """The median of a few, in seconds."""
    times = []
    for _ in range(scale.rounds):
        start = perf_counter()
        look()
        times.append(perf_counter() - start)
    return median(times)
