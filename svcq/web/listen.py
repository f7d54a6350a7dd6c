"""The sockets the service listens on, each made by us and closed to others before it listens."""

from __future__ import annotations

import json
import os
import secrets
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from svcq import host
from svcq.client.connection import OWN_SOCKET, PLACE
from svcq.config import Config
from svcq.errors import Refused, SvcqError
from svcq.host import peers, processes
from svcq.web import tokens
from svcq.web.access import Site

LOCK = "web.lock"
_BACKLOG = 512


class Listening(NamedTuple):
    """Where we are asked: on this machine, and beyond it if there is a certificate."""

    site: Site
    sockets: list[socket.socket]
    beyond: Beyond | None = None
    troubles: tuple[str, ...] = ()
    """What could not be had, in sentences; the rest is served all the same."""


class Beyond(NamedTuple):
    site: Site
    socket: socket.socket
    tls: ssl.SSLContext


@contextmanager
def listen(config: Config) -> Iterator[Listening]:
    """Be the one that serves a home: its lock, its sockets, and the file that says where."""
    home = config.home
    lock = processes.hold_lock(home / LOCK)
    if lock is None:
        raise Refused("another program serves this home already.")
    with ExitStack() as opened:
        opened.callback(os.close, lock)
        tokens.make_missing(home)
        before = read_place(home)
        sockets = [
            opened.enter_context(one) for one in _network(config.web.port or before.get("port", 0))
        ]
        port = sockets[0].getsockname()[1]
        name = before.get("name") or f"svcq-{secrets.token_hex(8)}.localhost"
        if peers.KNOWS_PEERS:
            sockets.append(_local(opened, home / OWN_SOCKET, 0o600))
        troubles = []
        try:
            sockets += _public(opened, config)
        except (SvcqError, OSError) as error:
            troubles.append(f"Other users cannot reach the service: {error}")
        beyond = None
        try:
            beyond = _beyond(opened, config)
        except (SvcqError, OSError, ssl.SSLError) as error:
            troubles.append(f"Nobody beyond this machine can reach the service: {error}")
        said = {"port": port, "name": name, "pid": os.getpid()}
        host.write_private(home / PLACE, json.dumps(said))
        yield Listening(Site(name, port), sockets, beyond, tuple(troubles))


def _local(opened: ExitStack, path: Path, mode: int) -> socket.socket:
    one = opened.enter_context(peers.listen_local(path, mode, _BACKLOG))
    opened.callback(path.unlink, missing_ok=True)
    return one


def _public(opened: ExitStack, config: Config) -> list[socket.socket]:
    """The socket for other users. All may connect: who is let in is decided by who they are."""
    path = config.web.socket or host.public_socket(str(config.home))
    if not path:
        return []
    host.check_private(Path(path).parent)
    return [_local(opened, Path(path), 0o666)]


def _beyond(opened: ExitStack, config: Config) -> Beyond | None:
    web = config.web
    if not web.address:
        return None
    missing = [name for name in ("name", "certificate", "key") if not getattr(web, name)]
    if missing:
        raise Refused(
            f"web.address is {web.address}, but web.{missing[0]} is not set; "
            "what leaves this machine is encrypted or not sent."
        )
    host.check_private(web.key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.load_cert_chain(web.certificate, web.key)
    family = socket.AF_INET6 if ":" in web.address else socket.AF_INET
    one = opened.enter_context(_bind(family, web.address, web.port))
    port = one.getsockname()[1]
    return Beyond(Site(web.name, port, secure=True), one, tls)


def read_place(home: Path) -> dict[str, Any]:
    """Where the last server of this home was; nothing where that cannot be known."""
    try:
        host.check_private(home / PLACE)
        said = json.loads((home / PLACE).read_text())
    except (OSError, ValueError, SvcqError):
        return {}
    return said if isinstance(said, dict) else {}


def _network(port: int) -> list[socket.socket]:
    """Both loopback addresses, at the same port: a browser may try either, and whoever had the
    other would be sent our cookies."""
    for wanted in (port, 0, 0, 0) if port else (0, 0, 0):
        opened: list[socket.socket] = []
        try:
            opened.append(_bind(socket.AF_INET, "127.0.0.1", wanted))
            if _has_ipv6():
                number = opened[0].getsockname()[1]
                opened.append(_bind(socket.AF_INET6, "::1", number))
            return opened
        except OSError:
            for one in opened:
                one.close()
    raise Refused("no port of this machine's own address could be had.")


def _bind(family: int, address: str, port: int) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        peers.claim_port(one)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind((address, port))
        one.listen(_BACKLOG)
        one.setblocking(False)
    except BaseException:
        one.close()
        raise
    return one


def listen_on(one: Any) -> None:
    """Let many wait in line: asyncio has shortened it to what it takes at a time."""
    with one.dup() as same:
        same.listen(_BACKLOG)


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True
