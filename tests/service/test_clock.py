"""The clock on a store, with time that the test makes: a year, sleep, and clocks that are set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.config import load
from svcq.host.bell import listening
from svcq.schedules import Firing, How
from svcq.service.clock import Clock, Ticker
from svcq.service.rounds import LONGEST_WAIT, RETRY
from svcq.service.watch import Watch
from svcq.store import open_store
from svcq.times import DAY, HOUR, MINUTE, SECOND, now_ms
from tests import cron_oracle
from tests.helpers import eventually

BEGIN, END = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)


class Time:
    """The three clocks of a machine, moved by the test."""

    def __init__(self, wall: datetime = BEGIN) -> None:
        self.wall = round(wall.timestamp() * SECOND)
        self.awake = 1_000.0
        self.since_boot = 5_000.0

    def go_on(self, ms: int) -> None:
        self.wall += ms
        self.awake += ms / SECOND
        self.since_boot += ms / SECOND

    def sleep(self, ms: int) -> None:
        self.wall += ms
        self.since_boot += ms / SECOND

    def watch(self) -> Watch:
        return Watch(lambda: self.wall, lambda: self.awake, lambda: self.since_boot)


class Machine:
    """A store with a clock at work, and all that it has said."""

    def __init__(self, home: Path, time: Time) -> None:
        self.time = time
        self.said: list[str] = []
        self.client = Client(config=load(home, {}), clock=lambda: time.wall)
        self.store = self.client.store
        self.restart()

    def restart(self) -> None:
        self.ticker = Ticker(self.store, self.said.append, self.time.watch())

    def tick(self) -> float:
        """Let the clock work until it would sleep; for how long."""
        while not (wait := self.ticker.tick()):
            pass
        return wait

    def history(self, name: str) -> list[Firing]:
        return self.client.firings(name, 100_000)[::-1]


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def machine(tmp_path: Path, time: Time) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home", time)
    yield machine
    machine.client.close()


# A year, on a clock that jumps from one time to the next. The choices of svcq.cron that show here:
# several fixed times in one hour that is skipped are one firing, after it; `*/10 2 * * *` has a
# wildcard and follows the wall clock, so that it does not fire in a skipped hour, and fires twice
# as often in a repeated one (here on Sundays of the months in which clocks change).
EXPRESSIONS = {
    "daily": "30 2 * * *",
    "two-in-the-gap": "0,30 2 * * *",
    "wildcard": "*/10 2 * 3,4,10,11 0",
    "either-day": "0 2 1,15 * mon",
}


@pytest.mark.parametrize("zone", ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "UTC"])
def test_a_year_of_firings(machine: Machine, time: Time, zone: str) -> None:
    for name, cron in EXPRESSIONS.items():
        machine.client.schedule(name, "true", cron=cron, tz=zone, overlap="replace")
    minutes = cron_oracle.minutes_of(zone, BEGIN, END)
    end = round(END.timestamp() * SECOND)
    while (due := machine.store.timetable.next_due()) is not None and due < end:
        time.go_on(max(due - time.wall, 0))
        machine.tick()
    for name, cron in EXPRESSIONS.items():
        history = machine.history(name)
        assert {one.how for one in history} == {How.FIRED}
        assert [one.nominal for one in history] == [one.at for one in history]
        # The oracle fires at its first minute, which the schedule, said at that minute, does not.
        expected = [at for at in cron_oracle.firings(cron, minutes) if at > BEGIN]
        assert [one.nominal for one in history] == expected
    assert machine.said == []
    fired = sum(len(machine.history(name)) for name in EXPRESSIONS)
    counts = machine.client.counts()
    assert counts["pending"] == len(EXPRESSIONS)
    assert counts["cancelled"] == fired - len(EXPRESSIONS)


def test_a_preview_is_what_then_happens(machine: Machine, time: Time) -> None:
    words = {"cron": "30 2 * * *", "tz": "Europe/Paris"}
    before = machine.client.next_runs(n=4, after="2027-03-26T12:00Z", **words)
    assert [f"{one:%d %H:%M %z}" for one in before] == [
        "27 02:30 +0100", "28 03:00 +0200", "29 02:30 +0200", "30 02:30 +0200",
    ]  # fmt: skip
    time.wall = round(datetime(2027, 3, 26, 12, tzinfo=UTC).timestamp() * SECOND)
    machine.restart()
    machine.client.schedule("nightly", "true", overlap="replace", **words)
    assert machine.client.next_runs("nightly", 4) == before
    for _ in before:
        time.go_on((machine.store.timetable.next_due() or 0) - time.wall)
        machine.tick()
    assert [one.nominal for one in machine.history("nightly")] == before


# Looking


def test_it_waits_for_the_next_time_but_never_long(machine: Machine, time: Time) -> None:
    assert machine.tick() == pytest.approx(LONGEST_WAIT, abs=0.1)
    machine.client.schedule("s", "true", every="1h")
    assert machine.tick() == pytest.approx(LONGEST_WAIT, abs=0.1)
    time.go_on(HOUR - 300)
    assert machine.tick() == pytest.approx(0.3, abs=0.1)
    assert machine.history("s") == []
    time.go_on(300)
    machine.tick()
    assert len(machine.history("s")) == 1


def test_a_thousand_at_one_instant(machine: Machine, time: Time) -> None:
    at = time.wall / SECOND + 60
    for n in range(1000):
        machine.client.schedule(f"s{n}", "true", at=at)
    time.go_on(MINUTE)
    machine.tick()
    assert machine.client.counts()["pending"] == 1000
    assert machine.said == []


# 48 hours asleep


def asleep(machine: Machine, missed: str) -> list[Firing]:
    machine.client.schedule("s", "true", cron="0 */12 * * *", tz="UTC", missed=missed)
    machine.time.go_on(HOUR)
    machine.tick()
    machine.time.sleep(2 * DAY)
    machine.tick()
    return machine.history("s")


def test_asleep_once(machine: Machine) -> None:
    (fired,) = asleep(machine, "once")
    assert (fired.how, fired.missed, fired.ran) == (How.CAUGHT_UP, 4, 1)
    assert machine.said == [
        "The machine slept for 2d.",
        "Schedule s: missed 4 while the machine slept for 2d, ran 1.",
    ]
    assert machine.client.get_schedule("s").explain().endswith(
        "Last: missed 4 while the machine slept for 2d, ran 1."
    )  # fmt: skip
    assert machine.client.counts()["pending"] == 1


def test_asleep_skip(machine: Machine) -> None:
    (fired,) = asleep(machine, "skip")
    assert (fired.how, fired.missed, fired.job) == (How.MISSED, 4, None)
    assert machine.said[1:] == ["Schedule s: missed 4 while the machine slept for 2d, ran none."]
    assert sum(machine.client.counts().values()) == 0


def test_asleep_all(machine: Machine) -> None:
    fired = asleep(machine, "all")
    assert [one.nominal for one in fired] == [
        datetime(2027, 1, day, hour, tzinfo=UTC) for day, hour in [(1, 12), (2, 0), (2, 12), (3, 0)]
    ]
    assert machine.said[1:] == ["Schedule s: missed 4 while the machine slept for 2d, ran 4."]
    counts = machine.client.counts()
    assert (counts["pending"], counts["blocked"]) == (1, 3)


def test_many_that_were_missed_do_not_fill_the_log(machine: Machine, time: Time) -> None:
    for n in range(30):
        machine.client.schedule(f"s{n:02}", "true", every="1h")
    time.sleep(2 * DAY + MINUTE * 2)
    machine.tick()
    assert len(machine.said) == 12
    assert machine.said[-1] == "And 20 more schedules; their histories tell."


def test_a_short_nap_is_no_sleep(machine: Machine, time: Time) -> None:
    machine.client.schedule("s", "true", every="1h")
    time.sleep(1500)
    time.go_on(HOUR)
    machine.tick()
    assert [one.how for one in machine.history("s")] == [How.FIRED]
    assert machine.said == []


def test_nobody_ran(machine: Machine, time: Time) -> None:
    machine.client.schedule("s", "true", every="1h")
    time.go_on(5 * HOUR + 2 * MINUTE)
    machine.restart()
    machine.tick()
    assert machine.said == ["Schedule s: missed 5 while no clock was running, ran 1."]


def test_the_clock_itself_was_held_up(machine: Machine, time: Time) -> None:
    machine.client.schedule("s", "true", every="1h")
    machine.tick()
    time.go_on(HOUR + 2 * MINUTE)
    machine.tick()
    assert machine.said == ["Schedule s: missed 1 while the clock was held up, ran 1."]


# A clock that is set


def test_a_clock_that_is_set_forward(machine: Machine, time: Time) -> None:
    machine.client.schedule("s", "true", every="1h", missed="skip")
    machine.tick()
    time.wall += 5 * HOUR + 5 * MINUTE
    machine.tick()
    assert machine.said == [
        "The clock was set forward by 5h5m.",
        "Schedule s: missed 5 when the clock was set forward by 5h5m, ran none.",
    ]
    assert machine.store.timetable.clock_set() == (time.wall, 5 * HOUR + 5 * MINUTE)
    time.go_on(55 * MINUTE)
    machine.tick()
    assert machine.history("s")[-1].how is How.FIRED


def test_a_clock_that_is_set_back(machine: Machine, time: Time) -> None:
    machine.client.schedule("often", "true", every="10m", overlap="replace")
    machine.client.schedule("daily", "true", cron="0 1 * * *", tz="UTC", overlap="replace")
    for _ in range(12):
        time.go_on(10 * MINUTE)
        machine.tick()
    assert len(machine.history("daily")) == 1
    time.wall -= 90 * MINUTE  # to half past twelve
    machine.tick()
    assert machine.said == [
        "The clock was set back by 1h30m.",
        "Schedule often counts from now again: the clock had been ahead.",
    ]
    for _ in range(6):
        time.go_on(10 * MINUTE)
        machine.tick()
    assert len(machine.history("daily")) == 1  # it has had its firing of this day
    assert len(machine.history("often")) == 18
    time.go_on(DAY)
    machine.tick()
    assert len(machine.history("daily")) == 2


def test_a_clock_that_was_corrected_while_nobody_looked(machine: Machine, time: Time) -> None:
    right = time.wall
    time.wall += 400 * DAY
    machine.restart()
    machine.client.schedule("daily", "true", cron="0 1 * * *", tz="UTC")
    time.wall = right
    machine.restart()
    machine.tick()
    assert machine.said == ["Schedule daily counts from now again: the clock had been ahead."]
    assert machine.client.get_schedule("daily").next_at == datetime(2027, 1, 1, 1, tzinfo=UTC)


def test_sleep_and_a_correction_at_once(machine: Machine, time: Time) -> None:
    machine.client.schedule("s", "true", every="1h", missed="skip")
    machine.tick()
    time.sleep(DAY)
    time.wall += 2 * HOUR
    machine.tick()
    assert machine.history("s")[0].note == (
        "while the machine slept for 1d and when the clock was set forward by 2h"
    )


# Trouble


def test_a_store_that_is_busy_is_told_of_once_and_nothing_is_lost(
    tmp_path: Path, time: Time
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").touch(mode=0o600)
    (home / "config.toml").write_text('busy_wait = "50ms"')
    machine = Machine(home, time)
    machine.client.schedule("s", "true", every="1h", missed="skip")
    machine.tick()
    time.go_on(HOUR)
    with closing(open_store(load(home, {}))) as other, other.engine.write(durable=False):
        assert machine.tick() == pytest.approx(RETRY, abs=0.2)
        machine.tick()
        assert len(machine.said) == 1
        assert machine.said[0].startswith("The clock could not look at the schedules: The store")
    time.go_on(5 * MINUTE)
    machine.tick()
    assert machine.said[1:] == ["Schedule s: missed 1 while the store could not be used, ran none."]
    machine.client.close()


# The thread


def test_a_clock_of_its_own(tmp_path: Path) -> None:
    config = load(tmp_path / "home", {})
    said: list[str] = []
    with Client(config=config) as client:
        with Clock(config, said.append):
            (pid,) = eventually(lambda: client.store.clocks().clocks)
            assert client.store.clocks().as_json()["running"]
            late = []
            for n in range(3):
                at = datetime.now(UTC).timestamp() + 0.3
                client.schedule(f"soon{n}", "true", at=at)  # it hears of that at once
                (fired,) = eventually(lambda n=n: client.firings(f"soon{n}"), 30)  # type: ignore[misc]
                assert fired.how is How.FIRED
                late.append(fired.at_ms - (fired.nominal_ms or 0))
            assert min(late) < 900  # a busy machine may be late for some
        assert client.store.clocks().clocks == ()
        client.schedule("later", "true", at=datetime.now(UTC).timestamp() + 0.2)
        eventually(client.store.timetable.due)
        assert client.firings("later") == []
    assert said == []
    assert pid


def test_a_clock_whose_store_cannot_be_opened_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svcq.service.clock.RETRY", 0.05)
    config = load(tmp_path / "home", {})
    Client(config=config).close()
    store, aside = Path(config.store), tmp_path / "aside"
    store.rename(aside)
    store.write_bytes(b"x" * 4096)
    store.chmod(0o600)
    said: list[str] = []
    with Clock(config, said.append):
        eventually(lambda: said)
        store.unlink()
        aside.rename(store)
        with Client(config=config) as client:
            eventually(lambda: client.store.clocks().clocks)
    assert len(said) == 1
    assert "is not a svcq store" in said[0]


def test_settings_reach_a_clock_that_runs(tmp_path: Path) -> None:
    config = load(tmp_path / "home", {})
    past = now_ms() - 10 * HOUR
    with Client(config=config) as client, Clock(config, lambda _: None):
        bells = client.store.timetable.bells
        before = eventually(lambda: listening(bells))
        file = config.home / "config.toml"
        file.touch(mode=0o600)
        file.write_text("[clock]\ncatch_up = 2\n")
        eventually(lambda: listening(bells) not in ([], before))
        with Client(config=config, clock=lambda: past) as earlier:
            earlier.schedule("s", "true", every="3h", missed="all")
        fired = eventually(lambda: client.firings("s"))
        assert [(one.missed, one.ran) for one in fired] == [(3, 2), (3, 2)]
        file.write_text("[clock]\ncatch_up = 0\n")  # a mistake: what was read before holds
        client.schedule("t", "true", at=now_ms() / SECOND + 1.5)
        eventually(lambda: client.firings("t"))
