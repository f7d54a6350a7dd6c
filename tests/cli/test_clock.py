"""What `status`, `show` and `doctor` tell of the clock and its schedules."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from svcq.client import Client
from svcq.config import load
from svcq.host import private_directory
from svcq.host.bell import Bell
from svcq.service.clock import Clock
from svcq.times import DAY, HOUR, now_ms
from tests.cli.conftest import Svcq
from tests.helpers import eventually


def finding(svcq: Svcq, check: str) -> tuple[bool, str]:
    found = {one["check"]: one for one in svcq("doctor", "--json").json}[check]
    remedy = f": {found['remedy']}" if found["remedy"] else ""
    return found["ok"], found["says"] + remedy


def test_nothing_is_scheduled(svcq: Svcq, client: Client) -> None:
    assert svcq.ok("status", "--json").json["clock"] == {
        "running": False, "pids": [], "schedules": 0, "active": 0, "paused": 0, "next": None,
        "next_at": None, "elsewhere": [],
    }  # fmt: skip
    assert "schedule" not in svcq.ok("status").out
    assert finding(svcq, "schedules") == (True, "there are none")


def test_schedules_without_a_clock(svcq: Svcq, client: Client) -> None:
    client.schedule("s", "true", every="1h")
    assert svcq.ok("status", "--json").json["clock"]["next"] == "s"
    said = "1 schedule, but no clock runs: svcq start (or svcq up) runs one.\n"
    assert said in svcq.ok("status").out
    assert finding(svcq, "schedules") == (
        False, "1 schedule, and no clock runs: svcq start, or svcq up",
    )  # fmt: skip


def test_schedules_with_a_clock(svcq: Svcq, client: Client) -> None:
    client.schedule("later", "true", every="2h")
    client.schedule("s", "true", every="1h")
    with Clock(client.config, lambda _: None):
        eventually(lambda: client.store.clocks().clocks)
        clock = svcq.ok("status", "--json").json["clock"]
        assert (clock["running"], clock["pids"], clock["next"]) == (True, [os.getpid()], "s")
        assert clock["next_at"].endswith("Z")
        assert "2 schedules; the next, s, fires in 59m" in svcq.ok("status").out
        ok, says = finding(svcq, "schedules")
        assert ok
        assert says.startswith("2 schedules; the next is s, at ")


def test_all_are_paused(svcq: Svcq, client: Client) -> None:
    client.schedule("s", "true", every="1h")
    client.pause_schedule("s")
    assert "1 schedule, none of which svcq is to fire." in svcq.ok("status").out
    assert finding(svcq, "schedules") == (True, "1 schedule, none of which svcq is to fire")


def test_one_that_should_have_fired(svcq: Svcq, client: Client, home: Path) -> None:
    with Client(config=load(home, {}), clock=lambda: now_ms() - 2 * HOUR) as earlier:
        earlier.schedule("s", "true", every="1h")
    bells = Path(client.store.timetable.bells)
    private_directory(bells)
    with closing(Bell(bells, f"{os.getpid()}-0")):  # a clock that hears, and does nothing
        ok, says = finding(svcq, "schedules")
    assert not ok
    assert says.startswith("s should have fired 1h ago, though a clock runs: see what it says")
    with Clock(client.config, lambda _: None):
        eventually(lambda: client.firings("s"))
        assert finding(svcq, "schedules")[0]


def test_one_whose_job_cannot_be_queued(svcq: Svcq, client: Client, home: Path) -> None:
    client.command("true", name="taken")
    with Client(config=load(home, {}), clock=lambda: now_ms() - 2 * HOUR) as earlier:
        earlier.schedule("s", "true", every="90m", name="taken")
    with Clock(client.config, lambda _: None):
        eventually(lambda: client.firings("s"))
        ok, says = finding(svcq, "schedules")
    assert not ok
    assert says.startswith("s could not queue its job: The name 'taken' belongs to job 1")
    assert says.endswith(": svcq schedule edit s")


def test_a_clock_that_was_set(svcq: Svcq, client: Client) -> None:
    client.store.timetable.note_clock_set(-3 * DAY)
    ok, says = finding(svcq, "clock")
    assert ok
    assert says.startswith("the clock agrees with the store; it was set back by 3d on 2")


def test_where_a_job_comes_from(svcq: Svcq, client: Client) -> None:
    client.schedule("s", "true", every="1h")
    job = client.fire_schedule("s")
    assert svcq.job(job.id)["schedule"] == "s"
    assert "s, as asked for" in svcq.ok("show", job.id).out
    other = svcq.add()
    assert svcq.job(other)["schedule"] is None
    assert "schedule" not in svcq.ok("show", other).out
