"""The service of a machine: what it costs at rest, and how soon a killed one is back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from tests.bench.figures import Figure, Scale, limit_figure
from tests.bench.worker import PATIENCE, at_rest, children, cpu_seconds, pss_megabytes
from tests.helpers import eventually
from tests.linux.manager import Manager
from tests.web.served import Served

WORKERS = 2


def service_idle(scale: Scale, folder: Path) -> Iterator[Figure]:
    with closing(Served(folder, f"[workers]\ncount = {WORKERS}\n", workers=WORKERS)) as served:
        eventually(lambda: len(served.client.workers()) == WORKERS, PATIENCE)
        pids = [served.service.pid, *children(served.service.pid)]
        pids += [one.pid for one in served.client.workers() if one.pid not in pids]
        eventually(lambda: at_rest(pids), PATIENCE)
        before, began = cpu_seconds(pids), time.perf_counter()
        time.sleep(scale.idle)
        share = (cpu_seconds(pids) - before) / (time.perf_counter() - began)
        memory = sum(map(pss_megabytes, pids))
    what = f"service with {WORKERS} workers, idle"
    yield limit_figure("service_idle", f"{what}: processor time", share * 100, 1, "% of a core")
    yield limit_figure("service_idle", f"{what}: memory", memory, 120, "MB")


def service_killed(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Under a real systemd, which only root can start in namespaces of its own."""
    del folder
    with closing(Manager()) as manager:
        manager.configure("[workers]\nslots = 1\n")
        manager.svcq("install", "--no-linger")
        eventually(lambda: manager.workers(state="running"), PATIENCE)
        waits = [killed_to_working(manager) for _ in range(min(scale.rounds, 3))]
    what = "kill -9 of the service to one that works, under systemd"
    yield limit_figure("service_killed", what, median(waits), 3, "s")


def killed_to_working(manager: Manager) -> float:
    """Until another service has told systemd that it is ready, and answers."""
    before = manager.service_pid()
    place = manager.svcq_home / "web.json"
    old = place.read_text()
    start = time.perf_counter()
    manager.run("kill", "-9", before)
    eventually(lambda: place.read_text() != old, PATIENCE)
    eventually(lambda: manager.service_pid() not in (0, before), PATIENCE)
    eventually(lambda: manager.systemctl("is-active", "svcq.service", check=False) == "active")
    took = time.perf_counter() - start
    assert os.path.exists(manager.svcq_home / "service.sock")
    return took
