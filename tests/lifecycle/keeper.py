"""A project that keeps processes between calls on purpose."""

from __future__ import annotations

import os
import subprocess
from multiprocessing import resource_tracker

from tests.lifecycle.sample import append

kept = subprocess.Popen(
    ["sh", "-c", "while read -r line; do sleep 600 & echo $!; done"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)


def leave_one_beside_those_kept(file: str) -> dict[str, int]:
    resource_tracker.ensure_running()
    append(file, str(subprocess.Popen(["sleep", "600"]).pid))
    tracker: int = vars(resource_tracker)["_resource_tracker"]._pid
    return {"runner": os.getpid(), "kept": kept.pid, "tracker": tracker, "of kept": ask_kept()}


def ask_kept() -> int:
    """A process that the kept one starts."""
    assert kept.stdin is not None
    assert kept.stdout is not None
    kept.stdin.write(b"go\n")
    kept.stdin.flush()
    return int(kept.stdout.readline())
