"""The verbs of schedules, as callers have them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest

import svcq
from svcq.client import Client, set_default_client
from svcq.config import load
from svcq.environment import capture_lasting
from svcq.errors import InvalidArguments, InvalidInput, NotFound, Refused
from svcq.policy import Options
from svcq.schedules import How
from svcq.times import DAY, HOUR, MINUTE
from tests.clients import ROOT, assert_sentence, refused, run_python
from tests.store.conftest import Clock

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)


@svcq.task(queue="mail", timeout=60)
def send(to: str, *, subject: str = "") -> None: ...


@pytest.fixture
def clock() -> Clock:
    return Clock(round(NOW.timestamp() * 1000))


EVERY_ENGINE = True


@pytest.fixture
def client(tmp_path: Path, clock: Clock, stores: Callable[[], dict[str, str]]) -> Iterator[Client]:
    with Client(config=load(tmp_path / "home", stores()), clock=clock) as client:
        yield client


def fire(client: Client) -> None:
    client.store.timetable.fire(client.store.timetable.due())


# Saying


def test_a_command_at_times_of_cron(client: Client, tmp_path: Path) -> None:
    said = client.schedule(
        "nightly", ["backup", "--all"], cron="0 3 * * *", tz="Europe/Paris", cwd=tmp_path,
        timeout="5m", priority=3,
    )  # fmt: skip
    assert (said.cron, said.zone, said.command) == (
        "0 3 * * *",
        "Europe/Paris",
        ["backup", "--all"],
    )
    assert said.next_at == datetime(2027, 1, 16, 3, tzinfo=ZoneInfo("Europe/Paris"))
    assert said.options == {"priority": 3, "timeout": "5m", "cwd": str(tmp_path)}
    assert (said.missed, said.overlap, said.times) == ("once", "skip", "0 3 * * * (Europe/Paris)")
    assert client.get_schedule("nightly") == said
    assert client.schedules() == [said]


def test_a_schedule_as_json(client: Client) -> None:
    said = client.schedule(
        "s", "true", every="90m", jitter="1m", cwd="/", start=NOW, end="2031-01-01"
    )
    assert said.as_json() == {
        "name": "s", "cron": None, "tz": None, "every": 5400.0, "at": None,
        "start": "2027-01-15T08:00:00.000Z", "end": said.as_json()["end"], "jitter": 60.0,
        "missed": "once", "overlap": "skip", "paused": False, "fired_by": "svcq",
        "command": "true", "options": {"cwd": "/"}, "owner": said.owner,
        "created_at": "2027-01-15T08:00:00.000Z", "next_at": "2027-01-15T09:30:00.000Z",
        "last_at": None, "last_job": None,
        "says": "It fires next for 2027-01-15T09:30:00.000Z. It has not fired yet.",
    }  # fmt: skip


def test_a_task_with_its_options(client: Client, clock: Clock) -> None:
    client.schedule("mail", send.options(priority=4), args=["a@b.org"], kwargs={"subject": "hi"},
                    every="1h", max_attempts=2)  # fmt: skip
    said = client.get_schedule("mail")
    assert (said.task, said.call) == (send.name, (["a@b.org"], {"subject": "hi"}))
    assert said.options == {"queue": "mail", "priority": 4, "max_attempts": 2, "timeout": 60}
    assert (said.times, said.as_json()["kwargs"]) == ("every 1h", {"subject": "hi"})
    clock.advance(3600)
    fire(client)
    (job,) = client.list()
    assert (job.task, job.args, job.queue, job.max_attempts) == (
        send.name, ["a@b.org"], "mail", 2,
    )  # fmt: skip
    assert job.options["timeout"] == 60


def test_a_task_by_its_name_alone(client: Client) -> None:
    said = client.schedule("mail", task="shop.send", args=[1], every="1h")
    assert (said.task, said.call) == ("shop.send", ([1], {}))


def test_a_task_schedules_itself_with_the_default_client(client: Client) -> None:
    before = set_default_client(client)
    try:
        said = send.schedule("mail", args=["a"], every="1h", replace=True)
        assert send.schedule("mail", args=["a"], every="1h", replace=True).next_ms == said.next_ms
    finally:
        set_default_client(before)
    assert client.get_schedule("mail").task == send.name


def test_the_jitter_of_retries_is_said_with_options(client: Client) -> None:
    said = client.schedule("s", "true", every="1h", jitter="1m", options=Options(jitter=0.5))
    assert (said.jitter_ms, said.options["jitter"]) == (MINUTE, 0.5)


def test_durations_may_be_timedeltas(client: Client) -> None:
    said = client.schedule("s", "true", every=timedelta(hours=1), timeout=timedelta(minutes=2))
    assert (said.every_ms, said.options["timeout"]) == (HOUR, 120.0)


def test_a_time_without_a_zone_is_in_the_schedules(client: Client) -> None:
    said = client.schedule("s", "true", at="2027-07-01T09:00", tz="Asia/Tokyo")
    assert said.next_at == datetime(2027, 7, 1, 0, tzinfo=UTC)
    start = datetime(2027, 7, 1, 9)  # noqa: DTZ001
    said = client.schedule("t", "true", every="1h", start=start, tz="Asia/Tokyo")
    assert said.next_at == datetime(2027, 7, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "said"),
    [("Asia/Tokyo", "Asia/Tokyo"), (":Europe/Paris", "Europe/Paris"), ("", None)],
)
def test_cron_without_a_zone_is_in_the_machines(zone: str, said: str | None) -> None:
    found = run_python(ASK, zone)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() in {said or name for name in available_timezones()}


ASK = """
import os, sys
os.environ["TZ"] = sys.argv[1]
from svcq.definitions import local_zone
print(local_zone())
"""


def test_a_machine_whose_zone_has_no_name() -> None:
    without_etc = 'mount -t tmpfs none /etc && exec "$@"'
    asked = subprocess.run(
        ["unshare", "-rm", "sh", "-c", without_etc, "sh", sys.executable, "-c", ASK, ""],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "The time zone of this machine has no name that is known: give one" in asked.stderr


def test_a_zone_in_the_expression_wins(client: Client) -> None:
    said = client.schedule("s", "true", cron="CRON_TZ=Asia/Tokyo 0 9 * * *", tz="Europe/Paris")
    assert (said.cron, said.zone) == ("0 9 * * *", "Asia/Tokyo")


def test_what_lasts_of_an_environment() -> None:
    lasting = {"PATH": "/bin", "LANG": "C", "HOME": "/root", "VIRTUAL_ENV": "/v"}
    assert capture_lasting({**lasting, "SECRET": "x", "EDITOR": "vi"}) == lasting
    assert capture_lasting({"LANG": "\udcff"}) == {}


def test_an_environment_reaches_the_jobs(client: Client) -> None:
    client.schedule("s", "true", every="1h", env={"PATH": "/bin", "TOKEN": "t"})
    assert client.schedule_environment("s") == {"PATH": "/bin", "TOKEN": "t"}
    assert client.environment(client.fire_schedule("s")) == {"PATH": "/bin", "TOKEN": "t"}


# Changing


def test_an_edit_leaves_the_rest_alone(client: Client, clock: Clock) -> None:
    before = client.schedule("s", "true", every="1h", timeout="5m", env={"A": "b"}, cwd="/")
    clock.advance(600)
    after = client.edit_schedule("s", priority=4)
    assert after.next_ms == before.next_ms
    assert after.options == {"timeout": "5m", "cwd": "/", "priority": 4}
    assert client.schedule_environment("s") == {"A": "b"}
    assert client.edit_schedule("s", timeout=None, env=None).options == {"cwd": "/", "priority": 4}
    assert client.schedule_environment("s") is None


def test_an_edit_of_its_times(client: Client) -> None:
    client.schedule("s", "true", cron="0 3 * * *", tz="Europe/Paris", end="2031-01-01T00:00Z")
    said = client.edit_schedule("s", cron="0 4 * * *")
    assert (said.cron, said.zone) == ("0 4 * * *", "Europe/Paris")
    assert client.edit_schedule("s", tz="Asia/Tokyo").times == "0 4 * * * (Asia/Tokyo)"
    said = client.edit_schedule("s", every="5m", end=None)
    assert (said.cron, said.zone, said.every_ms, said.end_ms) == (None, None, 5 * MINUTE, None)
    at = NOW + timedelta(hours=1)
    assert client.edit_schedule("s", at=at).next_at == at


def test_an_edit_of_what_it_runs(client: Client) -> None:
    client.schedule("s", ["echo", "1"], every="1h", cwd="/")
    assert client.edit_schedule("s", command="echo 2").command == "echo 2"
    said = client.edit_schedule("s", task=send, args=["a"])
    assert (said.task, said.call, said.command) == (send.name, (["a"], {}), None)
    assert client.edit_schedule("s", args=["b"]).call == (["b"], {})
    assert client.edit_schedule("s", kwargs={"subject": "x"}).call == (["b"], {"subject": "x"})
    said = client.edit_schedule("s", task="other.task")
    assert (said.task, said.call) == ("other.task", ([], {}))
    said = client.edit_schedule("s", command=["true"])
    assert (said.task, said.command, said.call) == ("", ["true"], ([], {}))


def test_an_edit_of_what_is_done_with_missed_times(client: Client) -> None:
    client.schedule("s", "true", every="1h")
    said = client.edit_schedule("s", missed="all")
    assert (said.missed, said.overlap) == ("all", "queue")
    with pytest.raises(InvalidInput, match="missed is all, which queues a job for each time"):
        client.edit_schedule("s", overlap="skip")
    said = client.edit_schedule("s", missed="skip", overlap="replace", jitter="5m")
    assert (said.missed, said.overlap, said.jitter_ms) == ("skip", "replace", 5 * MINUTE)


def test_a_moment_that_has_been_can_be_given_another(client: Client, clock: Clock) -> None:
    client.schedule("s", "true", at=NOW + timedelta(minutes=1))
    clock.advance(60)
    fire(client)
    assert client.edit_schedule("s", priority=1).over  # its times are not what changes
    again = client.edit_schedule("s", at=NOW + timedelta(hours=1))
    assert not again.over


def test_a_directory_that_is_away_is_no_obstacle_to_an_edit(client: Client, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    client.schedule("s", "true", every="1h", cwd=gone)
    gone.rmdir()
    assert client.edit_schedule("s", priority=2).options["cwd"] == str(gone)
    with pytest.raises(InvalidInput, match="There is no directory"):
        client.edit_schedule("s", cwd=gone)


def test_pause_resume_hand_off_and_back(client: Client, clock: Clock) -> None:
    client.schedule("s", "true", every="1h")
    assert client.pause_schedule("s").paused
    assert not client.resume_schedule("s").paused
    assert client.hand_off("s", "systemd").fired_by == "systemd"
    clock.advance(7200)
    assert client.store.timetable.due() == []
    assert client.take_back("s").fired_by == "svcq"
    client.remove_schedule("s")
    assert client.schedules() == []


def test_fire_now_obeys_the_overlap(client: Client) -> None:
    client.schedule("s", "true", every="1h")
    job = client.fire_schedule("s")
    assert client.firing_of(job.id) == client.firings("s")[0]
    with pytest.raises(Refused, match=rf"was not fired, since its job {job.id} is still pending"):
        client.fire_schedule("s")
    assert [one.how for one in client.firings("s")] == [How.SKIPPED, How.ASKED]
    client.edit_schedule("s", overlap="replace")
    assert client.fire_schedule("s").id == job.id + 1
    assert client.get(job).state == "cancelled"


# Looking ahead


def test_the_next_runs_across_a_change_of_the_clocks(client: Client) -> None:
    words: dict[str, Any] = {"cron": "30 2 * * *", "tz": "Europe/Paris"}
    client.schedule("s", "true", **words)
    at = datetime(2027, 3, 27, tzinfo=UTC)
    for runs in (
        client.next_runs("s", 3, after=at),
        client.next_runs(client.get_schedule("s"), 3, after=at),
        client.next_runs(n=3, after=at, **words),
    ):
        assert [f"{one:%a %H:%M %z}" for one in runs] == [
            "Sat 02:30 +0100", "Sun 03:00 +0200", "Mon 02:30 +0200",
        ]  # fmt: skip


def test_the_next_runs_of_intervals_and_moments(client: Client, clock: Clock) -> None:
    assert client.next_runs(every="1h", n=2) == [NOW + timedelta(hours=1), NOW + timedelta(hours=2)]
    assert client.next_runs(every="1h", start=NOW + timedelta(minutes=7), n=1) == [
        NOW + timedelta(minutes=7)
    ]
    assert client.next_runs(at=NOW + timedelta(days=1)) == [NOW + timedelta(days=1)]
    assert client.next_runs(at=NOW - timedelta(days=1)) == []
    client.schedule("s", "true", every="1h", end=NOW + timedelta(hours=3))
    clock.now += DAY
    assert client.next_runs("s") == []
    with pytest.raises(InvalidInput, match="Give a schedule, or the times of one"):
        client.next_runs()
    with pytest.raises(InvalidInput, match="Give a schedule, or the times of one"):
        client.next_runs("s", every="1h")


# Bad input: one sentence each, and nothing is changed


@pytest.mark.parametrize(
    ("words", "kind", "named"),
    [
        ({}, InvalidInput, "give one of cron, every and at"),
        ({"every": "1h", "at": "2031-01-01"}, InvalidInput, "every and at are given"),
        ({"cron": "61 * * * *"}, InvalidInput, "61"),
        ({"cron": "* * *"}, InvalidInput, "has 3 fields"),
        ({"cron": 5}, InvalidInput, 5),
        ({"cron": "@reboot"}, InvalidInput, "names no time"),
        ({"cron": "0 0 31 2 *"}, InvalidInput, "never fires"),
        ({"cron": "* * * * *", "tz": "Mars/Base"}, InvalidInput, "Mars/Base"),
        ({"every": "1h", "tz": "Mars/Base"}, InvalidInput, "Mars/Base"),
        ({"every": "1h", "tz": 5}, InvalidInput, 5),
        ({"every": 0}, InvalidInput, "one second to ten years"),
        ({"every": -5}, InvalidInput, -5),
        ({"every": 0.5}, InvalidInput, 0.5),
        ({"every": "99y"}, InvalidInput, "99y"),
        ({"every": "4000d"}, InvalidInput, "4000d"),
        ({"every": float("nan")}, InvalidInput, "nan"),
        ({"every": True}, InvalidInput, "True"),
        ({"at": "2020-01-01T00:00Z"}, InvalidInput, "2020-01-01T00:00:00.000Z is past"),
        ({"at": "soon"}, InvalidInput, "soon"),
        ({"every": "1h", "start": "x"}, InvalidInput, "The start 'x'"),
        ({"every": "1h", "end": []}, InvalidInput, "The end []"),
        ({"every": "1h", "end": "2020-01-01"}, InvalidInput, "is past"),
        ({"every": "1h", "start": "2031-01-02", "end": "2031-01-01"}, InvalidInput, "never fire"),
        ({"every": "1h", "jitter": "2h"}, InvalidInput, "2h"),
        ({"every": "1h", "jitter": "x"}, InvalidInput, "jitter"),
        ({"every": "1h", "missed": "maybe"}, InvalidInput, "maybe"),
        ({"every": "1h", "overlap": "maybe"}, InvalidInput, "maybe"),
        ({"every": "1h", "missed": "all", "overlap": "skip"}, InvalidInput, "give overlap queue"),
        ({"every": "1h", "run_at": "2031-01-01"}, InvalidInput, "run_at"),
        ({"every": "1h", "after": [1]}, InvalidInput, "after"),
        ({"every": "1h", "after_any": 1}, InvalidInput, "after_any"),
        ({"every": "1h", "name": "x", "overlap": "queue"}, InvalidInput, "x"),
        ({"every": "1h", "timeout": "never"}, InvalidInput, "never"),
        ({"every": "1h", "colour": 1}, InvalidInput, "colour"),
        ({"every": "1h", "timeot": 1}, InvalidInput, "did you mean timeout?"),
        ({"every": "1h", "when": "full-moon"}, InvalidInput, "full-moon"),
        ({"every": "1h", "cwd": "/no/such"}, InvalidInput, "/no/such"),
        ({"every": "1h", "env": {"A=": "b"}}, InvalidInput, "A="),
        ({"every": "1h", "args": [1]}, InvalidInput, "args and kwargs are for tasks"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    client: Client, words: dict[str, Any], kind: type[svcq.SvcqError], named: object
) -> None:
    with refused(client, kind, named):
        client.schedule("s", "true", **words)
    assert client.schedules() == []


@pytest.mark.parametrize("what", [None, "", [], " ", 5, ["a", 5], send.function, object()])
def test_what_is_neither_a_command_nor_a_task(client: Client, what: Any) -> None:
    with refused(client, InvalidInput):
        client.schedule("s", what, every="1h")


@pytest.mark.parametrize(
    ("args", "kwargs"), [([], {}), (["a", "b"], {}), (["a"], {"colour": 1}), ([object()], {})]
)
def test_arguments_that_do_not_fit_the_task(
    client: Client, args: list[Any], kwargs: dict[str, Any]
) -> None:
    with refused(client, InvalidArguments):
        client.schedule("s", send, args=args, kwargs=kwargs, every="1h")


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "-x", 5, None, "x" * 101, "a\0"])
def test_a_name_that_cannot_be(client: Client, name: Any) -> None:
    with refused(client, InvalidInput):
        client.schedule(name, "true", every="1h")


def test_a_name_that_is_taken_or_unknown(client: Client) -> None:
    client.schedule("s", "true", every="1h")
    with refused(client, Refused, "s"):
        client.schedule("s", "true", every="2h")
    for verb in (
        client.get_schedule, client.edit_schedule, client.remove_schedule, client.pause_schedule,
        client.resume_schedule, client.fire_schedule, client.take_back, client.next_runs,
        client.firings, client.schedule_environment,
    ):  # fmt: skip
        with refused(client, NotFound, "none"):
            verb("none")
    with refused(client, NotFound, "none"):
        client.hand_off("none", "systemd")


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": 1}, {"every": 0}, {"cron": "x"}, {"at": "2020-01-01"}, {"timeout": "x"},
        {"after": [1]}, {"end": "2020-01-01"}, {"missed": "x"}, {"command": ""}, {"jitter": "1h"},
        {"command": "true", "task": "x"}, {"run_at": 5}, {"tz": "x"}, {"task": object()},
        {"args": [1]}, {"kwargs": {"a": 1}}, {"task": "x", "args": "ab"},
        {"task": "x", "kwargs": 5},
    ],
)  # fmt: skip
def test_an_edit_that_cannot_be_changes_nothing(client: Client, changes: dict[str, Any]) -> None:
    before = client.schedule("s", "true", every="1h")
    with refused(client, InvalidInput):
        client.edit_schedule("s", **changes)
    assert client.get_schedule("s") == before


def test_numbers_that_cannot_be(client: Client) -> None:
    client.schedule("s", "true", every="1h")
    for call in (
        lambda: client.next_runs("s", 0),
        lambda: client.next_runs("s", 10**9),
        lambda: client.firings("s", 0),
        lambda: client.firings("s", before=0),
        lambda: client.schedules(limit=0),
        lambda: client.firing_of(-1),
        lambda: client.hand_off("s", "a b"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert_sentence(caught.value)


def test_a_store_in_another_directory_than_the_callers(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert client.schedule("s", "true", every="1h").options["cwd"] == os.getcwd()
