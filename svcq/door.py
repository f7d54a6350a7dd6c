"""Which door a caller takes: the store, for its owner; the service's socket, for everyone else."""

from __future__ import annotations

import os

from svcq import host
from svcq.config.load import default_directory


def find_socket(
    home: str | os.PathLike[str] | None = None, socket: str | os.PathLike[str] | None = None
) -> str | None:
    """Where the service is asked; None for those who open the store themselves.

    `SVCQ_SOCKET` names it; otherwise it is known of the service for the whole machine alone.
    """
    if socket is not None:
        return str(os.fspath(socket))
    if home is None and (named := os.environ.get("SVCQ_SOCKET")):
        return named
    directory = os.path.abspath(home) if home else default_directory(os.environ)
    return host.public_socket(directory) if host.is_of_another(directory) else None
