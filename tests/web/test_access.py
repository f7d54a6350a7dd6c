"""Who is let in, and what a browser may be made to do: on real sockets of a real service."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPException

import pytest

from svcq.client import Client
from svcq.client.connection import NetworkConnection
from svcq.client.remote import RemoteClient
from svcq.web.guard import POLICY
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.web.served import Answer, Served

JSON = {"Content-Type": "application/json"}


def log_in(served: Served, **wanted: bool) -> dict[str, str]:
    """The headers of a page whose reader has logged in."""
    code = served.ok("POST", "/login-codes", wanted)["code"]
    answer = post_code(served, code)
    assert answer.status == 204, answer
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {"Host": served.site, "Cookie": cookie}


def post_code(served: Served, code: object, **headers: str) -> Answer:
    said = {"Host": served.site, "Origin": served.origin, **headers}
    return served.ask("POST", "/login", {"code": code}, said, token="")


def own(served: Served, page: dict[str, str]) -> dict[str, str]:
    return {**page, "Origin": served.origin, "Sec-Fetch-Site": "same-origin"}


def test_files_of_secrets_are_the_owners_alone(served: Served) -> None:
    for name in ("token", "token-read", "web.json", "service.sock", "web.lock"):
        mode = stat.S_IMODE((served.path / name).stat().st_mode)
        assert mode & 0o077 == 0, name
    assert len(served.token()) > 40
    assert served.token() != served.token("token-read")


def test_it_listens_on_this_machine_alone(served: Served) -> None:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as file:
            rows = [line.split() for line in file.read().splitlines()[1:]]
        found |= {
            row[1].rpartition(":")[0]
            for row in rows
            if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == served.port
        }
    assert "0100007F" in found
    assert found <= {"0100007F", "00000000000000000000000001000000"}


@pytest.mark.parametrize("path", ["/jobs", "/stream", "/openapi.json", "/config", "/nothing"])
def test_nobody_is_let_in_without_a_token(served: Served, path: str) -> None:
    answer = served.ask("GET", path, token="")
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "token" in answer.sentence
    assert served.ask("GET", "/metrics").status in (200, 404)


def test_health_and_login_alone_are_open(served: Served) -> None:
    for path in ("/health", "/health/live", "/health/ready"):
        answer = served.ask("GET", path, token="")
        assert (answer.status, answer.json) == (200, {"status": "ok"})
    page = served.ask("GET", "/login", token="")
    assert page.status == 200
    assert served.site.encode() not in page.body
    assert served.ask("GET", "/static/login.js", token="").status == 200
    for trick in ("..%2f..%2fserver.py", "%2e%2e/app.py", "..", "nothing.js", "login.js/x"):
        answer = served.ask("GET", f"/static/{trick}", token="")
        assert answer.status in (401, 404), trick


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic d2hhdDpldmVy",
        "svcq",
        "Bearer \xff\xfe",
        "x" * 9000,
    ],
)
def test_a_wrong_token_is_refused(served: Served, header: str) -> None:
    answer = served.ask("GET", "/jobs", headers={"Authorization": header}, token="")
    assert answer.status == 401
    assert answer.sentence


def test_the_token_of_another_home_is_worth_nothing_here(served: Served, idle: Served) -> None:
    assert served.ask("GET", "/jobs", token=idle.token()).status == 401
    assert served.ask("GET", "/jobs", token=served.token()).status == 200


def test_one_token_is_for_looking_alone(served: Served) -> None:
    reading = served.token("token-read")
    assert served.ask("GET", "/jobs", token=reading).status == 200
    before = served.client.counts()
    for method, path in (
        ("POST", "/jobs"), ("POST", "/jobs/1/cancel"), ("PATCH", "/queues/x"),
        ("POST", "/jobs/purge"), ("PATCH", "/config"), ("POST", "/schedules"),
        ("GET", "/jobs/1/environment"),
    ):  # fmt: skip
        answer = served.ask(method, path, {} if method != "GET" else None, token=reading)
        assert answer.status in (403, 404), path
        assert answer.sentence
    assert served.client.counts() == before


def test_the_token_for_looking_shows_no_secrets(served: Served) -> None:
    job = served.client.command("true", hold=True, env={"API_TOKEN": "hush", "PLAIN": "seen"}).id
    for masked in ("true", "false"):
        path = f"/jobs/{job}/environment?masked={masked}"
        looking = served.ask("GET", path, token=served.token("token-read"))
        assert looking.json["variables"]["PLAIN"] == "seen"
        assert b"hush" not in looking.body
        full = served.ask("GET", path, token=served.token())
        assert (b"hush" in full.body) is (masked == "false")


def test_guesses_become_slow_and_the_right_token_does_not(own_served: Served) -> None:
    served = own_served
    took = []
    for _ in range(12):
        began = time.monotonic()
        assert served.ask("GET", "/jobs", token="wrong").status == 401
        took.append(time.monotonic() - began)
    assert took[-1] > 0.5
    right = []
    for _ in range(5):
        began = time.monotonic()
        assert served.ask("GET", "/jobs", token=served.token()).status == 200
        right.append(time.monotonic() - began)
    assert min(right) < 0.5  # one of them may have met a busy machine


@pytest.mark.parametrize(
    "name",
    ["evil.example.org", "", "127.0.0.1", "127.0.0.1:1", "localhost", "svcq-0.localhost:{port}",
     "{name}", "{name}.evil.org:{port}", "127.0.0.1:{port}@evil.org"],
)  # fmt: skip
def test_a_foreign_host_is_refused(served: Served, name: str) -> None:
    asked = name.format(port=served.port, name=served.place["name"])
    answer = served.ask("GET", "/jobs", headers={"Host": asked}, token=served.token())
    assert answer.status == 421
    assert served.place["name"] not in answer.sentence or served.place["name"] in asked


@pytest.mark.parametrize("name", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "{site}"])
def test_its_own_names_are_known(served: Served, name: str) -> None:
    asked = name.format(port=served.port, site=served.site)
    assert served.ask("GET", "/jobs", headers={"Host": asked}, token=served.token()).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example.org"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:{port}"},
        {"Origin": "http://{name}:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_are_refused_even_with_a_token(
    served: Served, headers: dict[str, str]
) -> None:
    said = {
        key: value.format(port=served.port, name=served.place["name"])
        for key, value in headers.items()
    }
    answer = served.ask("GET", "/jobs", headers=said, token=served.token())
    assert answer.status == 403
    assert "another site" in answer.sentence


def test_the_page_logs_in_by_a_code_once(served: Served) -> None:
    said = served.ask("POST", "/login-codes", {})
    assert said.status == 201
    code, url = said.json["code"], said.json["url"]
    assert url == f"{served.origin}/login#code={code}"
    answer = post_code(served, code)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie
    again = post_code(served, code)
    assert again.status == 401
    assert "svcq open" in again.sentence
    page = {"Host": served.site, "Cookie": cookie.partition(";")[0]}
    assert served.ask("GET", "/jobs", headers=page, token="").status == 200


@pytest.mark.parametrize("code", ["", "wrong", 5, None, ["x"], "x" * 3000])
def test_a_wrong_code_is_refused(served: Served, code: object) -> None:
    assert post_code(served, code).status == 401


def test_a_login_of_another_page_is_refused(served: Served) -> None:
    code = served.ok("POST", "/login-codes", {})["code"]
    assert post_code(served, code, Origin="https://evil.example.org").status == 403
    no_origin = served.ask("POST", "/login", {"code": code}, {"Host": served.site}, token="")
    assert no_origin.status == 403
    assert post_code(served, code).status == 204


def test_a_page_may_change_things_only_from_its_own_origin(served: Served) -> None:
    page = log_in(served)
    body = {"command": "exit 0", "hold": True}
    assert served.ask("POST", "/jobs", body, own(served, page), token="").status == 201
    before = served.client.counts()
    for headers in (
        page,
        {**page, "Origin": "https://evil.example.org"},
        {**own(served, page), "Sec-Fetch-Site": "cross-site"},
    ):
        assert served.ask("POST", "/jobs", body, headers, token="").status == 403
    form = b"command=evil"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    refused = served.ask("POST", "/jobs", form, {**own(served, page), **kind}, token="")
    assert refused.status == 415
    plain = served.ask(
        "POST", "/jobs", b'{"command": "true"}',
        {**own(served, page), "Content-Type": "text/plain"}, token="",
    )  # fmt: skip
    assert plain.status == 415
    assert served.client.counts() == before


def test_a_cookie_means_nothing_at_another_name(served: Served) -> None:
    page = log_in(served)
    for name in (f"127.0.0.1:{served.port}", f"localhost:{served.port}"):
        answer = served.ask("GET", "/jobs", headers={**page, "Host": name}, token="")
        assert answer.status == 401


@pytest.mark.parametrize("cookie", ["svcq=stale", "svcq=", "other=x", "svcq=\xff", ";;;=", "svcq"])
def test_a_stale_cookie_is_refused(served: Served, cookie: str) -> None:
    headers = {"Host": served.site, "Cookie": cookie}
    assert served.ask("GET", "/jobs", headers=headers, token="").status == 401


def test_a_page_that_may_only_look(served: Served) -> None:
    page = log_in(served, read_only=True)
    assert served.ask("GET", "/jobs", headers=page, token="").status == 200
    answer = served.ask("POST", "/jobs", {"command": "true"}, own(served, page), token="")
    assert answer.status == 403
    # Nor can it make a code for more.
    more = served.ask("POST", "/login-codes", {}, own(served, page), token="")
    assert more.status == 201
    weak = post_code(served, more.json["code"])
    cookie = weak.headers["set-cookie"].partition(";")[0]
    answer = served.ask(
        "POST", "/jobs", {"command": "true"},
        own(served, {"Host": served.site, "Cookie": cookie}), token="",
    )  # fmt: skip
    assert answer.status == 403


def test_a_log_out_ends_the_session(served: Served) -> None:
    page = log_in(served)
    answer = served.ask("POST", "/logout", {}, own(served, page), token="")
    assert answer.status == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert served.ask("GET", "/jobs", headers=page, token="").status == 401


@pytest.mark.parametrize("path", ["/jobs", "/login", "/static/login.js", "/nothing", "/jobs/0"])
def test_every_answer_keeps_a_browser_in_check(served: Served, path: str) -> None:
    answer = served.ask("GET", path, token=served.token())
    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in POLICY
    assert "server" not in answer.headers
    if not path.startswith("/static"):
        assert answer.headers["cache-control"] == "no-store"


def test_the_login_page_has_nothing_inline(served: Served) -> None:
    page = served.ask("GET", "/login", token="").body.decode()
    assert "<script>" not in page
    assert "style=" not in page
    assert "onload" not in page


@pytest.fixture
def own_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose secrets may be changed."""
    served = Served(tmp_path_factory.mktemp("own"), workers=0)
    yield served
    served.close()


