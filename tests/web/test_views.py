"""What views of the page hold, asked of a client whose time passes when told to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svcq.client import Client
from svcq.client.verbs import Role
from svcq.config import load
from svcq.service.clock import Ticker
from svcq.times import HOUR
from svcq.web import shape, views
from svcq.web.callers import Caller

OWNER = Caller("me", Role.ADMIN, "peer")


class Time:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def client(tmp_path: Path, time: Time) -> Iterator[Client]:
    with Client(config=load(tmp_path / "home", {}), clock=time) as client:
        yield client


def shown(client: Client) -> dict[str, Any]:
    found = views.schedules(client, {}, OWNER)["schedules"]
    return {one["name"]: one for one in found}


def test_a_schedule_says_what_it_missed_and_nothing_while_all_goes_well(
    client: Client, time: Time
) -> None:
    ticker = Ticker(client.store, lambda _: None)
    client.schedule("skips", "true", every="1h", missed="skip")
    client.schedule("once", "true", every="1h")
    assert {one["note"] for one in shown(client).values()} == {""}
    time.now += HOUR
    ticker.tick()
    assert {one["note"] for one in shown(client).values()} == {""}
    time.now += 5 * HOUR + HOUR // 2
    ticker.tick()
    assert shown(client)["skips"]["note"].startswith("missed 5")
    assert shown(client)["skips"]["note"].endswith("ran none")
    assert shown(client)["once"]["note"] == "skipped, its job 2 is still pending"
    ticker.close()


def test_now_has_the_schedules_that_come_next_whatever_they_are_called(client: Client) -> None:
    for n in range(9):
        client.schedule(f"s{n}", "true", every=f"{20 - n}h")
    client.schedule("paused", "true", every="1h")
    client.pause_schedule("paused")
    client.schedule("elsewhere", "true", cron="0 * * * *", tz="UTC")
    client.hand_off("elsewhere", "systemd")
    upcoming = views.now(client, {}, OWNER)["upcoming"]
    assert [one["name"] for one in upcoming] == ["elsewhere", "s8", "s7", "s6"]


def test_a_text_is_split_at_its_times() -> None:
    assert shape.split_at({}, "nothing in it") == ["nothing in it"]
    time = views.moment(0)
    assert shape.split_at({"12:00": time}, "at 12:00, or 12:00.") == [
        "at ", time, ", or ", time, ".",
    ]  # fmt: skip
