"""`svcq add` and `svcq enqueue`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from svcq.client import Client
from tests.cli.conftest import Svcq


def test_words_after_the_dashes_are_run_as_they_are(svcq: Svcq) -> None:
    job = svcq.ok("add", "--json", "--", "ls", "-l", "a b", "--", "--json").json
    assert job["command"] == ["ls", "-l", "a b", "--", "--json"]
    assert job["state"] == "pending"
    assert job["cwd"] == os.getcwd()


def test_the_dashes_may_be_left_out(svcq: Svcq) -> None:
    job = svcq.ok("add", "--json", "--queue", "video", "ffmpeg", "-i", "a", "--", "b").json
    assert (job["queue"], job["command"]) == ("video", ["ffmpeg", "-i", "a", "--", "b"])


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["echo hi | wc"], "echo hi | wc"),
        (["sleep 1"], "sleep 1"),
        (["echo $HOME"], "echo $HOME"),
        (["true"], ["true"]),
        (["/usr/bin/env"], ["/usr/bin/env"]),
        (["C:\\tools\\run.exe"], ["C:\\tools\\run.exe"]),
        (["--shell", "--", "echo", "a", "|", "wc"], "echo a | wc"),
        (["--shell", "true"], "true"),
        (["--no-shell", "/opt/my app/run"], ["/opt/my app/run"]),
    ],
)
def test_when_a_shell_runs_it(svcq: Svcq, words: list[str], command: object) -> None:
    assert svcq.ok("add", "--json", *words).json["command"] == command


def test_elsewhere_than_in_a_terminal_it_prints_the_id(svcq: Svcq) -> None:
    assert svcq.ok("add", "--", "true").out == "1\n"
    assert svcq.ok("add", "--", "true").out == "2\n"


def test_options_reach_the_job(svcq: Svcq) -> None:
    first = svcq.add("--name", "first")
    job = svcq.ok(
        "add", "--json", "--queue", "mail", "--name", "second", "--tag", "a,b", "--tag", "c",
        "--priority", "-5", "--hold", "--max-attempts", "7", "--backoff", "linear",
        "--backoff-base", "1.5", "--backoff-cap", "1m", "--timeout", "1h30m", "--success", "0,3",
        "--retry-on", "75", "--reject", "64,65", "--unique", "k", "--after", "first",
        "--when", "ac-power", "--host", "here", "--key", "disk", "--key-limit", "2", "--notify",
        "--nice", "5", "--tty", "--", "true",
    ).json  # fmt: skip
    assert job["state"] == "held"
    assert (job["queue"], job["name"], job["priority"]) == ("mail", "second", -5)
    assert job["tags"] == ["a", "b", "c"]
    assert job["after"] == [first]
    assert (job["condition"], job["host"], job["concurrency_key"]) == ("ac-power", "here", "disk")
    assert job["unique_key"] == "k"
    assert job["max_attempts"] == 7
    assert job["options"] == {
        "max_attempts": 7, "backoff": "linear", "backoff_base": 1.5, "backoff_cap": 60.0,
        "timeout": 5400.0, "success": [0, 3], "retry_on": [75], "reject": [64, 65],
        "notify": True, "tty": True, "nice": 5,
    }  # fmt: skip


def test_later(svcq: Svcq) -> None:
    assert svcq.job(svcq.add("--in", "90m"))["state"] == "scheduled"
    at = svcq.job(svcq.add("--at", "2099-05-01T03:00:00+02:00"))
    assert at["run_at"] == "2099-05-01T01:00:00.000Z"


def test_a_task_by_its_name(svcq: Svcq) -> None:
    job = svcq.ok("add", "--json", "--task", "mail.send", "--name", "post", "--args", '["a", 1]',
                  "--kwargs", '{"subject": "hi"}').json  # fmt: skip
    assert (job["task"], job["args"], job["kwargs"]) == ("mail.send", ["a", 1], {"subject": "hi"})
    assert "command" not in job


def test_a_unique_job_is_not_added_twice(svcq: Svcq) -> None:
    first = svcq.add("--unique", "k")
    assert svcq.add("--unique", "k") == first
    said = svcq.refuses("add", "--unique", "k", "--on-duplicate", "refuse", "--", "true", code=1)
    assert str(first) in said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([], "nothing to run"),
        (["--"], "nothing to run"),
        (["--", ""], "empty"),
        (["--task", "a.b", "--", "true"], "give one"),
        (["--task", "a.b", "--cwd", "/"], "for commands"),
        (["--task", "a.b", "--args", "["], "not JSON"),
        (["--task", "a.b", "--args", "{}"], "give"),
        (["--task", "a.b", "--kwargs", "[]"], "give"),
        (["--args", "[]", "--", "true"], "--task"),
        (["--shell", "--no-shell", "--", "true"], "give one"),
        (["--in", "1h", "--at", "23:00", "--", "true"], "give one"),
        (["--in", "soon", "--", "true"], "not a duration"),
        (["--at", "soon", "--", "true"], "not understood"),
        (["--at", "2001-01-01", "--", "true"], "past"),
        (["--priority", "high", "--", "true"], "whole number"),
        (["--priority", "1001", "--", "true"], "1,000"),
        (["--success", "0,x", "--", "true"], "whole number"),
        (["--name", "12", "--", "true"], "all digits"),
        (["--queue", "a b", "--", "true"], "not a name"),
        (["--on-lost", "shrug", "--", "true"], "retry or dead"),
        (["--unique-for", "1h", "--", "true"], "unique_key"),
        (["--cwd", "/no/such/place", "--", "true"], "no directory"),
        (["--env", "NO_SUCH_VARIABLE", "--", "true"], "NO_SUCH_VARIABLE=VALUE"),
        (["--prio", "3", "--", "true"], "did you mean --priority?"),
        (["--", "echo", "\udcff"], "not UTF-8 text"),
        pytest.param(["--success", "300", "--", "true"], "-64 to 255", marks=pytest.mark.posix),
        pytest.param(
            ["--retry-on", "0,-65", "--", "true"],
            "none that a process here can have",
            marks=pytest.mark.posix,
        ),
        (["--reject", "99999999999", "--", "true"], "whole number"),
        (["--task", "a.b", "--kwargs", '{"a": 1, "a": 2}'], "the key 'a' stands twice"),
        (["--task", "a.b", "--args", '[{"a": 1, "b": {"c": 1, "c": 1}}]'], "'c' stands twice"),
        (["--task", "a.b", "--args", "[NaN]"], "NaN is no number"),
    ],
)
def test_wrong_jobs_are_refused(svcq: Svcq, words: list[str], hint: str) -> None:
    assert hint in svcq.refuses("add", *words)
    assert svcq.ok("list").out == ""


def test_exit_codes_of_another_system_need_the_name_of_a_machine(svcq: Svcq) -> None:
    job = svcq.job(svcq.add("--success", "0,3010", "--host", "office-pc"))
    assert job["options"] == {"success": [0, 3010]}
    svcq.ok("queue", "set", "installs", "success=0,3010")  # whoever serves it


def test_the_environment_goes_along_without_the_session(
    svcq: Svcq, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/somewhere/bin")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    monkeypatch.setenv("SVCQ_JOB", "3")
    env = client.environment(svcq.add("--env", "A=1", "--env", "DISPLAY"))
    assert env is not None
    assert (env["PATH"], env["A"], env["DISPLAY"]) == ("/somewhere/bin", "1", ":0")
    assert not {"SSH_AUTH_SOCK", "SVCQ_JOB", "PWD"} & env.keys()
    assert client.environment(svcq.add("--no-env", "--env", "A=b=c")) == {"A": "b=c"}


def test_a_variable_that_is_no_text_is_left_out_and_named(
    svcq: Svcq, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODD", "\udcff")
    said = svcq.ok("add", "--", "true")
    assert "ODD" in said.err
    assert "ODD" not in (client.environment(int(said.out)) or {})


def test_secrets_are_masked_where_shown(svcq: Svcq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2")
    monkeypatch.setenv("DATABASE", "postgresql://me:hunter2@host/db")
    monkeypatch.setenv("HARMLESS", "shown")
    job = svcq.add()
    for said in (svcq.ok("show", job, "--env"), svcq.ok("show", job, "--env", "--json")):
        assert "hunter2" not in said.out
        assert "API_TOKEN" in said.out
        assert "shown" in said.out
    assert "hunter2" not in svcq.ok("export").out


FOREIGN = (
    '{"id":"job1","command":"echo hi","max_retries":3,"timeout":20,"backoff_base":2,"priority":5}'
)


def test_a_job_of_another_queue_is_taken_as_it_stands(svcq: Svcq) -> None:
    job = svcq.ok("enqueue", FOREIGN, "--json").json
    assert (job["name"], job["command"], job["max_attempts"]) == ("job1", "echo hi", 4)
    assert (job["priority"], job["options"]["timeout"], job["options"]["backoff_base"]) == (
        5,
        20,
        2,
    )


def test_enqueue_takes_every_option_and_tasks(svcq: Svcq, client: Client) -> None:
    given = {"command": ["ls", "-l"], "tags": ["a"], "delay": "1h", "env": {"A": "1"}}
    job = svcq.ok("enqueue", json.dumps(given), "--json").json
    assert (job["command"], job["tags"], job["state"]) == (["ls", "-l"], ["a"], "scheduled")
    env = client.environment(job["id"]) or {}
    assert (env["A"], env["PATH"]) == ("1", os.environ["PATH"])
    task = svcq.ok("enqueue", '{"task": "a.b", "args": [1], "kwargs": {"x": 2}}', "--json").json
    assert (task["task"], task["args"], task["kwargs"]) == ("a.b", [1], {"x": 2})


@pytest.mark.parametrize("text", ['{"command":"a"}\n\n{"command":"b"}\n',
                                  '[{"command":"a"}, {"command":"b"}]'])  # fmt: skip
def test_many_jobs_from_a_file(svcq: Svcq, tmp_path: Path, text: str) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text("\ufeff" + text, encoding="utf-8")
    assert svcq.ok("enqueue", "--file", file).out == "1\n2\n"
    assert svcq.ok("enqueue", "-", stdin=text).out == "3\n4\n"
    assert svcq.ok("enqueue", "--file", "-", stdin=text).out == "5\n6\n"
    assert [job["command"] for job in svcq.ok("list", "--json").json] == ["b", "a"] * 3


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"command":"a"}\n\n{"command":1}', "line 3: "),
        ('{"command":"a"}\n{', "line 2: This is not JSON"),
        ('{"command":"a"}\n3', "line 2: A job is a JSON object"),
        ('[{"command":"a"}, {"comand":"b"}]', "element 2: A job has no key 'comand': did you mean"),
        ('{"command":"a","name":"n"}\n{"command":"a","name":"n"}', "The name 'n' belongs to job"),
        ("", "There are no jobs"),
        ("[", "not JSON"),
    ],
)
def test_a_file_is_taken_whole_or_not_at_all(svcq: Svcq, text: str, hint: str) -> None:
    code = 1 if "belongs" in hint else 2
    assert hint in svcq.refuses("enqueue", "-", stdin=text, code=code)
    assert svcq.ok("list").out == ""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"command": "true", "command": "false"}', "the key 'command' stands twice"),
        ("{}", "either a command or a task"),
        ('{"command":"a","task":"b"}', "either a command or a task"),
        ('{"command":"a","args":[]}', "for a task"),
        ('{"task":"a","args":{}}', "an array"),
        ('{"task":"a","kwargs":[]}', "an object"),
        ('{"command":"a","id":1}', "not text"),
        ('{"command":"a","id":"a","name":"b"}', "give one"),
        ('{"command":"a","max_retries":-1}', "max_retries"),
        ('{"command":"a","max_retries":1,"max_attempts":1}', "give one"),
        ('{"command":"a","env":[]}', "env"),
        ('{"command":"a","env":{"A":1}}', "give text"),
        ('{"command":"a","timeout":"soon"}', "not a duration"),
        ('{"command":"a","tags":"a"}', "tags"),
    ],
)
def test_a_wrong_object_is_refused(svcq: Svcq, text: str, hint: str) -> None:
    assert hint in svcq.refuses("enqueue", text)


def test_enqueue_wants_one_source(svcq: Svcq, tmp_path: Path) -> None:
    svcq.refuses("enqueue")
    svcq.refuses("enqueue", "{}", "--file", "x")
    svcq.refuses("enqueue", "--file", tmp_path / "none")
    odd = tmp_path / "odd"
    odd.write_bytes(b'{"command":"a"}\n\xff\n')
    assert "line 2" in svcq.refuses("enqueue", "--file", odd)
