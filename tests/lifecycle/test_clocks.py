"""Clocks as processes: several on one store, killed, stopped, and where the time is set."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from svcq.schedules import Firing, How
from svcq.times import HOUR, MINUTE, SECOND, now_ms
from tests.clients import ROOT
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, QUICK, Home

NO_WORKERS = f"{QUICK}\n[workers]\ncount = 0\n"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


def clock(home: Home) -> subprocess.Popen[str]:
    """A clock in a process of its own, once it runs."""
    command = [sys.executable, "-m", "tests.lifecycle.ticking", str(home.path)]
    process = subprocess.Popen(command, cwd=ROOT, env=home.environment, text=True)
    home.started.append(process)
    eventually(lambda: process.pid in home.client.store.clocks().clocks, PATIENCE)
    return process


def each_once(home: Home, *names: str) -> list[Firing]:
    """All firings; no time has two of them, and no job is without one."""
    history = [one for name in names for one in home.client.firings(name, 10_000)]
    times = Counter((one.schedule, one.nominal_ms) for one in history)
    assert set(times.values()) == {1}
    jobs = sorted(one.job for one in history if one.job is not None)
    assert jobs == sorted(job.id for job in home.client.list(limit=10_000))
    return history


def fired(home: Home, name: str) -> int:
    return home.client.get_schedule(name).firings


def test_two_clocks_fire_each_time_once(home: Home) -> None:
    one, other = clock(home), clock(home)
    for name in ("a", "b", "c"):
        home.client.schedule(name, "true", every=1, overlap="queue")
    eventually(lambda: fired(home, "c") >= 4, PATIENCE)
    one.send_signal(signal.SIGKILL)
    one.wait()
    at_death = now_ms()
    before = fired(home, "a")
    eventually(lambda: fired(home, "a") >= before + 2, PATIENCE)
    assert home.client.store.clocks().clocks == (other.pid,)
    other.kill()
    other.wait()
    history = each_once(home, "a", "b", "c")
    taken_over = min(one.at_ms for one in history if one.at_ms > at_death)
    assert taken_over - at_death < 5 * SECOND


def test_killed_again_and_again(home: Home) -> None:
    """At any moment: between the look and the firing, in it, after it."""
    home.client.schedule("s", "true", every=1, missed="all")
    for n in range(6):
        before = fired(home, "s")
        process = clock(home)
        if n % 2:
            eventually(lambda: fired(home, "s") > before, PATIENCE, interval=0.0005)  # noqa: B023
        process.kill()
        process.wait()
    last = clock(home)
    before = fired(home, "s")
    eventually(lambda: fired(home, "s") >= before + 2, PATIENCE)
    last.kill()
    last.wait()
    nominal = sorted(one.nominal_ms or 0 for one in each_once(home, "s"))
    assert nominal == list(range(nominal[0], nominal[-1] + 1, SECOND))  # none was left out


def test_svcq_up_runs_a_clock_and_takes_it_along(home: Home) -> None:
    up = home.start("up", "--count", 1)
    assert eventually(lambda: home.client.store.clocks().clocks, PATIENCE) == (up.pid,)
    home.client.schedule("s", "date >> out", every=1, cwd=str(home.work))
    eventually((home.work / "out").exists, PATIENCE)
    up.send_signal(signal.SIGTERM)
    assert up.wait(PATIENCE) == 0
    assert home.client.store.clocks().clocks == ()
    assert "Traceback" not in home.said()


def test_a_change_is_heard_of_at_once(home: Home) -> None:
    clock(home)
    for n in range(3):
        at = now_ms() + 250
        home.client.schedule(f"s{n}", "true", at=at / 1000)
        (firing,) = eventually(lambda: home.client.firings(f"s{n}"), PATIENCE)  # noqa: B023
        assert firing.nominal_ms == at
        assert firing.how is How.FIRED


@pytest.fixture
def faked(tmp_path: Path) -> Path:
    """The file that says how far the clock of a process is off."""
    file = tmp_path / "offset"
    file.write_text("+0\n")
    return file


def faking(offset: Path) -> dict[str, str]:
    """Variables that change the clock on the wall alone, for a process and while it runs."""
    assert FAKETIME is not None, "install the Debian package faketime"
    return {
        "LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip


def service_with_faked_time(home: Home, faked: Path) -> None:
    process = home.start("service", env=faking(faked))
    eventually(lambda: process.pid in home.client.store.clocks().clocks, PATIENCE)


def test_a_clock_that_is_set_forward_under_a_running_service(tmp_path: Path, faked: Path) -> None:
    with ExitStack() as stack:
        home = Home(tmp_path, NO_WORKERS)
        stack.callback(home.close)
        start = (now_ms() + 20 * MINUTE) / SECOND
        for missed in ("once", "skip", "all"):
            home.client.schedule(missed, "true", every="1h", missed=missed, start=start)
        home.client.schedule("beat", "true", every=1)
        service_with_faked_time(home, faked)
        eventually(lambda: fired(home, "beat"), PATIENCE)  # it has looked, so it knew the time
        faked.write_text("+5h\n")
        eventually(lambda: all(fired(home, name) for name in ("once", "skip", "all")), PATIENCE)
        for name, ran in (("once", 1), ("skip", 0), ("all", 5)):
            history = home.client.firings(name)
            assert {(one.missed, one.ran) for one in history} == {(5, ran)}
            assert len([one for one in history if one.job]) == ran
            assert "when the clock was set forward by" in (history[0].note or "")
        said = eventually(lambda: "Schedule all" in home.said() and home.said(), PATIENCE)
        assert "The clock was set forward by" in said
        assert "Traceback" not in said
        was_set = home.client.store.timetable.clock_set()
        assert was_set is not None
        assert abs(was_set[1] - 5 * HOUR) < MINUTE


def test_a_clock_that_is_set_back_under_a_running_service(tmp_path: Path, faked: Path) -> None:
    with ExitStack() as stack:
        home = Home(tmp_path, NO_WORKERS)
        stack.callback(home.close)
        faked.write_text("+30d\n")
        service_with_faked_time(home, faked)
        code = "import svcq; svcq.Client().schedule('s', 'true', every=1, overlap='queue')"
        ahead = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env={**home.environment, **faking(faked)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ahead.returncode == 0, ahead.stderr
        eventually(lambda: fired(home, "s") >= 2, PATIENCE)
        faked.write_text("+0\n")
        eventually(lambda: "counts from now again" in home.said(), PATIENCE)
        right = home.client.get_schedule("s")
        assert right.next_ms is not None
        assert right.next_ms - now_ms() < MINUTE
        before = right.firings
        eventually(lambda: fired(home, "s") >= before + 2, PATIENCE)


def test_the_service_stops_its_clock_cleanly(tmp_path: Path) -> None:
    with ExitStack() as stack:
        home = Home(tmp_path, NO_WORKERS)
        stack.callback(home.close)
        service = home.start("service")
        eventually(lambda: home.client.store.clocks().clocks == (service.pid,), PATIENCE)
        status = home.svcq("status", "--json")
        assert '"running": true' in status.stdout
        os.kill(service.pid, signal.SIGTERM)
        assert service.wait(PATIENCE) == 0
        assert "Traceback" not in home.said()
        assert not list(Path(home.client.store.timetable.bells).iterdir())
