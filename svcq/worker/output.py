"""The log of a running command, held open: what is written to it is there, whatever becomes of its
name.

It gets its name when the command has come to stay, or has ended and written something. Until then
it is a file of the seat, used again and again by those who write nothing: to make one for each of
them would cost as much as a short command does.
"""

from __future__ import annotations

import os
from pathlib import Path

from svcq.host import processes
from svcq.logs import drop_middle, name_log, open_log, tail_of

_CHUNK = 1 << 20


class Output:
    def __init__(self, path: Path, unnamed: str | None = None) -> None:
        self._path = path
        self._unnamed = unnamed
        self.descriptor = open_log(unnamed or path)
        self._copy: int | None = None
        self._copied = 0
        self._last: os.stat_result | None = None

    def settle(self) -> None:
        """Nobody is left who writes to it: what is true of it now stays so."""
        self._last = os.fstat(self.descriptor)

    @property
    def _status(self) -> os.stat_result:
        return self._last or os.fstat(self.descriptor)

    def keep(self) -> Path:
        """Give it its name; where it is by now."""
        if self._unnamed is not None:
            self._path = name_log(self._unnamed, self._path)
            self._unnamed = None
        return self._path

    def tail(self) -> str | None:
        return tail_of(self.descriptor) if self.has_something else None

    def limit(self, limit: int) -> int:
        """Drop the middle of what is over the limit; the size of all that was written."""
        if self._copy is not None:
            drop_middle(self._copy, limit)
        return drop_middle(self.descriptor, limit)

    @property
    def deleted(self) -> bool:
        """Whether its processes write to a file that nobody else can find any more."""
        return not self._status.st_nlink

    def put_back(self, most: int | None = None) -> None:
        """Have a copy in the place of a log that was deleted: the next `most` bytes of it."""
        self._unnamed = None
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

    @property
    def has_something(self) -> bool:
        return self._status.st_size > 0

    def end(self, *, alone: bool) -> Path | None:
        """All that was to be written is; where it is, unless that is nothing. `alone` says that
        nobody is left who might write to it, so that the next run may."""
        if self._unnamed is None or self.has_something:
            return self.keep()
        if not alone:
            os.unlink(self._unnamed)
        return None

    def close(self) -> None:
        self._forget_copy()
        os.close(self.descriptor)
