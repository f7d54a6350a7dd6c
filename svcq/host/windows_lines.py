"""Windows: a line is a connection that the child makes to us.

A socket cannot be handed to a child through python.exe of a virtual environment, which only starts
another. So the child reads from a pipe where to call and what to say: anyone on
the machine may call there, and who does not know the word is hung up on.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import time
from collections.abc import Callable

from svcq.host.windows_peers import claim_port

_LETTERS = 64  # of the word
_PATIENCE = 60.0  # seconds for a child to come up and call
_LOOK = 0.2
_SAY = 2.0  # seconds for the word to be said


class Line:
    def __init__(self) -> None:
        self._door = socket.socket()
        claim_port(self._door)
        self._door.bind(("127.0.0.1", 0))
        self._door.listen()
        self._secret = secrets.token_hex(_LETTERS // 2).encode()
        self._reading, writing = os.pipe()
        with open(writing, "wb") as pipe:
            pipe.write(b"%d %s" % (self._door.getsockname()[1], self._secret))
        self.word = "-"
        """What the child has to be told, to find its end: it reads the rest."""
        self.inherit: tuple[int, ...] = ()
        self.stdin: int | None = self._reading

    def taken(self, lives: Callable[[], object]) -> socket.socket:
        """Our end, once the child has called; ConnectionError when it ends before it does."""
        deadline = time.monotonic() + _PATIENCE
        try:
            self._door.settimeout(_LOOK)
            while lives() and time.monotonic() < deadline:
                try:
                    caller, _ = self._door.accept()
                except TimeoutError:
                    continue
                if self._is_ours(caller):
                    return caller
                caller.close()
        finally:
            self.close()
        raise ConnectionError("the runner has not called")

    def _is_ours(self, caller: socket.socket) -> bool:
        said = b""
        caller.settimeout(_SAY)
        try:
            while len(said) < _LETTERS and (more := caller.recv(_LETTERS - len(said))):
                said += more
        except OSError:
            return False
        caller.settimeout(None)
        return hmac.compare_digest(said, self._secret)

    def close(self) -> None:
        """Nobody is let in any more."""
        self._door.close()
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1
