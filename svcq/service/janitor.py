"""What is past its retention goes: jobs, their output, changes and statistics.

Each step is a short transaction of the store, so that nobody waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from svcq.config import Config
from svcq.errors import SvcqError
from svcq.service.log import shorten
from svcq.store import Store, open_store
from svcq.worker.program import worker_log

EVERY = 600.0  # seconds


class Janitor:
    """Tidies when it begins and every few minutes after, in a thread, until it is left."""

    def __init__(self, config: Config, say: Callable[[str], None]) -> None:
        self._config = config
        self._say = say
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="janitor")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                store = open_store(self._config)
                try:
                    tidy(store, self._config)
                finally:
                    store.close()
            except (SvcqError, OSError) as error:
                self._say(f"Nothing was tidied up: {error}")
            if self._leaving.wait(EVERY):
                return


def tidy(store: Store, config: Config) -> tuple[int, int]:
    """Let go what is past its retention; how many jobs, and how many files of output."""
    shorten(worker_log(config))
    removed = store.cleanup()
    # Another store that shares this home has jobs of its own, whose output is none of ours.
    own = Path(config.store).parent == config.home
    return removed, sum(_remove_logs(store, folder) for folder in _folders(config) if own)


def _folders(config: Config) -> Iterator[Path]:
    """Those that hold the output of a thousand jobs each."""
    with suppress(FileNotFoundError):
        yield from (one for one in (config.home / "logs").iterdir() if one.name.isdigit())


def _remove_logs(store: Store, folder: Path) -> int:
    """The output of jobs that the store no longer knows: ids are never used again."""
    files = [(file, file.name.partition(".")[0]) for file in folder.glob("*.log")]
    known = store.known({int(job) for _, job in files if job.isdigit()})
    gone = [file for file, job in files if job.isdigit() and int(job) not in known]
    for file in gone:
        file.unlink(missing_ok=True)
    with suppress(OSError):  # there is more in it
        folder.rmdir()
    return len(gone)
