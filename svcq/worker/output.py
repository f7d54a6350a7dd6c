"""The log of a running command, held open: what is written to it is there, whatever becomes of its
name."""

from __future__ import annotations

import os
from pathlib import Path

from svcq.host import processes
from svcq.logs import drop_middle, open_log, tail_of

_CHUNK = 1 << 20


class Output:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.descriptor = open_log(path)
        self._copy: int | None = None
        self._copied = 0

    def tail(self) -> str | None:
        return tail_of(self.descriptor)

    def limit(self, limit: int) -> int:
        """Drop the middle of what is over the limit; the size of all that was written."""
        if self._copy is not None:
            drop_middle(self._copy, limit)
        return drop_middle(self.descriptor, limit)

    @property
    def deleted(self) -> bool:
        """Whether its processes write to a file that nobody else can find any more."""
        return not os.fstat(self.descriptor).st_nlink

    def put_back(self, most: int | None = None) -> None:
        """Have a copy in the place of a log that was deleted: the next `most` bytes of it."""
        if self._copy is None or not os.fstat(self._copy).st_nlink:
            self._forget_copy()
            self._copy = open_log(self._path)
        size = os.fstat(self.descriptor).st_size
        end = size if most is None else min(size, self._copied + most)
        for begin, until in processes.parts_with_data(self.descriptor, self._copied, end):
            self._copy_part(begin, until)
        self._copied = end

    def _copy_part(self, position: int, end: int) -> None:
        assert self._copy is not None
        # Not by appending: what was dropped from the middle stays a hole.
        os.ftruncate(self._copy, position)
        while position < end:
            chunk = os.pread(self.descriptor, min(end - position, _CHUNK), position)
            position += os.write(self._copy, chunk)

    def _forget_copy(self) -> None:
        if self._copy is not None:
            os.close(self._copy)
        self._copy, self._copied = None, 0

    def close(self) -> None:
        self._forget_copy()
        os.close(self.descriptor)
