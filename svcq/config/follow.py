"""Following the settings of a home while a program runs."""

from __future__ import annotations

import os
from contextlib import suppress

from svcq.config.load import config_file, load
from svcq.config.settings import Config


class Followed:
    """The settings as they were last read; but for the store, which whoever runs has opened, and
    keeps until it is started anew."""

    moved = False  # whether the settings name another store by now

    def __init__(self, config: Config) -> None:
        self.config = config
        self._file = config_file(config.home)
        self._seen = _state_of(self._file)

    def changed(self) -> bool:
        """Whether the file has changed and was read again.

        A mistake in it is raised once; what was read before goes on to hold.
        """
        state = _state_of(self._file)
        if state == self._seen:
            return False
        self._seen = state
        config = load(self.config.home)
        self.moved = config.store != self.config.store
        self.config = config._replace(store=self.config.store)
        return True


def _state_of(file: os.PathLike[str]) -> tuple[int, int] | None:
    with suppress(OSError):
        status = os.stat(file)
        return status.st_mtime_ns, status.st_size
    return None
