"""Ends are told beyond the desktop, through real Apprise, to a real server that may be away."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from svcq.client import Client
from svcq.config import Target, load
from svcq.errors import ConfigError
from svcq.jobs import Job
from svcq.service.announce import Announcer, Message, is_for, masked, messages, post
from tests.clients import assert_sentence
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home
from tests.tray.samples import job


class Hook(ThreadingHTTPServer):
    """Someone who is told; refuses as often as it is asked to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told: list[dict[str, Any]] = []
        self.refusals = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"json://ada:s3cret@127.0.0.1:{self.server_port}/hook"

    def titles(self) -> list[str]:
        return [one["title"] for one in self.told]


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        refused = self.server.refusals > 0
        self.server.refusals -= refused
        if not refused:
            self.server.told.append(json.loads(body))
        self.send_response(503 if refused else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """In silence."""


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.shutdown()
    hook.server_close()


class Telling:
    """A store, and the announcer of a service on it."""

    def __init__(self, folder: Path, hook: Hook, more: str = "") -> None:
        self.said: list[str] = []
        file = folder / "home" / "config.toml"
        file.parent.mkdir(mode=0o700)
        file.touch(mode=0o600)
        file.write_text(f'[notify.hook]\nurls = ["{hook.url}"]\n{more}')
        self.config = load(folder / "home", {})
        self.client = Client(config=self.config)
        self.client.command("true", queue="video")
        self.client.cancel(1)

    def tell(self) -> Announcer:
        return Announcer(self.config, self.said.append, first_wait=0.05)

    def begun(self) -> None:
        eventually((self.config.home / "notify.json").exists, PATIENCE)

    def fail(self, name: str, queue: str = "default") -> int:
        """By a worker written by hand: nothing else runs here."""
        added = self.client.command("true", name=name, queue=queue, max_attempts=1).id
        (held,) = self.client.fetch(queue)
        self.client.fail(held, "it broke")
        return added


@pytest.fixture
def telling(tmp_path: Path, hook: Hook) -> Iterator[Telling]:
    telling = Telling(tmp_path, hook)
    yield telling
    telling.client.close()


def test_a_failure_is_told(telling: Telling, hook: Hook) -> None:
    with telling.tell():
        telling.begun()
        telling.fail("render")
        eventually(lambda: hook.told, PATIENCE)
    (told,) = hook.told
    assert told["title"] == "Failed: render"
    assert told["type"] == "failure"
    assert "it broke" in told["message"]


def test_it_is_tried_again_until_it_works(telling: Telling, hook: Hook) -> None:
    hook.refusals = 3
    with telling.tell():
        telling.begun()
        telling.fail("render")
        eventually(lambda: hook.titles() == ["Failed: render"], 2 * PATIENCE)


def test_what_could_not_be_told_is_told_after_a_start(telling: Telling, hook: Hook) -> None:
    with telling.tell():
        telling.begun()
        telling.fail("first")
        eventually(lambda: hook.told, PATIENCE)
    hook.refusals = 10_000
    with telling.tell():
        telling.fail("second")
        eventually(lambda: hook.refusals < 10_000, PATIENCE)
    telling.fail("third")
    hook.refusals = 0
    with telling.tell():
        eventually(lambda: len(hook.told) == 3, 3 * PATIENCE)
    assert hook.titles() == ["Failed: first", "Failed: second", "Failed: third"]


def test_a_target_that_was_changed_is_followed(telling: Telling, hook: Hook) -> None:
    with telling.tell():
        telling.begun()
        file = telling.config.home / "config.toml"
        file.write_text(file.read_text() + 'queues = ["video"]\n')
        # A target that is there for the first time is told of what comes from then on.
        file.write_text(file.read_text() + f'[notify.all]\nurls = ["{hook.url}"]\n')
        marks = telling.config.home / "notify.json"
        eventually(lambda: "all" in json.loads(marks.read_text()), PATIENCE)
        telling.fail("outside")
        telling.fail("inside", "video")
        eventually(lambda: len(hook.told) == 3, 3 * PATIENCE)
    assert sorted(hook.titles()) == ["Failed: inside", "Failed: inside", "Failed: outside"]


def test_no_password_is_in_what_is_said(telling: Telling, hook: Hook, capfd: Any) -> None:
    assert post([hook.url, "nonsense://x:s3cret@y"], Message("a", "b", False)) == [
        (1, "no address that Apprise knows")
    ]
    assert "s3cret" not in repr(telling.config)
    assert masked(hook.url) == "json://********"
    out, err = capfd.readouterr()
    assert "s3cret" not in out + err
    (telling.config.home / "config.toml").write_text('[notify.x]\nurls = [7, "a://s3cret"]\n')
    with pytest.raises(ConfigError) as caught:
        load(telling.config.home, {})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("notify = 3", "notify"),
        ('[notify]\nurls = ["json://x"]', "notify.urls"),
        ("[notify.x]\n", "x"),
        ('[notify.x]\nurls = ["nothing"]', "x"),
        ('[notify.x]\nurls = ["json://x"]\ntell = "loud"', "loud"),
        ('[notify.x]\nurls = ["json://x"]\nurl = 3', "url"),
        ('[notify.x]\nurls = ["json://x"]\nqueues = 3', "queues"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "config.toml"
    file.touch(mode=0o600)
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {})
    assert_sentence(caught.value, named)


def target(**more: Any) -> Target:
    return Target("phone", ("ntfy://x",), **more)


@pytest.mark.parametrize(
    ("wanted", "job", "options", "told"),
    [
        (target(), job(1, "dead"), {}, True),
        (target(), job(1, "completed"), {}, False),
        (target(), job(1, "completed"), {"notify": True}, True),
        (target(), job(1, "completed", options={"notify": True}), {}, True),
        (target(), job(1, "dead", options={"notify": False}), {}, False),
        (target(tell="all"), job(1, "completed"), {}, True),
        (target(tell="asked"), job(1, "dead"), {}, False),
        (target(tell="asked"), job(1, "dead"), {"notify": True}, True),
        (target(queues=("video",)), job(1, "dead"), {}, False),
        (target(queues=("video",)), job(1, "dead", queue="video"), {}, True),
    ],
)
def test_who_is_told_of_what(wanted: Target, job: Job, options: Any, told: bool) -> None:
    assert is_for(wanted, job, options) is told


def test_many_are_told_as_one() -> None:
    ended = [job(n, "completed") for n in range(5)] + [job(9, "dead")]
    (message,) = messages(ended)
    assert message.title == "1 job failed, 5 completed"
    assert message.body.startswith("work 9, work 0")
    assert len(messages(ended[:3])) == 3


def test_svcq_notify(tmp_path: Path, hook: Hook) -> None:
    home = Home(tmp_path)
    try:

        def notify(*words: str, said: str = "") -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "svcq", "notify", *words], env=home.environment,
                input=said, capture_output=True, text=True, check=False, timeout=PATIENCE,
            )  # fmt: skip

        assert "Nothing is told" in notify("list").stdout
        added = notify("add", "phone", "--queue", "video", "--tell", "all", said=f"{hook.url}\n")
        assert added.returncode == 0, added.stderr
        assert notify("list").stdout == "phone  all of video  json://********\n"
        assert json.loads(notify("list", "--json").stdout)[0]["urls"] == ["json://********"]
        assert notify("test", "phone").stdout == "phone was told.\n"
        assert hook.titles() == ["svcq"]
        hook.refusals = 1
        failed = notify("test", "phone")
        assert failed.returncode == 1
        assert "s3cret" not in failed.stderr
        for words, said, code in (
            (("add", "bad name!"), hook.url, 2),
            (("add", "x"), "", 2),
            (("add", "x"), "no address", 2),
            (("test", "nobody"), "", 3),
            (("remove", "nobody"), "", 3),
        ):
            ran = notify(*words, said=said)
            assert (ran.returncode, ran.stderr.count("\n")) == (code, 1), ran
        assert notify("remove", "phone").returncode == 0
        assert (home.path / "config.toml").stat().st_mode & 0o077 == 0
    finally:
        home.close()
