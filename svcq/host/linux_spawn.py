"""Linux: starting a process by the C library's posix_spawn.

subprocess is what everything else uses. But it asks for a pipe through which to hear of a failure
and waits for the end of that, which takes about as long as the start itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Mapping, Sequence
from functools import cache

_SETSIGDEF, _SETSID = 0x04, 0x80
_ROOM = 1024  # bytes: more than any C library takes for one of its records
# Python ignores two of them, and posix_spawn would the two that the C library keeps for itself.
_NOT_TO_BE_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ, 32, 33)


def spawn(
    program: str,
    argv: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str],
    streams: Sequence[int],
    inherit: Sequence[int],
) -> int | None:
    """The pid of a process in a session of its own, with these as its standard streams. None where
    it could not be started; to say why is left to subprocess."""
    found = _library()
    words = _strings(argv)
    settings = _strings([f"{name}={value}" for name, value in env.items()])
    if found is None or words is None or settings is None or min(*streams, *inherit, 3) < 3:
        return None
    library, attributes = found
    steps = ctypes.create_string_buffer(_ROOM)
    library.posix_spawn_file_actions_init(steps)
    try:
        if cwd is not None:
            library.posix_spawn_file_actions_addchdir_np(steps, os.fsencode(cwd))
        for number, one in enumerate(streams):
            library.posix_spawn_file_actions_adddup2(steps, one, number)
        for one in inherit:  # onto itself: it is closed with us alone
            library.posix_spawn_file_actions_adddup2(steps, one, one)
        pid = ctypes.c_int()
        path = os.fsencode(program)
        if library.posix_spawn(ctypes.byref(pid), path, steps, attributes, words, settings):
            return None
        return pid.value
    finally:
        library.posix_spawn_file_actions_destroy(steps)


def _strings(strings: Sequence[str]) -> ctypes.Array[ctypes.c_char_p] | None:
    """As C has them; None where it cannot."""
    encoded = os.fsencode("\0".join(strings)).split(b"\0") if strings else []
    if len(encoded) != len(strings):
        return None
    return (ctypes.c_char_p * (len(encoded) + 1))(*encoded)


@cache
def _library() -> tuple[ctypes.PyDLL, ctypes.Array[ctypes.c_char]] | None:
    """With what holds for all that are started. None of a library that cannot do it: with the call
    that is looked for came all that the others are relied on for."""
    # Without letting another thread of ours start something meanwhile, which would be branded, too.
    library = ctypes.PyDLL(None)
    if not hasattr(library, "posix_spawn_file_actions_addchdir_np"):
        return None
    attributes = ctypes.create_string_buffer(_ROOM)
    library.posix_spawnattr_init(attributes)
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    signals = (ctypes.c_ulong * (_ROOM // bits))()
    for number in _NOT_TO_BE_IGNORED:  # sigaddset would leave out the library's own
        signals[(number - 1) // bits] |= 1 << (number - 1) % bits
    library.posix_spawnattr_setsigdefault(attributes, signals)
    library.posix_spawnattr_setflags(attributes, ctypes.c_short(_SETSIGDEF | _SETSID))
    return library, attributes
