"""Speaking with the service: HTTP over its local socket, or over this machine's own network.

Whoever listens gets to see what we send: commands, environments, a token. So before anything is
sent it is made sure that the listener is the account the service belongs to.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from svcq import errors, host
from svcq.client.verbs import PREFIX
from svcq.host import peers

OWN_SOCKET = "service.sock"
PLACE = "web.json"
TOKEN = "token"  # noqa: S105  the name of a file
PATIENCE = 90.0  # seconds for an answer
_IDLE = 20.0  # seconds; the service closes what is idle for longer than that
_REPEATABLE = "Idempotency-Key"


class Connection:
    """One connection to the service, opened when it is needed and again when it was lost."""

    def __init__(self, where: str, patience: float = PATIENCE) -> None:
        self.where = where
        self._patience = patience
        self._http: HTTPConnection | None = None
        self._used = 0.0

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """What the service answers, as JSON; its errors are raised as they were there."""
        response = self._send(method, path, query, body, headers)
        data = response.read()
        if response.status >= 400:
            raise error_of(response.status, data)
        return json.loads(data) if data else None

    def read(
        self, path: str, query: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[HTTPResponse, Iterator[bytes]]:
        """An answer that is no JSON, block by block."""
        response = self._send("GET", path, query, None, headers)
        if response.status >= 400:
            raise error_of(response.status, response.read())
        return response, iter(lambda: response.read(1 << 16), b"")

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Any,
        headers: Mapping[str, str] | None,
    ) -> HTTPResponse:
        target = PREFIX + path
        if query:
            target += "?" + urlencode(_flat(query), doseq=True)
        sent = {**self._headers(), **(headers or {})}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        # One that was idle may have been closed meanwhile; what can be said twice is said again.
        tries = 2 if self._http is not None and (method == "GET" or _REPEATABLE in sent) else 1
        if self._http is not None and time.monotonic() - self._used > _IDLE:
            self.close()
        while True:
            try:
                http = self._http or self._open()
                http.request(method, target, data, sent)
                self._used = time.monotonic()
                return http.getresponse()
            except (OSError, HTTPException) as error:
                self.close()
                tries -= 1
                if not tries:
                    raise self._unreachable(error) from error

    def _open(self) -> HTTPConnection:
        http = HTTPConnection("svcq", timeout=self._patience)
        http.sock = self._connect()
        self._http = http
        return http

    def _connect(self) -> socket.socket:
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        return {}

    def _unreachable(self, error: Exception) -> errors.Unreachable:
        said = getattr(error, "strerror", None) or error
        return errors.Unreachable(
            f"The service at {self.where} does not answer ({said}): start it with svcq start or "
            "svcq up."
        )


class LocalConnection(Connection):
    """By a local socket: the system tells the service who we are, and us who it is."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        super().__init__(str(path), patience)
        self._path = path

    def _connect(self) -> socket.socket:
        end = peers.connect_local(self._path, self._patience)
        try:
            self._check(end)
        except BaseException:
            end.close()
            raise
        return end

    def _check(self, end: socket.socket) -> None:
        # Whose the folder is, decides who may put a socket there.
        if peers.uid_of(end) not in (0, self._path.parent.stat().st_uid):
            raise errors.NotPermitted(
                f"Another user listens at {self._path}, not the owner of the service: "
                "nothing was sent."
            )


class NetworkConnection(Connection):
    """By this machine's own network, with the token in the home."""

    def __init__(self, home: Path, patience: float = PATIENCE) -> None:
        super().__init__(str(home), patience)
        self._home = home

    def _connect(self) -> socket.socket:
        port = self._port()
        end = socket.create_connection(("127.0.0.1", port), self._patience)
        # After connecting: whoever took the port since the file was written is the one we reached.
        if peers.listener_uid(port) != peers.own_uid():
            end.close()
            raise errors.NotPermitted(
                f"Port {port} is not the service's any more: another program listens there, and "
                "nothing was sent. Start the service anew with svcq restart."
            )
        return end

    def _port(self) -> int:
        file = self._home / PLACE
        try:
            host.check_private(file)
            return int(json.loads(file.read_text())["port"])
        except (errors.InvalidInput, ValueError, KeyError, TypeError) as error:
            raise self._unreachable(error) from None

    def _headers(self) -> dict[str, str]:
        file = self._home / TOKEN
        host.check_private(file)
        return {
            "Authorization": f"Bearer {file.read_text().strip()}",
            "Host": f"127.0.0.1:{self._port()}",
        }


def _flat(query: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }


def error_of(status: int, data: bytes) -> errors.SvcqError:
    """The error that the service had, with its sentence."""
    try:
        said = json.loads(data)
        kind: type[errors.SvcqError] = getattr(errors, said["error"])
        sentence = str(said["detail"])
        if issubclass(kind, errors.UniqueTaken):
            return kind(sentence, said["job"])
        if issubclass(kind, errors.SvcqError):
            return kind(sentence)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return errors.Unreachable(
        f"The service answered with {status}, which this program does not understand: "
        "bring both to the same version."
    )
