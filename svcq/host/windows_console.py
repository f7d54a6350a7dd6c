"""Windows: consoles, which have to be told to understand colours, and pipes.

What goes into a pipe or a file is UTF-8, as all that svcq writes, and not in the code page that
Windows has for programs of old.
"""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TextIO

_UNDERSTAND_COLOURS = 0x0004


def prepare(stream: TextIO) -> None:
    if not stream.isatty() and isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8")


def shows_colours(stream: TextIO) -> bool:
    """Whether this console can; those before Windows 10 cannot, and would show the signs."""
    import ctypes

    from svcq.host.windows_handles import handle_of
    from svcq.host.windows_kernel import library

    with suppress(OSError, ValueError):
        kernel, mode = library("kernel32"), ctypes.c_uint32()
        handle = ctypes.c_void_p(handle_of(stream.fileno()))
        if kernel.GetConsoleMode(handle, ctypes.byref(mode)):
            return bool(kernel.SetConsoleMode(handle, mode.value | _UNDERSTAND_COLOURS))
    return False
