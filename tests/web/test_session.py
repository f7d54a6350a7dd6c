"""What a session says of itself reaches the conditions of jobs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from svcq.conditions import judge
from svcq.host import sessions
from svcq.host.facts import fact
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.web.served import Served


def test_a_job_waits_for_an_idle_session(served: Served) -> None:
    served.ok("POST", "/session", {"idle": 3, "metered": None})
    job = served.add("true", when="idle>10m")
    eventually(lambda: "in use" in why(served, job) or "idle for 3s" in why(served, job), PATIENCE)
    served.ok("POST", "/session", {"idle": 3600, "metered": None})
    assert served.ended(job).state == "completed"


def why(served: Served, job: int) -> str:
    return str(served.ok("GET", f"/jobs/{job}/why")["why"])


@pytest.mark.parametrize(
    "body",
    [{"idle": -1}, {"idle": "long"}, {"idle": True}, {"idle": 1e30}, {"metered": 1},
     {"metered": "no"}, {"mood": "good"}, []],
    ids=str,
)  # fmt: skip
def test_nonsense_is_refused(served: Served, body: object) -> None:
    answer = served.ask("POST", "/session", body)
    assert answer.status in (400, 422), answer
    assert answer.sentence


def test_who_may_only_look_cannot_say_it(served: Served) -> None:
    answer = served.ask("POST", "/session", {"idle": 1}, token=served.token("token-read"))
    assert answer.status == 403


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SVCQ_HOME", str(tmp_path))
    return tmp_path


def test_the_last_one_to_touch_any_session_counts(home: Path) -> None:
    assert sessions.idle_seconds() is None
    sessions.note(str(home), "ada", idle=3600, metered=True)
    sessions.note(str(home), "bob/../x", idle=60, metered=None)
    idle = sessions.idle_seconds()
    assert idle is not None
    assert 60 <= idle < 120
    assert fact("idle") == pytest.approx(idle, abs=5)
    assert judge("idle>30s", fact).holds
    assert sessions.unmetered() is False
    assert {one.parent for one in home.rglob("*.json")} == {home / "sessions"}


def test_what_was_said_long_ago_no_longer_holds(home: Path) -> None:
    sessions.note(str(home), "ada", idle=3600, metered=False)
    (file,) = (home / "sessions").glob("*.json")
    said = json.loads(file.read_text())
    file.write_text(json.dumps({**said, "at": time.time() - sessions.FRESH - 1}))
    assert sessions.idle_seconds() is None
    assert sessions.unmetered() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"at": "x"}', '{"idle_since": 3}'])
def test_a_file_that_makes_no_sense_is_none(home: Path, text: str) -> None:
    (home / "sessions").mkdir()
    (home / "sessions" / "x.json").write_text(text)
    assert sessions.idle_seconds() is None
