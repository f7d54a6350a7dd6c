"""A pseudo-terminal for a command that wants one: what it writes is copied into its log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress

_USUAL = {"COLUMNS": 80, "LINES": 24}
_MOST = 10_000  # what lays out a screen makes all of it


class Terminal:
    """As large as COLUMNS and LINES of its command's environment say, or as terminals once were:
    nothing can be laid out in one without a size."""

    def __init__(self, output: int, env: Mapping[str, str]) -> None:
        import termios

        self._outer, self.inner = os.openpty()
        termios.tcsetwinsize(self.inner, (_size(env, "LINES"), _size(env, "COLUMNS")))
        self._output = os.dup(output)
        os.set_blocking(self._outer, False)

    def begin(self) -> None:
        """The process has its end; copy what comes from ours."""
        os.close(self.inner)
        self.inner = -1
        asyncio.get_running_loop().add_reader(self._outer, self._copy)

    def _copy(self) -> None:
        try:
            data = os.read(self._outer, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # the last process that had it is gone
        if not data:
            asyncio.get_running_loop().remove_reader(self._outer)
            return
        with suppress(OSError):  # a full disk must not end the job
            os.write(self._output, data)

    def close(self) -> None:
        if self.inner >= 0:
            os.close(self.inner)
        else:
            self._copy_rest()
            asyncio.get_running_loop().remove_reader(self._outer)
        os.close(self._outer)
        os.close(self._output)

    def _copy_rest(self) -> None:
        with suppress(OSError):
            while data := os.read(self._outer, 1 << 16):
                os.write(self._output, data)


def _size(env: Mapping[str, str], name: str) -> int:
    with suppress(KeyError, ValueError):
        if 0 < (said := int(env[name])) <= _MOST:
            return said
    return _USUAL[name]