def test_rotated_tokens_let_nobody_in_who_had_the_old_ones(own_served: Served) -> None:
    served = own_served
    old, reading, page = served.token(), served.token("token-read"), log_in(served)
    with served.opened("GET", "/api/v1/stream", token=old) as stream:
        stream.readline()
        rotated = served.svcq("token", "rotate")
        assert rotated.returncode == 0, rotated
        assert old not in rotated.stdout
        assert served.token() not in rotated.stdout
        eventually(lambda: is_out(served, old), PATIENCE)
        # What was let in by it is put out, too.
        while stream.readline():
            pass
    assert served.ask("GET", "/jobs", token=reading).status == 401
    assert served.ask("GET", "/jobs", headers=page, token="").status == 401
    assert served.ask("GET", "/jobs", token=served.token()).status == 200
    assert stat.S_IMODE((served.path / "token").stat().st_mode) == 0o600


def test_a_token_that_others_can_read_lets_nobody_in(own_served: Served) -> None:
    token = own_served.token()
    (own_served.path / "token").chmod(0o644)
    eventually(lambda: is_out(own_served, token), PATIENCE)


def is_out(served: Served, token: str) -> bool:
    try:
        return served.ask("GET", "/jobs", token=token).status == 401
    except (ConnectionError, HTTPException):
        return False  # it was put out in the midst of this


