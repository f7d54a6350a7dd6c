"""A home whose API is served by a real `svcq up`, and ways to ask it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple

from svcq.host import peers
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, QUICK, Home

# Those that stand beside the API.
_OUTSIDE = ("/", "/login", "/logout", "/metrics", "/health", "/health/live", "/health/ready")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def sentence(self) -> str:
        """What a problem says: one sentence, as problem+json."""
        assert self.headers["content-type"] == "application/problem+json", self
        said = self.json
        assert said["status"] == self.status
        sentence = str(said["detail"])
        assert sentence.endswith((".", "?")), sentence
        assert "\n" not in sentence
        assert "Traceback" not in sentence
        return sentence


class Served(Home):
    """Without workers it is `svcq service`: what strangers to it make up is then never run."""

    def __init__(self, folder: Path, settings: str = QUICK, workers: int = 1) -> None:
        super().__init__(folder, settings if workers else f"{settings}\n[workers]\ncount = 0\n")
        self.workers = workers
        self.serve()

    def serve(self) -> None:
        """Start it, and wait until it answers."""
        words = ("up", "--count", self.workers) if self.workers else ("service",)
        self.service = self.start(*words)

        def answers() -> bool:
            assert self.service.poll() is None, self.said()
            try:
                return (
                    self.place["pid"] == self.service.pid
                    and self.ask("GET", "/health").status == 200
                )
            except (OSError, ValueError):
                return False

        eventually(answers, PATIENCE)

    def stop(self) -> None:
        self.service.terminate()
        assert self.service.wait(PATIENCE) == 0, self.said()

    @property
    def place(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((self.path / "web.json").read_text())
        return said

    @property
    def port(self) -> int:
        return int(self.place["port"])

    @property
    def site(self) -> str:
        return f"{self.place['name']}:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.site}"

    def token(self, name: str = "token") -> str:
        return (self.path / name).read_text().strip()

    def connect(self) -> socket.socket:
        """A bare connection over the network."""
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def local(self) -> socket.socket:
        """A bare connection over the local socket, as whoever runs the tests."""
        return peers.connect_local(self.path / "service.sock", PATIENCE)

    @contextmanager
    def opened(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None,
        *, token: str | None = None,
    ) -> Iterator[HTTPResponse]:  # fmt: skip
        """An answer that is still being read: over the network when a token (or "") is given."""
        http = HTTPConnection("svcq", timeout=PATIENCE)
        http.sock = self.local() if token is None else self.connect()
        sent = dict(headers or {})
        if token is not None:
            sent.setdefault("Host", f"127.0.0.1:{self.port}")
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        data = body
        if body is not None and not isinstance(body, bytes):
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        with closing(http):
            http.request(method, path, data, sent)
            with closing(http.getresponse()) as response:
                yield response

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None,
        *, token: str | None = None,
    ) -> Answer:  # fmt: skip
        place = path if path in _OUTSIDE or path.startswith("/static/") else f"/api/v1{path}"
        with self.opened(method, place, body, headers, token=token) as response:
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())

    def ok(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = self.ask(method, path, body, **more)
        assert answer.status in (200, 201), answer
        return answer.json


class Event(NamedTuple):
    id: str
    kind: str
    data: Any


def events(response: HTTPResponse) -> Iterator[Event]:
    """The events of a stream, as they come; comments are left out."""
    said: dict[str, str] = {}
    while True:
        line = response.readline().decode().rstrip("\n")
        if not line:
            if "data" in said:
                yield Event(said.get("id", ""), said.get("event", ""), json.loads(said["data"]))
            elif not said and response.isclosed():
                return
            said = {}
            continue
        name, _, value = line.partition(":")
        if name:
            said[name] = value.removeprefix(" ")
