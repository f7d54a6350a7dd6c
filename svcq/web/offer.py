"""Telling the machines that share a store how they get at the output this one keeps."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

from svcq.client import Client
from svcq.config import Config
from svcq.errors import SvcqError
from svcq.store import machines
from svcq.store.machines import Door
from svcq.web.desk import Desk
from svcq.web.listen import Beyond
from svcq.web.tokens import READER, read_token

_AGAIN = 10.0  # seconds, after which a new token is told too


async def keep_offering(desk: Desk, config: Config, beyond: Beyond | None) -> None:
    """As long as the service is served; what may be read there, and nothing else, is let in."""
    told: Door | str | None = "nothing yet"
    while True:
        with suppress(SvcqError, OSError):
            door = await asyncio.to_thread(_door, config, beyond)
            if door != told:
                await desk.write(partial(_tell, config.directory, door))
                told = door
        await asyncio.sleep(_AGAIN)


def _tell(home: str, door: Door | None, client: Client) -> None:
    machines.offer(client.store.engine, socket.gethostname(), home, door)


def _door(config: Config, beyond: Beyond | None) -> Door | None:
    if beyond is None:
        return None
    certificate = _first_of(Path(config.web.certificate).read_text())
    token = read_token(config.home / READER)
    return Door(config.web.address, beyond.site.port, beyond.site.name, certificate, token)


def _first_of(chain: str) -> str:
    """The certificate itself, without those that lead to it."""
    end = "-----END CERTIFICATE-----"
    return chain[chain.index("-----BEGIN CERTIFICATE-----") :].partition(end)[0] + end + "\n"
