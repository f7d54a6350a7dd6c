"""Linux: a line is a pair of sockets, of which a child inherits one."""

from __future__ import annotations

import socket
from collections.abc import Callable


class Line:
    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self.word = str(self._theirs.fileno())
        """What the child has to be told, to find its end."""
        self.inherit = (self._theirs.fileno(),)
        self.stdin: int | None = None

    def taken(self, lives: Callable[[], object]) -> socket.socket:  # noqa: ARG002 (it has it)
        """Our end, once the child has been started."""
        self._theirs.close()
        return self._ours

    def close(self) -> None:
        """Where no child came of it."""
        self._ours.close()
        self._theirs.close()
