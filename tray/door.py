"""Which service the tray asks, and where its own things are. It never opens a store."""

from __future__ import annotations

import os
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Literal, NamedTuple

from svcq import host
from svcq.client.connection import OWN_SOCKET, Connection, LocalConnection
from svcq.client.remote import RemoteClient
from svcq.config import Config, load
from svcq.config.load import default_directory
from svcq.door import find_socket
from svcq.errors import SvcqError, Unreachable

WRONG = (SvcqError, OSError, HTTPException, ValueError, KeyError, TypeError)
"""What asking may end with, whatever it is that answers."""
ANSWER = 10.0  # seconds for an answer: who looks at a menu does not wait for longer


class Door(NamedTuple):
    """The way to one service."""

    home: Path
    """Of the service."""
    socket: Path
    own: Path
    """A folder of the user's own, for what the tray remembers and how it is set."""
    whose: Literal["own", "machine", "other"]

    def connect(self, patience: float = ANSWER) -> Connection:
        return LocalConnection(self.socket, patience)

    def client(self, connection: Connection | None = None) -> RemoteClient:
        return RemoteClient(home=self.home, connection=connection or self.connect())

    def settings(self) -> Config:
        """The user's own, whoever the service belongs to."""
        return load(self.own, {})


def find() -> Door:
    home = Path(default_directory(os.environ))
    socket = find_socket()
    if socket is None:
        return Door(home, home / OWN_SOCKET, home, "own")
    own = Path(host.data_directory(), "svcq")
    machine = host.public_socket(str(home)) == socket and not os.environ.get("SVCQ_SOCKET")
    return Door(home, Path(socket), own, "machine" if machine else "other")


def says(error: Exception, door: Door) -> str:
    """Why the service was not reached, as short as a tooltip wants it."""
    if isinstance(error, Unreachable):
        cause = error.__cause__
        if isinstance(cause, FileNotFoundError | ConnectionRefusedError):
            return "svcq does not run: start it with Service, Start."
        if isinstance(cause, TimeoutError):
            return "svcq does not answer: it is stopped, or has too much to do."
        with suppress(OSError):
            if not door.socket.exists():
                return "svcq does not run: start it with Service, Start."
    if isinstance(error, SvcqError | OSError):
        return str(error) or type(error).__name__
    return "The service answers what this tray does not understand: bring both to one version."