def test_logins_end_with_the_service(own_served: Served) -> None:
    page = log_in(own_served)
    site = own_served.site
    own_served.stop()
    own_served.serve()
    # Its place stays, so that a page that was left open finds it again.
    assert own_served.site == site
    answer = own_served.ask("GET", "/jobs", headers=page, token="")
    assert answer.status == 401
    assert "svcq open" in answer.sentence


def test_svcq_open_prints_an_address_that_logs_in(served: Served) -> None:
    printed = served.svcq("open", "--print")
    assert printed.returncode == 0, printed
    address, _, code = printed.stdout.strip().partition("#code=")
    assert address == f"{served.origin}/login"
    assert post_code(served, code).status == 204


def test_svcq_open_without_a_service_is_a_sentence(served: Served, idle: Served) -> None:
    home = idle.work / "nowhere"
    ran = served.start("open", "--print", env={"SVCQ_HOME": str(home)})
    assert ran.wait(PATIENCE) == 4
    assert "does not answer" in served.said()


def test_a_client_with_the_token_speaks_over_the_network(served: Served) -> None:
    client = RemoteClient(connection=NetworkConnection(served.path))
    with closing(client):
        job = client.command("exit 0", hold=True)
        assert served.client.get(job.id).as_json() == job.as_json()


def test_the_owner_opens_the_store_and_needs_no_service(served: Served) -> None:
    assert type(Client(home=served.path)) is Client
