"""Schedules in an export, an import and a backup."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svcq.client import Client
from svcq.config import load
from svcq.errors import InvalidInput
from svcq.schedules import How
from svcq.times import HOUR, MINUTE
from tests.clients import assert_sentence
from tests.store.conftest import Clock

SECRET = "s3cret-of-a-schedule"
EVERY_ENGINE = True


@pytest.fixture
def full(tmp_path: Path, clock: Clock, stores: Callable[[], dict[str, str]]) -> Iterator[Client]:
    """A store with schedules of every kind, and a past."""
    with Client(config=load(tmp_path / "full", stores()), clock=clock) as client:
        client.command("true")  # so that ids differ in a store that has others
        client.schedule("cron", "true", cron="0 3 * * *", tz="Europe/Paris", env={"T": SECRET},
                        jitter="1m")  # fmt: skip
        client.schedule("every", task="mail.send", args=[1], kwargs={"to": "a"}, every="10m",
                        missed="all", timeout="5m", tags=["x"])  # fmt: skip
        client.schedule("once", ["echo", "hi"], at=clock.now / 1000 + 30)
        client.schedule("paused", "true", every="1h", end=clock.now / 1000 + 9999)
        client.pause_schedule("paused")
        client.schedule("handed", "true", every="1h")
        client.hand_off("handed", "systemd")
        clock.advance(3600)
        while due := client.store.timetable.due():
            client.store.timetable.fire(due, "while it was tested")
        yield client


def empty(tmp_path: Path, clock: Clock) -> Client:
    return Client(config=load(tmp_path / "other", {}), clock=clock)


def definitions(client: Client) -> list[dict[str, Any]]:
    left_out = ("fired_by", "next_at", "says", "last_job")
    return [
        {key: value for key, value in one.as_json().items() if key not in left_out}
        for one in client.schedules()
    ]


def test_what_was_exported_is_there_after_the_import(
    full: Client, tmp_path: Path, clock: Clock
) -> None:
    lines = list(full.export(environments=True))
    with empty(tmp_path, clock) as other:
        other.import_lines(lines)
        assert definitions(other) == definitions(full)
        for old in full.schedules():
            assert other.firings(old.name) == full.firings(old.name)
            assert other.get_schedule(old.name).last_job == old.last_job
        assert other.schedule_environment("cron") == {"T": SECRET}
        assert other.get_schedule("cron").next_ms == full.get_schedule("cron").next_ms
        assert other.get_schedule("paused").paused


def test_jobs_are_found_under_their_new_ids(full: Client, tmp_path: Path, clock: Clock) -> None:
    with empty(tmp_path, clock) as other:
        other.command("false")
        other.import_lines(full.export())
        (fired,) = other.firings("once")
        assert fired.job == full.firings("once")[0].job + 1
        assert other.get(fired.job).command == ["echo", "hi"]
        assert other.get_schedule("once").last_job == fired.job


def test_times_that_passed_since_the_export_are_missed_ones(
    full: Client, tmp_path: Path, clock: Clock
) -> None:
    lines = list(full.export())
    clock.now += 5 * HOUR + 2 * MINUTE
    with empty(tmp_path, clock) as other:
        other.import_lines(lines)
        due = other.store.timetable.due()
        assert [one.name for one in due] == ["every"]
        fired = other.store.timetable.fire(due)
        assert {one.how for one in fired} == {How.CAUGHT_UP}
        assert len(fired) == 30


def test_what_another_scheduler_fired_there_our_clock_fires_here(
    full: Client, tmp_path: Path, clock: Clock
) -> None:
    with empty(tmp_path, clock) as other:
        other.import_lines(full.export())
        handed = other.get_schedule("handed")
        assert (handed.fired_by, handed.due_ms is not None) == ("svcq", True)


def test_a_schedule_of_the_same_name_stays_as_it_is(
    full: Client, tmp_path: Path, clock: Clock
) -> None:
    with empty(tmp_path, clock) as other:
        mine = other.schedule("cron", "false", every="1h")
        other.import_lines(full.export())
        assert other.get_schedule("cron") == mine
        assert len(other.schedules()) == 5


def test_environments_stay_behind_unless_asked_for(
    full: Client, tmp_path: Path, clock: Clock
) -> None:
    assert SECRET not in "".join(full.export())
    for name, asked in (("without.db", False), ("with.db", True)):
        copy = tmp_path / name
        full.backup(copy, environments=asked)
        assert (SECRET.encode() in copy.read_bytes()) is asked
        with Client(config=load(tmp_path / "copies", {}), store=copy, clock=clock) as client:
            assert [one.name for one in client.schedules()] == [
                one.name for one in full.schedules()
            ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cron": "61 * * * *", "zone": "UTC", "every_ms": None}, "which is out of range"),
        ({"cron": "* * * * *", "zone": "Mars", "every_ms": None}, "There is no time zone 'Mars'"),
        ({"every_ms": None}, "has not one of cron, every_ms and at"),
        ({"at": 1}, "has not one of cron, every_ms and at"),
        ({"every_ms": 5}, "The every_ms 5 is not a whole number from 1,000"),
        ({"name": "no/name"}, "is not a name"),
        ({"missed": "maybe"}, "is unknown: use once or skip or all"),
        ({"overlap": None}, "is unknown"),
        ({"options": "{"}, "is not JSON"),
        ({"options": "[]"}, "are not a JSON object"),
        ({"options": '{"colour": 1}'}, "There is no option 'colour'"),
        ({"options": '{"timeout": -1}'}, "The timeout -1 is out of range"),
        ({"command": '"true"'}, "has not one of task and command"),
        ({"next_at": "soon"}, "The next_at 'soon' is not a whole number"),
        ({"firings": 0}, "has a firing beyond its last one"),
        ({"history": [{}]}, "The number None is not a whole number"),
        ({"history": 5}, "are not a list"),
    ],
)
def test_a_record_that_cannot_be_is_refused_whole(
    full: Client, tmp_path: Path, clock: Clock, change: dict[str, Any], why: str
) -> None:
    lines = list(full.export())
    at = next(n for n, line in enumerate(lines) if '"name": "every"' in line)
    record = json.loads(lines[at])
    record["schedule"].update(change)
    lines[at] = json.dumps(record)
    with empty(tmp_path, clock) as other:
        with pytest.raises(InvalidInput, match=why) as refused:
            other.import_lines(lines)
        assert_sentence(refused.value, f"Line {at + 1}")
        assert (other.schedules(), other.list()) == ([], [])


def test_a_firing_that_stands_twice_is_refused(full: Client, tmp_path: Path, clock: Clock) -> None:
    lines = list(full.export())
    at = next(n for n, line in enumerate(lines) if '"name": "every"' in line)
    record = json.loads(lines[at])
    record["schedule"]["history"] *= 2
    lines[at] = json.dumps(record)
    with empty(tmp_path, clock) as other, pytest.raises(InvalidInput, match="a firing twice"):
        other.import_lines(lines)
