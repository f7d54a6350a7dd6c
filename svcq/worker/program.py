"""The worker as a program: how it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from svcq.config import Config
from svcq.host import processes
from svcq.worker.places import Places


def worker_command(arguments: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-m", "svcq", "worker", "run", *arguments]


def worker_environment(config: Config) -> dict[str, str]:
    env = {**os.environ, "SVCQ_HOME": str(config.home)}
    if "SVCQ_STORE" in env or not config.store_is_shared:
        env["SVCQ_STORE"] = config.store
    return env  # an address with a password is read from the settings, and stands nowhere else


def start_detached(config: Config, arguments: Sequence[str] = ()) -> int:
    """Start a worker that outlives this program; its pid."""
    Places(config.home).prepare()
    return processes.spawn_detached(
        worker_command(arguments),
        log=worker_log(config),
        env=worker_environment(config),
        # Modules are looked for where it was asked for; otherwise it keeps no folder busy.
        cwd=os.getcwd() if "--import" in arguments else "/",
    )


def worker_log(config: Config) -> Path:
    return config.home / "logs" / "workers.log"


def slots_of(config: Config) -> int:
    return config.workers.slots or os.cpu_count() or 1
