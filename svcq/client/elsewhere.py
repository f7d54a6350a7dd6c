"""Output that another machine keeps: read through the service there, where that lets others in."""

from __future__ import annotations

import socket
import ssl
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple

from svcq import errors
from svcq.client.connection import Connection
from svcq.client.remote import RemoteLog
from svcq.logs import Log, log_file
from svcq.store import Store
from svcq.store.machines import Door, Service

_PATIENCE = 5.0  # seconds for an answer: what is said of the rest is worth more than a long wait


class Elsewhere(NamedTuple):
    """Where the output of a run is kept, on another machine."""

    host: str
    file: Path | None
    """There; None where its home is not known."""
    log: Log | None
    """The whole of it; None when that cannot be had."""
    why: str = ""
    """Why not."""


def find(store: Store, job: int, run: int) -> Elsewhere | None:
    """None for what ran here, or on no machine yet."""
    host = _host_of(store, job, run)
    if host is None or host == socket.gethostname():
        return None
    services = [one for one in store.services() if one.host == host]
    file = log_file(Path(services[0].home), job, run) if len(services) == 1 else None
    if not services:
        return Elsewhere(host, file, None, f"no service of {host} has been heard of lately")
    why = f"the service of {host} is not served beyond that machine (web.address)"
    for one in services:
        if one.door is not None:
            try:
                door = one.door._replace(token=store.token_of(one))
                log = RemoteLog(_Beyond(one, door), job, run)
                if log.size() is not None:
                    return Elsewhere(host, log_file(Path(one.home), job, run), log)
                why = f"the service of {host} does not have it any more"
            except (errors.SvcqError, OSError, ValueError) as error:
                why = f"the service of {host} could not be asked: {error}".rstrip(".")
    return Elsewhere(host, file, None, why)


def _host_of(store: Store, job: int, run: int) -> str | None:
    for one in store.runs(job):
        if one.run == run:
            return one.host
    found = store.get(job)
    if found.run != run or found.worker is None:
        return None
    return next((one.host for one in store.workers() if one.id == found.worker), None)


class _Beyond(Connection):
    """By TLS, to whoever has the very certificate that the store names."""

    def __init__(self, service: Service, door: Door) -> None:
        super().__init__(f"{service.host} ({door.address}, port {door.port})")
        self._door = door

    def _open(self) -> HTTPConnection:
        http = HTTPConnection(self._door.name, self._door.port, timeout=_PATIENCE)
        http.sock = self._connect()
        self._http = http
        return http

    def _connect(self) -> socket.socket:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        # Pinned: neither who signed it nor for which name tells more than that.
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        address = (self._door.address, self._door.port)
        line = socket.create_connection(address, _PATIENCE)
        try:
            end = tls.wrap_socket(line, server_hostname=self._door.name)
        except BaseException:
            line.close()
            raise
        if end.getpeercert(binary_form=True) != ssl.PEM_cert_to_DER_cert(self._door.certificate):
            end.close()
            raise HTTPException("it shows another certificate than the one in the store")
        return end

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._door.token}"}
