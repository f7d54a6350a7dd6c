"""`svcq queue`, `pause`, `resume` and `config`."""

from __future__ import annotations

from pathlib import Path

import pytest

from svcq.client import Client
from tests.cli.conftest import Svcq


def test_queues(svcq: Svcq) -> None:
    assert svcq.ok("queue", "list", "--json").json == []
    assert "no queues yet" in svcq.ok("queue", "list").out
    svcq.add("--queue", "mail")
    (queue,) = svcq.ok("queue", "list", "--json").json
    assert (queue["name"], queue["paused"], queue["counts"]["pending"]) == ("mail", False, 1)
    assert svcq.ok("queue", "list").out.splitlines()[1].split()[:3] == ["mail", "open", "1"]


def test_settings_of_a_queue(svcq: Svcq) -> None:
    queue = svcq.ok("queue", "set", "video", "concurrency=2", "rate=10/1m", "aging=never",
                    "weight=3", "dead-letter=graves", "max_attempts=5", "timeout=90s",
                    "backoff_base=1.5", "success=0,3", "notify=yes", "keep_dead=1d",
                    "--json").json  # fmt: skip
    assert queue["counts"]["pending"] == 0
    del queue["counts"]
    assert queue == {
        "name": "video", "paused": False, "weight": 3, "concurrency": 2, "rate": "10/1m",
        "aging": "never", "dead_letter": "graves", "max_attempts": 5, "timeout": 90.0,
        "backoff_base": 1.5, "success": [0, 3], "notify": True, "keep_dead": 86400.0,
    }  # fmt: skip
    shown = svcq.ok("queue", "show", "video").out
    assert "timeout       1m30s" in shown
    assert "keep_dead     1d" in shown
    svcq.ok("queue", "set", "video", "concurrency=", "timeout=", "paused=yes")
    queue = svcq.ok("queue", "show", "video", "--json").json
    assert (queue["concurrency"], queue["paused"]) == (None, True)
    assert "timeout" not in queue


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("concurrency", "concurrency=VALUE"),
        ("concurrency=x", "whole number"),
        ("concurency=1", "did you mean"),
        ("rate=fast", "10/1m"),
        ("jitter=x", "not a number"),
        ("paused=maybe", "yes or no"),
        ("success=a", "whole number"),
        ("timeout=soon", "not a duration"),
    ],
)
def test_wrong_settings(svcq: Svcq, setting: str, hint: str) -> None:
    assert hint in svcq.refuses("queue", "set", "video", setting)
    assert svcq.ok("queue", "list", "--json").json == []


def test_a_setting_twice(svcq: Svcq) -> None:
    assert "given twice" in svcq.refuses("queue", "set", "q", "weight=1", "weight=2")


def test_delete(svcq: Svcq) -> None:
    svcq.add("--queue", "mail")
    assert "still has 1 job" in svcq.refuses("queue", "delete", "mail", code=1)
    svcq.ok("purge", "--state", "pending", "-y")
    assert svcq.ok("queue", "delete", "mail").out == "The queue mail is forgotten.\n"
    assert svcq.ok("queue", "list", "--json").json == []


def test_pause_and_resume(svcq: Svcq, client: Client) -> None:
    svcq.add("--queue", "a")
    svcq.add("--queue", "b")
    assert svcq.ok("pause", "a").out == "1 queue paused.\n"
    assert [claim.queue for claim in client.fetch(n=2)] == ["b"]
    assert svcq.ok("pause", "--all").out == "2 queues paused.\n"
    svcq.refuses("resume", "a", "nowhere", code=3)
    assert client.queue("a").paused
    assert svcq.ok("resume", "--all").out == "2 queues resumed.\n"
    assert [claim.queue for claim in client.fetch(n=2)] == ["a"]


@pytest.mark.posix
def test_a_directory_as_the_store_is_refused_at_once(
    svcq: Svcq, home: Path, tmp_path: Path
) -> None:
    svcq.ok("config", "set", "queue", "a")
    before = (home / "config.toml").read_text()
    for place in (tmp_path, ".", f"{tmp_path}/not-there/"):
        assert "is a directory: name a file in it" in svcq.refuses("config", "set", "store", place)
    assert (home / "config.toml").read_text() == before
    svcq.ok("config", "set", "store", tmp_path / "jobs.db")
    assert svcq.ok("config", "get", "store").out == f"{tmp_path}/jobs.db\n"


def test_config(svcq: Svcq, home) -> None:
    assert svcq.ok("config", "path").out == f"{home / 'config.toml'}\n"
    assert svcq.ok("config", "path", "--json").json == {"path": str(home / "config.toml")}
    assert svcq.ok("config", "get", "jobs.max_attempts").out == "3\n"
    svcq.ok("config", "set", "jobs.max_attempts", "7")
    svcq.ok("config", "set", "jobs.timeout", "1h30m20s")
    assert svcq.ok("config", "get", "jobs.max_attempts", "--json").json == 7
    assert svcq.ok("config", "get", "jobs.timeout").out == "1h30m20s\n"
    values = svcq.ok("config", "list", "--json").json
    assert (values["jobs.max_attempts"], values["queue"]) == (7, "default")
    lines = [line.split() for line in svcq.ok("config", "list").out.splitlines()]
    assert ["jobs.max_attempts", "7", "file"] in [line[:3] for line in lines]
    assert svcq.ok("add", "--json", "--", "true").json["max_attempts"] == 7
    svcq.ok("config", "unset", "jobs.max_attempts")
    assert svcq.ok("config", "get", "jobs.max_attempts").out == "3\n"


def test_a_password_in_the_store_is_masked(svcq: Svcq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVCQ_STORE", "postgresql://me:hunter2@host/db")
    for said in (svcq.ok("config", "list"), svcq.ok("config", "get", "store")):
        assert "hunter2" not in said.out
        assert "host/db" in said.out


def test_a_wrong_file_is_one_sentence(svcq: Svcq, home) -> None:
    svcq.ok("config", "set", "queue", "a")
    (home / "config.toml").write_text("queue = \n")
    for words in (["config", "list"], ["config", "get", "queue"], ["list"]):
        assert "is not valid TOML" in svcq.refuses(*words)
