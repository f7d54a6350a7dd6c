"""The server beside the service: it holds nothing up, takes nothing down, and listens with care."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from svcq.host import peers
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, lives
from tests.web.served import Served


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path, workers=0)
    yield served
    served.close()


def test_one_program_serves_a_home(own: Served) -> None:
    second = own.start("up", "--count", 1)
    eventually(lambda: "another program serves this home already" in own.said(), PATIENCE)
    assert own.place["pid"] == own.service.pid
    # It goes on with its workers, and serves when the first one is gone.
    own.stop()
    eventually(lambda: own.place["pid"] == second.pid, PATIENCE)
    eventually(lambda: own.ask("GET", "/health").status == 200, PATIENCE)
    second.terminate()
    assert second.wait(PATIENCE) == 0


def test_a_killed_service_leaves_nothing_in_the_way(own: Served) -> None:
    site = own.site
    own.service.kill()
    own.service.wait()
    assert (own.path / "service.sock").exists()
    own.serve()
    assert own.site == site
    assert own.ok("GET", "/counts")["pending"] == 0


def test_a_port_that_is_taken_is_left_for_another(own: Served) -> None:
    port = own.port
    own.stop()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        own.serve()
        assert own.port != port
        assert own.ask("GET", "/counts", token=own.token()).status == 200


def test_the_port_can_be_chosen(own: Served) -> None:
    own.stop()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own.configure(f"[workers]\ncount = 0\n[web]\nport = {port}\n")
    own.serve()
    assert own.port == port


def test_a_stop_does_not_wait_for_those_who_follow(own: Served) -> None:
    with own.opened("GET", "/api/v1/stream") as stream:
        assert stream.readline()
        own.service.send_signal(signal.SIGTERM)
        assert own.service.wait(PATIENCE) == 0
    assert not (own.path / "service.sock").exists()


def test_a_home_whose_path_is_long_has_its_socket(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(4):
        folder /= "a-rather-long-name-for-a-folder-in-which-there-is-a-home"
    folder.mkdir(parents=True)
    served = Served(folder, workers=0)
    try:
        assert len(str(served.path / "service.sock")) > 108
        assert served.svcq("open", "--print").stdout.startswith(served.origin)
    finally:
        served.close()


def test_a_store_that_is_locked_is_told_of_and_comes_back(tmp_path: Path) -> None:
    served = Served(tmp_path, 'busy_wait = "200ms"\n', workers=0)
    try:
        with closing(sqlite3.connect(served.path / "svcq.db", isolation_level=None)) as greedy:
            greedy.execute("BEGIN IMMEDIATE")
            answer = served.ask("POST", "/jobs", {"command": "true"})
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert "was locked by another program" in answer.sentence
            # Who only looks does not feel it, nor does the service.
            assert served.ok("GET", "/counts")["pending"] == 0
            assert served.ask("GET", "/health/live").status == 200
        assert served.ask("POST", "/jobs", {"command": "true"}).status == 201
    finally:
        served.close()


def test_the_socket_is_closed_to_others_before_it_listens(tmp_path: Path) -> None:
    with peers.listen_local(tmp_path / "s", 0o600, 5) as end:
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
        with peers.connect_local(tmp_path / "s", 5) as other:
            assert peers.uid_of(other) == os.geteuid()
        assert sorted(one.name for one in tmp_path.iterdir()) == ["s"]
        # The next takes its place, and who comes meanwhile is not turned away.
        with peers.listen_local(tmp_path / "s", 0o600, 5), peers.connect_local(tmp_path / "s", 5):
            assert end.fileno() > 0


def test_the_system_tells_who_listens(own: Served) -> None:
    assert peers.listener_uid(own.port) == os.geteuid()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert peers.listener_uid(free.getsockname()[1]) is None


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    key, made = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-keyout", key, "-out", made, "-subj", "/CN=box.example.org",
         "-addext", "subjectAltName=DNS:box.example.org"],
        check=True, capture_output=True,
    )  # fmt: skip
    key.chmod(0o600)
    return made, key


def test_beyond_this_machine_there_is_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    made, key = certificate
    with socket.socket() as free:
        free.bind(("127.0.0.2", 0))
        port = free.getsockname()[1]
    settings = (
        f'[web]\naddress = "127.0.0.2"\nport = {port}\nname = "box.example.org"\n'
        f'certificate = "{made}"\nkey = "{key}"\n'
    )
    served = Served(tmp_path / "tls", settings, workers=0)
    try:
        trusted = ssl.create_default_context(cafile=made)
        http = HTTPSConnection("box.example.org", port, timeout=20)
        http.sock = trusted.wrap_socket(
            socket.create_connection(("127.0.0.2", port)), server_hostname="box.example.org"
        )
        with closing(http):
            said = {"Host": f"box.example.org:{port}", "Authorization": f"Bearer {served.token()}"}
            http.request("GET", "/api/v1/counts", headers=said)
            answer = http.getresponse()
            assert answer.status == 200
            answer.read()
            # The names of this machine mean nothing there, nor does a request without a token.
            http.request("GET", "/api/v1/counts", headers={**said, "Host": f"127.0.0.1:{port}"})
            answer = http.getresponse()
            assert answer.status == 421
            answer.read()
        code = served.ok("POST", "/login-codes", {"beyond": True})
        assert code["url"].startswith(f"https://box.example.org:{port}/login#code=")
        http = HTTPSConnection("box.example.org", port, timeout=20)
        http.sock = trusted.wrap_socket(
            socket.create_connection(("127.0.0.2", port)), server_hostname="box.example.org"
        )
        with closing(http):
            headers = {
                "Host": f"box.example.org:{port}", "Content-Type": "application/json",
                "Origin": f"https://box.example.org:{port}",
            }  # fmt: skip
            http.request("POST", "/login", json.dumps({"code": code["code"]}), headers)
            answer = http.getresponse()
            assert answer.status == 204
            assert "Secure" in str(answer.headers["set-cookie"])
        # What is not encrypted is not understood.
        with closing(socket.create_connection(("127.0.0.2", port), 10)) as plain:
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: box.example.org\r\n\r\n")
            assert b"HTTP/1.1 200" not in plain.recv(1000)
    finally:
        served.close()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("", "web.name is not set"),
        ('name = "box.example.org"\n', "web.certificate is not set"),
        ('name = "box"\ncertificate = "/no/such.pem"\nkey = "/no/such.key"\n', "does not exist"),
    ],
)
def test_beyond_this_machine_nothing_is_served_without_a_certificate(
    tmp_path: Path, more: str, says: str
) -> None:
    served = Served(tmp_path, f'[web]\naddress = "127.0.0.2"\n{more}', workers=0)
    try:
        eventually(lambda: "Nobody beyond this machine" in served.said(), PATIENCE)
        assert says in served.said()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", served.port), 5)
        # On this machine it is served all the same.
        assert served.ok("GET", "/counts")
    finally:
        served.close()


def test_a_folder_that_others_may_write_gets_no_socket(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(0o777)
    served = Served(tmp_path, f'[web]\nsocket = "{folder}/svcq.sock"\n', workers=0)
    try:
        eventually(lambda: "Other users cannot reach the service" in served.said(), PATIENCE)
        assert "may be written by others" in served.said()
        assert list(folder.iterdir()) == []
        assert served.ok("GET", "/counts")
    finally:
        served.close()


def test_an_error_of_our_own_is_said_here_and_not_there(own: Served) -> None:
    # The file of users is not what svcq wrote.
    (own.path / "users.json").touch(mode=0o600)
    (own.path / "users.json").write_text("nonsense")
    assert own.ok("GET", "/counts")
    listed = own.svcq("user", "list")
    assert listed.returncode == 2
    assert "users.json is not what svcq wrote" in listed.stderr
    assert lives(own.service.pid)
