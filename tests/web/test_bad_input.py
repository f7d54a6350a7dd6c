"""What strangers and mistaken programs send: the right status, one sentence, nothing harmed."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from svcq.web.body import BODY_PATIENCE
from svcq.web.connections import HEAD_LIMIT, HEAD_PATIENCE, MOST_STRANGERS
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, lives
from tests.web.served import Served
from tests.web.test_stream import resident, streams_open

JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def unharmed(idle: Served) -> Iterator[None]:
    """Whatever was sent, nothing came of it, and the service says nothing of it."""
    before = idle.client.counts(), idle.client.queues(), idle.said()
    yield
    assert lives(idle.service.pid)
    assert idle.ask("GET", "/counts").json == before[0]
    assert (idle.client.counts(), idle.client.queues(), idle.said()) == before
    assert "Traceback" not in idle.said()


def nested(depth: int) -> bytes:
    return b'{"command": ' + b"[" * depth + b"]" * depth + b"}"


BODIES: dict[str, tuple[bytes, int]] = {
    "not JSON": (b"{command}", 400),
    "half of it": (b'{"command": "tr', 400),
    "two of them": (b'{"command": "true"}{}', 400),
    "not UTF-8": (b'{"command": "\xff\xfe"}', 400),
    "UTF-16": ('{"command": "true"}'.encode("utf-16"), 400),
    "nested": (nested(200_000), 400),
    "nested less": (nested(500), 422),
    "a number that is none": (b'{"command": "true", "priority": NaN}', 400),
    "a number beyond all": (b'{"command": "true", "jitter": Infinity}', 400),
    "a very long number": (b'{"command": "true", "priority": ' + b"9" * 5000 + b"}", 400),
    "a large number": (b'{"command": "true", "priority": 1e400}', 422),
    "an array": (b"[]", 422),
    "text": (b'"true"', 422),
    "null": (b"null", 422),
    "nothing in it": (b"{}", 422),
    "both": (b'{"command": "true", "task": "a.b"}', 422),
    "an unknown word": (b'{"command": "true", "colour": "blue"}', 422),
    "a word of ours": (b'{"command": "true", "owner": "root"}', 422),
    "a private one": (b'{"command": "true", "_owner": "root"}', 422),
    "self": (b'{"command": "true", "self": 1}', 422),
    "wrong type": (b'{"command": 5}', 422),
    "wrong words": (b'{"command": ["a", 5]}', 422),
    "empty": (b'{"command": ""}', 422),
    "a lone surrogate": (b'{"command": "\\ud800"}', 422),
    "a NUL": (b'{"command": "a\\u0000b"}', 422),
    "a name of digits": (b'{"command": "true", "name": "12"}', 422),
    "an env of numbers": (b'{"command": "true", "env": {"A": 1}}', 422),
    "an env of nobody": (b'{"command": "true", "env": {"": "1"}}', 422),
    "an env that is none": (b'{"command": "true", "env": ["A=1"]}', 422),
    "a directory that is none": (b'{"command": "true", "cwd": 5}', 422),
    "a parent that is not there": (b'{"command": "true", "after": 99999}', 404),
    "arguments of a command": (b'{"command": "true", "args": [1]}', 422),
    "arguments too large": (b'{"task": "a.b", "args": ["' + b"x" * (2 << 20) + b'"]}', 422),
}


@pytest.mark.parametrize(("body", "status"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_job(idle: Served, body: bytes, status: int) -> None:
    answer = idle.ask("POST", "/jobs", body, JSON)
    assert answer.status == status, answer
    assert len(answer.sentence) < 600


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/jobs/batch", {"jobs": []}),
        ("POST", "/jobs/batch", {"jobs": {}}),
        ("POST", "/jobs/batch", {"jobs": ["true"]}),
        ("POST", "/jobs/batch", {"jobs": [{"command": "true"}], "more": 1}),
        ("POST", "/jobs/batch", {"jobs": [{"command": "true"}] * 10_001}),
        ("POST", "/jobs/purge", {}),
        ("POST", "/jobs/purge", {"state": "everything"}),
        ("POST", "/jobs/purge", {"state": [{}]}),
        ("POST", "/jobs/purge", {"state": 5}),
        ("POST", "/jobs/purge", {"state": ["processing"]}),
        ("PATCH", "/queues/x", {"nonsense": 1}),
        ("PATCH", "/queues/x", {"weight": "heavy"}),
        ("PATCH", "/queues/x", {"name": "y"}),
        ("PATCH", "/queues/a%20b", {"weight": 2}),
        ("PATCH", "/queues/x", {"dead_letter": "x"}),
        ("POST", "/schedules", {}),
        ("POST", "/schedules", {"name": "s", "command": "true"}),
        ("POST", "/schedules", {"name": "s", "command": "true", "cron": "* * *"}),
        ("POST", "/schedules", {"name": "s", "command": "true", "cron": "@daily", "every": 5}),
        ("POST", "/schedules", {"name": "s", "command": "true", "every": "1h", "tz": "Mars/Base"}),
        ("POST", "/schedules", {"name": ["s"], "command": "true", "every": "1h"}),
        ("POST", "/login-codes", {"read_only": "yes"}),
        ("GET", "/jobs?limit=0", None),
        ("GET", "/jobs?limit=1001", None),
        ("GET", "/jobs?limit=ten", None),
        ("GET", "/jobs?limit=1&limit=2", None),
        ("GET", "/jobs?limit=%31%30%30%30%30%30%30%30%30%30%30%30%30%30%30%30%30%30%30%30", None),
        ("GET", "/jobs?state=sleeping", None),
        ("GET", "/jobs?colour=blue", None),
        ("GET", "/jobs?since=yesterday", None),
        ("GET", "/jobs?before=-1", None),
        ("GET", "/jobs?queue=", None),
        ("GET", "/stats?minutes=0", None),
        ("GET", "/changes?after=-1", None),
        ("GET", "/changes?wait=61", None),
        ("GET", "/workers?ended=maybe", None),
        ("GET", "/next-runs?cron=nonsense", None),
        ("GET", "/next-runs", None),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_meant(
    idle: Served, method: str, path: str, body: dict[str, Any] | None
) -> None:
    answer = idle.ask(method, path, body)
    assert answer.status == 422, answer
    assert answer.sentence


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "", "multipart/form-data; x=y"])
def test_a_body_of_another_kind(idle: Served, kind: str) -> None:
    answer = idle.ask("POST", "/jobs", b'{"command": "true"}', {"Content-Type": kind})
    assert answer.status == 415
    assert "application/json" in answer.sentence


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(idle: Served) -> None:
    memory = resident(idle.service.pid)
    answer = idle.ask("POST", "/jobs", b" " * (9 << 20), JSON)
    assert answer.status == 413
    assert "8,388,608" in answer.sentence
    # One that does not say how large it is, is counted.
    with closing(idle.local()) as end:
        end.sendall(_head("POST", "/api/v1/jobs", "Transfer-Encoding: chunked", *_json()))
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        for _ in range(200):
            end.sendall(chunk)
        end.sendall(b"0\r\n\r\n")
        assert end.recv(100).startswith(b"HTTP/1.1 413")
    assert resident(idle.service.pid) - memory < 40 << 20


def _head(method: str, path: str, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: svcq", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _json() -> tuple[str]:
    return ("Content-Type: application/json",)


def answer_to(idle: Served, data: bytes) -> bytes:
    with closing(idle.local()) as end:
        end.sendall(data)
        return end.recv(4096)


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /api/v1/jobs HTTP/1.1\r\nHost: svcq\r\nContent-Length: -5\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: svcq\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET /api/v1/jobs HTTP/1.1\r\nHost: svcq\r\nBad Header: x\r\n\r\n",
        b"GET /api/v1/jobs HTTP/1.1\r\nHost: svcq\r\nX: a\x00b\r\n\r\n",
        b"POST /api/v1/jobs HTTP/1.1\r\nHost: svcq\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=range(8),
)
def test_what_is_no_http(idle: Served, data: bytes) -> None:
    answer = answer_to(idle, data)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["detail"].endswith(".")


@pytest.mark.parametrize(
    "path",
    ["/api/v1/jobs/%ff", "/api/v1/jobs/%c0%ae", "/../../etc/passwd", "//etc/passwd",
     "/api/v1/../v1/jobs", "/api/v1/jobs/..%2f..%2f", "/api/v1/jobs/1/output/../../../x",
     "/static/..%2fapp.py", "/static/%2e%2e%2fapp.py", "/static/../app.py", "/%00", "/api/v1",
     "/api/v1/jobs%2f1"],
)  # fmt: skip
def test_paths_lead_nowhere_else(idle: Served, path: str) -> None:
    answer = answer_to(idle, _head("GET", path, "Connection: close"))
    assert answer.split()[1] in (b"400", b"404", b"422"), answer
    assert b"root:" not in answer


@pytest.mark.parametrize("line", [b"X-1: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n", b"x" * 4096])
def test_a_request_whose_head_never_ends_is_dropped(idle: Served, line: bytes) -> None:
    with closing(idle.local()) as end:
        end.sendall(b"GET /api/v1/jobs HTTP/1.1\r\nHost: svcq\r\nX-0: ")

        def is_dropped() -> bool:
            try:
                end.sendall(line * 50)
            except (BrokenPipeError, ConnectionResetError):
                return True
            return False

        eventually(is_dropped, PATIENCE)


@pytest.mark.parametrize("word", ["?queue=", " HTTP/1.1\r\nX-0: "])
def test_a_head_that_is_too_large_is_told_so(idle: Served, word: str) -> None:
    sent = f"GET /api/v1/counts{word}{'x' * HEAD_LIMIT}"
    answer = answer_to(idle, f"{sent}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 431")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["detail"].endswith("send less.")


def test_who_sends_slowly_or_nothing_is_let_go(idle: Served) -> None:
    with ExitStack() as opened:
        began = time.monotonic()
        silent = [opened.enter_context(closing(idle.connect())) for _ in range(5)]
        slow = opened.enter_context(closing(idle.connect()))
        slow.sendall(b"GET /api/v1/jobs HTTP/1.1\r\n")
        for end in silent:
            end.settimeout(PATIENCE)
            assert end.recv(1) == b""
        assert HEAD_PATIENCE - 1 < time.monotonic() - began < HEAD_PATIENCE + 30
        slow.settimeout(PATIENCE)
        assert slow.recv(1) == b""


def test_a_body_that_does_not_come_is_not_waited_for(idle: Served) -> None:
    with closing(idle.local()) as end:
        end.settimeout(BODY_PATIENCE + PATIENCE)
        end.sendall(_head("POST", "/api/v1/jobs", "Content-Length: 100", *_json()) + b'{"comm')
        # Others are answered meanwhile.
        assert idle.ok("GET", "/counts")
        assert end.recv(100).startswith(b"HTTP/1.1 408")


def test_strangers_cannot_keep_others_out(idle: Served) -> None:
    with ExitStack() as opened:
        held = [opened.enter_context(closing(idle.connect())) for _ in range(3 * MOST_STRANGERS)]
        # The oldest have been let go, so that there is room.
        assert idle.ask("GET", "/counts", token=idle.token()).status == 200
        eventually(lambda: streams_open(idle) <= MOST_STRANGERS + 5, PATIENCE)
        held[0].settimeout(5)
        with pytest.raises((ConnectionResetError, AssertionError)):
            assert held[0].recv(1) != b""


def test_requests_in_one_breath_are_answered_in_order(idle: Served) -> None:
    head = _head("GET", "/api/v1/counts")
    last = _head("GET", "/api/v1/queues", "Connection: close")
    with closing(idle.local()) as end:
        end.sendall(head * 3 + last)
        data = b""
        while block := end.recv(65536):
            data += block
    assert data.count(b"HTTP/1.1 200") == 4
    assert data.rstrip().endswith(b"}")
    assert data.rindex(b'"queues"') > data.rindex(b'"held"')


def test_a_connection_that_breaks_off_takes_nothing_along(idle: Served) -> None:
    for _ in range(20):
        end = idle.local()
        end.sendall(_head("GET", "/api/v1/stream"))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        end.close()
    assert idle.ok("GET", "/counts")
