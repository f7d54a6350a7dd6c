"""`svcq schedule`: said, looked at, steered, in this process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from svcq.client import Client
from tests.cli.conftest import Svcq

NIGHTLY = ("--cron", "0 3 * * *", "--tz", "Europe/Paris")


def add(svcq: Svcq, name: str = "nightly", *words: object, command: tuple[str, ...] = ("true",)):  # type: ignore[no-untyped-def]
    return svcq.ok("schedule", "add", name, *(words or NIGHTLY), "--json", "--", *command).json


# Saying


def test_a_command_by_cron(svcq: Svcq, client: Client, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIRTUAL_ENV", "/venv")
    monkeypatch.setenv("API_TOKEN", "hush")
    said = add(svcq, "nightly", *NIGHTLY, "--timeout", "5m", command=("echo", "--", "-n"))
    assert (said["cron"], said["tz"]) == ("0 3 * * *", "Europe/Paris")
    assert said["command"] == ["echo", "--", "-n"]
    assert said["options"] == {"timeout": "5m", "cwd": str(tmp_path)}
    env = client.schedule_environment("nightly") or {}
    assert env["VIRTUAL_ENV"] == "/venv"
    assert "API_TOKEN" not in env


def test_variables_are_taken_along_by_name(svcq: Svcq, client: Client, monkeypatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hush")
    add(svcq, "a", *NIGHTLY, "--env", "API_TOKEN", "--env", "X=1", "--no-env")
    assert client.schedule_environment("a") == {"API_TOKEN": "hush", "X": "1"}
    assert "hush" not in svcq.ok("schedule", "show", "a").out
    svcq.ok("schedule", "edit", "a", "--env", "X=2")
    assert client.schedule_environment("a") == {"API_TOKEN": "hush", "X": "2"}


def test_a_line_for_the_shell_and_a_task(svcq: Svcq) -> None:
    line = add(svcq, "line", "--every", "15m", "--jitter", "1m", command=("du -s * | sort",))
    assert (line["command"], line["every"], line["jitter"]) == ("du -s * | sort", 900, 60)
    task = svcq.ok("schedule", "add", "task", "--at", "2031-05-01T03:00Z", "--task", "mail.send",
                   "--args", '["a"]', "--kwargs", '{"b": 1}', "--json").json  # fmt: skip
    assert (task["task"], task["args"], task["kwargs"]) == ("mail.send", ["a"], {"b": 1})
    assert task["at"] == "2031-05-01T03:00:00.000Z"


def test_times_in_words_are_in_their_zone(svcq: Svcq) -> None:
    said = add(svcq, "a", "--at", "2031-05-01 03:00", "--tz", "Asia/Tokyo")
    assert said["at"] == "2031-04-30T18:00:00.000Z"
    said = add(svcq, "b", "--cron", "@daily", "--tz", "Asia/Tokyo", "--start", "2020-01-01",
               "--end", "2031-01-01 00:00")  # fmt: skip
    assert (said["start"], said["end"]) == ("2019-12-31T15:00:00.000Z", "2030-12-31T15:00:00.000Z")
    said = add(svcq, "c", "--at", "tomorrow 00:30", "--tz", "Asia/Tokyo")
    assert said["at"].endswith("T15:30:00.000Z")


def test_every_option_of_a_job_and_both_jitters(svcq: Svcq, client: Client) -> None:
    manner = ("--jitter", "5m", "--missed", "skip", "--overlap", "replace")
    said = add(svcq, "a", *NIGHTLY, *manner, "--backoff-jitter", "0.5", "--queue", "video",
               "--tag", "x,y", "--priority", "5")  # fmt: skip
    assert (said["jitter"], said["options"]["jitter"]) == (300, 0.5)
    assert (said["missed"], said["overlap"]) == ("skip", "replace")
    job = client.fire_schedule("a")
    assert (job.queue, job.tags, job.priority) == ("video", ("x", "y"), 5)
    said = svcq.ok("schedule", "edit", "a", "--backoff-jitter", "0.1", "--json").json
    assert (said["jitter"], said["options"]["jitter"]) == (300, 0.1)


def test_it_says_when_it_fires_and_who_does(svcq: Svcq) -> None:
    said = svcq.ok("schedule", "add", "a", *NIGHTLY, "--", "true").out
    assert said.startswith("a fires next at ")
    assert "No clock runs here to fire it" in said
    said = svcq.ok("schedule", "add", "b", *NIGHTLY, "--paused", "--", "true").out
    assert said == "b is paused: svcq schedule resume b lets it fire.\n"
    assert svcq.ok("schedule", "resume", "b").out.startswith("b fires next at ")
    assert "b is paused" in svcq.ok("schedule", "pause", "b").out


def test_edit_changes_what_it_is_told(svcq: Svcq) -> None:
    add(svcq, "a", *NIGHTLY, "--timeout", "5m", "--end", "2031-01-01", "--max-attempts", "2")
    said = svcq.ok("schedule", "edit", "a", "--cron", "30 2 * * *", "--unset", "timeout,end",
                   "--json", "--", "echo", "hi").json  # fmt: skip
    assert (said["cron"], said["tz"], said["end"]) == ("30 2 * * *", "Europe/Paris", None)
    assert said["command"] == ["echo", "hi"]
    assert "timeout" not in said["options"]
    assert said["options"]["max_attempts"] == 2
    said = svcq.ok("schedule", "edit", "a", "--task", "mail.send", "--args", "[1]", "--json").json
    assert (said["task"], said["args"]) == ("mail.send", [1])


def test_removed_its_jobs_stay(svcq: Svcq) -> None:
    add(svcq, "a")
    job = svcq.ok("schedule", "run", "a").out.strip()
    assert svcq.ok("schedule", "remove", "a").out.startswith("a is removed")
    assert svcq.job(job)["state"] == "pending"
    assert "There is no schedule 'a'" in svcq.refuses("schedule", "show", "a", code=3)


WRONG = [
    ([], "Say which: add, "),
    (["frobnicate"], "There is no command 'frobnicate'"),
    (["add"], "NAME is missing"),
    (["add", "a", *NIGHTLY], "There is nothing to run"),
    (["add", "a", *NIGHTLY, "true"], "a command comes after --"),
    (["add", "a", "--", "true"], "No time is given: give one of cron, every and at"),
    (["add", "a", "--cron", "@daily", "--every", "1h", "--", "true"], "cron and every are given"),
    (["add", "a", "--cron", "61 * * * *", "--", "true"], "minute '61'"),
    (["add", "a", "--cron", "* * *", "--", "true"], "has 3 fields"),
    (["add", "a", "--cron", "0 0 31 2 *", "--", "true"], "never fires"),
    (["add", "a", "--cron", "@reboot", "--", "true"], "names no time"),
    (["add", "a", "--cron", "@daily", "--tz", "Mars/X", "--", "true"], "no time zone 'Mars/X'"),
    (["add", "a", "--cron", "@daily", "--tz", "../../etc/passwd", "--", "true"], "no time zone"),
    (["add", "a", "--every", "0s", "--", "true"], "out of range"),
    (["add", "a", "--every", "soon", "--", "true"], "is not a duration"),
    (["add", "a", "--at", "2020-01-01", "--", "true"], "is past"),
    (["add", "a", "--at", "whenever", "--", "true"], "is not understood"),
    (["add", "a", "--cron", "@daily", "--end", "2020-01-01", "--", "true"], "would never fire"),
    (["add", "a", "--cron", "@daily", "--jitter", "2d", "--", "true"], "give a shorter one"),
    (["add", "a", "--cron", "@daily", "--missed", "twice", "--", "true"], "once or skip or all"),
    (["add", "a", *NIGHTLY, "--cwd", "/nowhere", "--", "true"], "no directory '/nowhere'"),
    (["add", "a", *NIGHTLY, "--task", "x", "--", "true"], "Both the task 'x' and the command"),
    (["add", "a", *NIGHTLY, "--task", "x", "--args", "{"], "is not JSON"),
    (["add", "a", *NIGHTLY, "--after", "1", "--", "true"], "there is no option --after"),
    (["add", "a/../b", *NIGHTLY, "--", "true"], "is not a name"),
    (["add", "-x", *NIGHTLY, "--", "true"], "NAME is missing"),
    (["edit", "a"], "There is nothing to change"),
    (["edit", "a", "--unset", "timeot"], "did you mean timeout?"),
    (["edit", "a", "--task", "x", "--", "true"], "Both the task"),
    (["next", "a", "--cron", "@daily"], "Both a schedule and times"),
    (["next", "--tz", "UTC"], "A zone is given and no times"),
    (["next", "-n", "0", "--cron", "@daily"], "number of times 0"),
    (["next", "-n", "x"], "'x' is not a whole number"),
    (["next", "--cron", "nonsense"], "has 1 fields"),
    (["list", "--limit", "0"], "limit 0"),
    (["history", "--limit", "x"], "not a whole number"),
    (["takeback"], "--all"),
    (["takeback", "a", "--all"], "--all"),
    (["handoff"], "SCHEDULE is missing"),
    (["import"], "Name the crontab"),
    (["import", "x", "--user-crontab"], "Name the crontab"),
    (["import", "no-such-file"], "cannot be read"),
]


@pytest.mark.parametrize(("words", "hint"), WRONG)
def test_wrong_usage_is_one_sentence(svcq: Svcq, words: list[str], hint: str) -> None:
    assert hint.lower() in svcq.refuses("schedule", *words).lower()
    assert svcq.ok("schedule", "list", "--json").json == []


@pytest.mark.parametrize(
    "words",
    [["show", "x"], ["edit", "x", "--timeout", "1m"], ["remove", "x"], ["pause", "x"],
     ["resume", "x"], ["run", "x"], ["fire", "x"], ["fire", "x", "--due"], ["history", "x"],
     ["next", "x"], ["handoff", "x"], ["takeback", "x"]],
)  # fmt: skip
def test_what_does_not_exist_is_three(svcq: Svcq, words: list[str]) -> None:
    assert svcq.refuses("schedule", *words, code=3).startswith("There is no schedule 'x'")


def test_of_several_names_each_is_looked_up_first(svcq: Svcq) -> None:
    add(svcq, "a")
    svcq.refuses("schedule", "pause", "a", "nope", code=3)
    svcq.refuses("schedule", "remove", "a", "nope", code=3)
    (found,) = svcq.ok("schedule", "list", "--json").json
    assert not found["paused"]


def test_a_name_is_taken_once(svcq: Svcq) -> None:
    add(svcq, "a")
    assert "There is a schedule 'a' already" in svcq.refuses(
        "schedule", "add", "a", *NIGHTLY, "--", "true", code=1
    )


# Looking


def test_list_and_its_filters(svcq: Svcq) -> None:
    assert svcq.ok("schedule", "list").out.startswith("No schedule: ")
    add(svcq, "nightly", command=("backup", "--all"))
    add(svcq, "poll", "--every", "15m", "--paused")
    svcq.ok("schedule", "add", "mail", "--every", "1h", "--task", "mail.send")
    job = svcq.ok("schedule", "run", "nightly").out.strip()
    table = svcq.ok("schedule", "list").out.splitlines()
    assert [line.split()[:2] for line in table[1:]] == [
        ["mail", "active"], ["nightly", "active"], ["poll", "paused"],
    ]  # fmt: skip
    assert f"pending, job {job}" in table[2]
    assert "backup --all" in table[2]

    def names(*words: str) -> list[str]:
        return [one["name"] for one in svcq.ok("schedule", "list", *words, "--json").json]

    assert names("--paused") == ["poll"]
    assert names("--task", "mail.send") == ["mail"]
    assert names("--grep", "BACKUP") == ["nightly"]
    assert names("--by", "systemd") == []
    assert names("--by", "svcq", "--limit", "1") == ["mail"]


def test_the_last_result_is_told(svcq: Svcq, client: Client) -> None:
    add(svcq, "a")
    job = client.fire_schedule("a")
    client.cancel(job)
    (found,) = svcq.ok("schedule", "list", "--json").json
    assert (found["last_job"], found["last_state"], found["trouble"]) == (job.id, "cancelled", None)
    client.purge("cancelled")
    assert f"gone, job {job.id}" in svcq.ok("schedule", "list").out


def test_show_tells_all_and_no_secret(svcq: Svcq) -> None:
    add(svcq, "a", *NIGHTLY, "--env", "TOKEN=hush", "--timeout", "5m", "--jitter", "90s")
    shown = svcq.ok("schedule", "show", "a").out
    for text in ("0 3 * * * (Europe/Paris)", "1m30s", "timeout=5m", "TOKEN=********", "CE"):
        assert text in shown
    assert "hush" not in shown
    assert svcq.ok("schedule", "show", "a", "--json").json["env"]["TOKEN"] == "********"


def test_next_marks_a_change_of_the_clocks(svcq: Svcq) -> None:
    said = svcq.ok("schedule", "next", "--cron", "30 2 * * *", "--tz", "Europe/Paris",
                   "--from", "2027-03-27", "-n", "3").out  # fmt: skip
    assert [line.partition("  ")[0] for line in said.splitlines()] == [
        "Sat 2027-03-27 02:30:00 CET",
        "-- clocks go forward by 1h, to 03:00 CEST on Sun 2027-03-28 --",
        "Sun 2027-03-28 03:00:00 CEST",
        "Mon 2027-03-29 02:30:00 CEST",
    ]
    said = svcq.ok("schedule", "next", "--cron", "*/30 2 * * *", "--tz", "Europe/Paris",
                   "--from", "2027-10-31", "-n", "4").out  # fmt: skip
    assert [line.partition("  ")[0] for line in said.splitlines()] == [
        "Sun 2027-10-31 02:00:00 CEST",
        "Sun 2027-10-31 02:30:00 CEST",
        "-- clocks go back by 1h, to 02:00 CET on Sun 2027-10-31 --",
        "Sun 2027-10-31 02:00:00 CET",
        "Sun 2027-10-31 02:30:00 CET",
    ]


def test_next_of_one_of_none_and_of_all(svcq: Svcq) -> None:
    assert svcq.ok("schedule", "next").out == "No schedule fires.\n"
    add(svcq, "a", "--at", "2031-05-01T03:00Z")
    add(svcq, "b", "--cron", "0 0 1 5 *", "--tz", "UTC")
    coming = svcq.ok("schedule", "next", "--from", "2031-04-30", "-n", "3", "--json").json
    assert [(one["schedule"], one["at"]) for one in coming] == [
        ("b", "2031-05-01T00:00:00+00:00"),
        ("a", "2031-05-01T03:00:00+00:00"),
        ("b", "2032-05-01T00:00:00+00:00"),
    ]
    assert "None after that." in svcq.ok("schedule", "next", "a").out
    assert svcq.ok("schedule", "next", "a", "--from", "2032-01-01").out == "None.\n"
    found = svcq.ok("schedule", "next", "b", "-n", "2", "--from", "2031-01-01", "--json").json
    assert found == ["2031-05-01T00:00:00+00:00", "2032-05-01T00:00:00+00:00"]
    table = svcq.ok("schedule", "next", "-n", "2", "--from", "2031-04-30").out.splitlines()
    assert [line.split()[0] for line in table] == ["SCHEDULE", "b", "a"]


def test_history(svcq: Svcq) -> None:
    add(svcq, "a")
    assert "yet" in svcq.ok("schedule", "history").out
    job = svcq.ok("schedule", "run", "a").out.strip()
    assert f"queued job {job}" in svcq.ok("schedule", "history", "a").out
    (one,) = svcq.ok("schedule", "history", "--json").json
    assert (one["schedule"], one["how"], one["job"]) == ("a", "asked", int(job))
    assert "--limit shows more" in svcq.ok("schedule", "history", "--limit", "1").out


# Firing


def test_run_does_not_overlap(svcq: Svcq) -> None:
    add(svcq, "a")
    svcq.ok("schedule", "run", "a")
    assert "was not fired" in svcq.refuses("schedule", "run", "a", code=1)


def test_fire_due_does_nothing_before_its_time(svcq: Svcq) -> None:
    add(svcq, "a")
    assert svcq.ok("schedule", "fire", "a", "--due").out == "a: none of its times has come.\n"
    assert svcq.ok("schedule", "history", "--json").json == []


def test_without_a_systemd_nothing_is_handed_over(svcq: Svcq, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    add(svcq, "a")
    assert "systemd cannot be reached" in svcq.refuses("schedule", "handoff", "a", code=4)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "There is no systemd" in svcq.refuses("schedule", "handoff", "a", code=1)
    (found,) = svcq.ok("schedule", "list", "--json").json
    assert found["fired_by"] == "svcq"
    assert svcq.ok("schedule", "takeback", "--all").out == "No schedule was handed over.\n"


def test_in_a_pipe(svcq: Svcq, shell_environment: Mapping[str, str]) -> None:
    add(svcq, "a", *NIGHTLY, command=("printf", "\x1b[31m%s\n"))
    ran = subprocess.run(
        f"{sys.executable} -m svcq schedule list | tail -n 1; "
        f"{sys.executable} -m svcq schedule next a -n 1000 | head -n 1",
        shell=True, env={**shell_environment, "LC_ALL": "C"}, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    listed, first = ran.stdout.splitlines()
    assert "\x1b" not in listed
    assert listed.startswith("a ")
    assert "03:00:00 CE" in first
    assert ran.stderr == ""
