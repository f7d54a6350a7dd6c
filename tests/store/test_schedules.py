"""Schedules in the store: what they say, when they are due, and what a firing does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from svcq.config import Config
from svcq.definitions import Definer
from svcq.errors import InvalidInput, NotFound, Refused, StoreError, WrongState
from svcq.jobs import State, failed
from svcq.policy import Options
from svcq.schedules import Firing, How, Schedule
from svcq.store import Store
from svcq.store.timetable import BATCH
from svcq.times import DAY, HOUR, MINUTE, SECOND
from tests.store.conftest import Clock, Desk
from tests.store.tables import write

SLEPT = "while the machine slept"


class Wall:
    """A store's schedules, on a clock that the test moves."""

    def __init__(self, desk: Desk, config: Config) -> None:
        self.desk = desk
        self.store = desk.store
        self.table = desk.store.timetable
        self.clock = desk.clock
        self._definer = Definer(config, "someone")

    def add(self, name: str = "s", /, *, replace: bool = False, **words: Any) -> Schedule:
        return self.table.add(self.definition(name, **words), replace=replace)

    def definition(self, name: str, /, **words: Any) -> Any:
        times = {"cron", "every", "at", "tz", "start", "end", "jitter", "missed", "overlap"}
        said = Options(**{key: words[key] for key in words.keys() - times})
        template = self._definer.template("true", None, (), {}, said)
        own = {"tz": "UTC", **{key: words[key] for key in words.keys() & times}}
        return self._definer.define(name, own, template)

    def fire(self, why: str = SLEPT) -> list[Firing]:
        """What a clock does, until nothing is due."""
        fired = []
        while due := self.table.due():
            fired += self.table.fire(due, why)
        return fired

    def pass_time(self, ms: int) -> list[Firing]:
        self.clock.now += ms
        return self.fire()

    def jobs(self) -> list[int]:
        return sorted(self.store.known(range(1, 1000)))


@pytest.fixture
def wall(desk: Desk, config: Config) -> Wall:
    return Wall(desk, config)


# What they say


def test_a_schedule_is_as_it_was_said(wall: Wall) -> None:
    wall.add("nightly", cron="0 3 * * *", tz="Europe/Paris", timeout="5m", tags=["a"], jitter="2m",
             missed="skip", overlap="replace", start=wall.clock.now / 1000)  # fmt: skip
    said = wall.table.get("nightly")
    assert (said.cron, said.zone, said.missed, said.overlap) == (
        "0 3 * * *", "Europe/Paris", "skip", "replace",
    )  # fmt: skip
    assert (said.jitter_ms, said.start_ms) == (2 * MINUTE, wall.clock.now)
    assert said.options["timeout"] == "5m"
    assert said.command == "true"
    assert said.next_ms is not None
    assert said.due_ms is not None
    assert 0 <= said.due_ms - said.next_ms <= 2 * MINUTE
    assert said.explain() == "It fires next for 2027-01-16T02:00:00.000Z. It has not fired yet."


def test_a_name_is_taken_once(wall: Wall) -> None:
    wall.add(every="5m")
    with pytest.raises(Refused, match="There is a schedule 's' already: edit or remove that"):
        wall.add(every="6m")
    assert wall.table.get("s").every_ms == 5 * MINUTE


def test_saying_it_anew_keeps_what_it_leaves_alone(wall: Wall) -> None:
    before = wall.add(every="5m")
    wall.clock.advance(60)
    assert wall.add(every="5m", priority=3, replace=True).next_ms == before.next_ms
    assert wall.add(every="7m", replace=True).next_ms == wall.clock.now + 7 * MINUTE


@pytest.mark.parametrize("verb", ["get", "remove", "pause", "hand", "fire_now", "environment"])
def test_an_unknown_schedule_is_named(wall: Wall, verb: str) -> None:
    told = wall.desk.told()
    with pytest.raises(NotFound, match="There is no schedule 'none': svcq schedule list"):
        getattr(wall.table, verb)("none")
    assert wall.desk.told() == told


def test_a_removed_schedule_leaves_its_jobs(wall: Wall) -> None:
    wall.add(every="5m")
    (fired,) = wall.pass_time(5 * MINUTE)
    wall.table.remove("s")
    assert wall.pass_time(HOUR) == []
    assert fired.job is not None
    assert wall.desk.state(fired.job) is State.PENDING
    assert wall.table.firing_of(fired.job) is None
    wall.add(every="5m")
    assert wall.table.firings("s", 10, None) == []


def test_its_environment_is_nowhere_but_in_its_jobs(wall: Wall) -> None:
    schedule = wall.add(every="5m", env={"TOKEN": "s3cret"})
    (fired,) = wall.pass_time(5 * MINUTE)
    assert "s3cret" not in str(schedule) + str(schedule.as_json()) + str(fired)
    assert wall.table.environment("s") == {"TOKEN": "s3cret"}
    assert wall.store.environment_of(fired.job or 0) == {"TOKEN": "s3cret"}


def test_listing_goes_by_name_page_by_page(wall: Wall) -> None:
    for name in ("b", "a", "d", "c"):
        wall.add(name, every="5m")
    wall.table.pause("c")
    wall.table.hand("b", "systemd")

    def names(**wanted: Any) -> list[str]:
        filters = {"after": "", "limit": 10, "paused": None, "task": None, "fired_by": None}
        return [one.name for one in wall.table.list(**{**filters, **wanted})]

    assert names() == ["a", "b", "c", "d"]
    assert names(after="b", limit=1) == ["c"]
    assert names(paused=True) == ["c"]
    assert names(paused=False, fired_by="svcq") == ["a", "d"]
    assert names(fired_by="systemd") == ["b"]
    assert names(task="none") == []


# Firing


def test_it_fires_at_its_time_and_not_before(wall: Wall) -> None:
    first = wall.add(every="5m").next_ms
    assert wall.pass_time(5 * MINUTE - 1) == []
    (fired,) = wall.pass_time(1)
    assert (fired.how, fired.nominal_ms, fired.missed, fired.note) == (How.FIRED, first, 0, None)
    assert fired.says == f"queued job {fired.job}"
    job = wall.desk.get(fired.job or 0)
    assert (job.command, job.owner, job.state) == ("true", "someone", State.PENDING)
    schedule = wall.table.get("s")
    assert (schedule.last_ms, schedule.last_job) == (first, fired.job)
    assert schedule.next_ms == wall.clock.now + 5 * MINUTE
    assert wall.table.firing_of(job.id) == fired


def test_an_interval_counts_from_its_start(wall: Wall) -> None:
    start = wall.clock.now + 7 * MINUTE
    wall.add("to-come", every="5m", start=start / 1000)
    wall.add("long-ago", every="1h", start=(wall.clock.now - 90 * MINUTE) / 1000)
    assert wall.table.get("to-come").next_ms == start
    assert wall.table.get("long-ago").next_ms == wall.clock.now + 30 * MINUTE


def test_one_moment_is_one_firing(wall: Wall) -> None:
    at = wall.clock.now + MINUTE
    wall.add(at=at / 1000)
    (fired,) = wall.pass_time(MINUTE)
    assert fired.nominal_ms == at
    assert wall.pass_time(DAY) == []
    schedule = wall.table.get("s")
    assert schedule.over
    assert schedule.explain().startswith("It is over: none of its times is to come. Last: queued")


def test_nothing_fires_after_its_end(wall: Wall) -> None:
    wall.add(every="5m", end=(wall.clock.now + 10 * MINUTE) / 1000, overlap="queue")
    fired = [one for _ in range(4) for one in wall.pass_time(5 * MINUTE)]
    assert len(fired) == 2
    assert wall.table.get("s").over


def test_jitter_holds_a_firing_back_but_not_the_time_it_is_for(wall: Wall) -> None:
    begun = wall.clock.now
    for n in range(40):
        wall.add(f"s{n}", every="10m", jitter="5m")
    assert wall.pass_time(10 * MINUTE - 1) == []
    fired = {}
    for _ in range(301):
        for one in wall.fire():
            fired[one.schedule] = one
        wall.clock.advance(1)
    assert len(fired) == 40
    assert {one.nominal_ms for one in fired.values()} == {begun + 10 * MINUTE}
    assert {one.how for one in fired.values()} == {How.FIRED}  # held back is not late
    assert len({one.at_ms for one in fired.values()}) > 20
    assert {one.next_ms for one in map(wall.table.get, fired)} == {begun + 20 * MINUTE}


def test_a_job_that_cannot_be_queued_holds_nobody_up(wall: Wall) -> None:
    wall.desk.add(name="taken")
    for n in range(3):
        wall.add(f"good{n}", every="5m")
    wall.add("bad", every="5m", name="taken")
    fired = wall.pass_time(5 * MINUTE)
    assert sorted((one.schedule, one.how) for one in fired) == [
        ("bad", How.FAILED), ("good0", How.FIRED), ("good1", How.FIRED), ("good2", How.FIRED),
    ]  # fmt: skip
    said = wall.table.get("bad").explain()
    assert "Last: nothing could be queued: The name 'taken' belongs to job 1" in said
    assert not said.endswith("..")
    assert wall.table.failing() == wall.table.get("bad")
    assert len(wall.jobs()) == 4
    assert len(wall.pass_time(5 * MINUTE)) == 4  # it tries again at its next time


def test_a_schedule_whose_times_cannot_be_told_is_paused(wall: Wall) -> None:
    wall.add("sound", every="5m")
    wall.add("lost", every="5m")
    write(  # as if its zone had gone with an upgrade
        wall.store,
        "UPDATE schedules SET cron = '* * * * *', zone = 'Mars/Base', every_ms = NULL "
        "WHERE name = 'lost'",
    )
    assert {one.schedule: one.how for one in wall.pass_time(5 * MINUTE)} == {
        "sound": How.FIRED, "lost": How.FAILED,
    }  # fmt: skip
    assert wall.table.get("lost").paused
    assert "There is no time zone 'Mars/Base'" in wall.table.get("lost").explain()
    assert len(wall.pass_time(5 * MINUTE)) == 1


def test_a_schedule_that_changed_after_the_look_is_not_fired(wall: Wall) -> None:
    wall.add("edited", every="5m")
    wall.add("removed", every="5m")
    wall.add("paused", every="5m")
    wall.clock.advance(300)
    due = wall.table.due()
    assert len(due) == 3
    wall.add("edited", every="7m", replace=True)
    wall.table.remove("removed")
    wall.table.pause("paused")
    assert wall.table.fire(due) == []
    assert wall.jobs() == []


def test_two_clocks_do_not_fire_for_the_same_time(
    wall: Wall, open_again: Callable[[], Store]
) -> None:
    wall.add(every="5m")
    other = open_again().timetable
    wall.clock.advance(300)
    mine, theirs = wall.table.due(), other.due()
    assert len(wall.table.fire(mine)) == 1
    assert other.fire(theirs) == []
    assert len(wall.jobs()) == 1


def test_the_store_itself_refuses_a_time_twice(wall: Wall) -> None:
    wall.add(every="5m")
    (fired,) = wall.pass_time(5 * MINUTE)
    row = fired._replace(number=2)
    with pytest.raises(StoreError), wall.store.engine.write(durable=True) as tx:
        tx.many("add_firings", [row])


def test_a_firing_is_all_or_nothing(wall: Wall) -> None:
    wall.add(every="5m")
    wall.clock.advance(300)
    due = wall.table.due()
    write(wall.store, "ALTER TABLE firings RENAME TO away")
    with pytest.raises(StoreError):
        wall.table.fire(due)
    write(wall.store, "ALTER TABLE away RENAME TO firings")
    assert wall.jobs() == []
    assert len(wall.fire()) == 1


def test_many_that_are_due_go_in_small_transactions(wall: Wall) -> None:
    for n in range(2 * BATCH + 1):
        wall.add(f"s{n}", every="5m")
    wall.clock.advance(300)
    assert len(wall.table.due()) == BATCH
    assert len(wall.fire()) == 2 * BATCH + 1
    assert len(wall.jobs()) == 2 * BATCH + 1


def test_what_has_conditions_keys_and_tags_fires_with_them(wall: Wall) -> None:
    wall.add(every="5m", when="idle>10m", concurrency_key="gpu", tags=["x"], priority=7, delay="1h",
             queue="video", unique_key="u")  # fmt: skip
    (fired,) = wall.pass_time(5 * MINUTE)
    job = wall.desk.get(fired.job or 0)
    assert (job.condition, job.concurrency_key, job.tags, job.priority, job.queue) == (
        "idle>10m", "gpu", ("x",), 7, "video",
    )  # fmt: skip
    assert job.state is State.SCHEDULED


def test_a_unique_key_that_is_taken_leaves_a_time_out(wall: Wall) -> None:
    wall.desk.add(unique_key="u")
    wall.add(every="5m", unique_key="u")
    (fired,) = wall.pass_time(5 * MINUTE)
    assert (fired.how, fired.job, fired.note) == (How.SKIPPED, None, "job 1 has its unique key")


# Overlaps


def test_skip_leaves_a_time_out_while_the_job_before_is_there(wall: Wall) -> None:
    wall.add(every="5m", overlap="skip")
    (first,) = wall.pass_time(5 * MINUTE)
    (second,) = wall.pass_time(5 * MINUTE)
    assert (second.how, second.job) == (How.SKIPPED, None)
    assert second.says == f"skipped, its job {first.job} is still pending"
    (claim,) = wall.desk.claim()
    (third,) = wall.pass_time(5 * MINUTE)
    assert third.note == f"its job {first.job} is still processing"
    wall.desk.end(claim)
    (fourth,) = wall.pass_time(5 * MINUTE)
    assert fourth.how is How.FIRED


def test_skip_sees_a_job_that_runs_behind_one_that_was_cancelled(wall: Wall) -> None:
    wall.add(every="5m", overlap="queue")
    (first,) = wall.pass_time(5 * MINUTE)
    wall.desk.claim()
    (second,) = wall.pass_time(5 * MINUTE)
    wall.store.cancel(second.job or 0)
    wall.add(every="5m", overlap="skip", replace=True)
    (third,) = wall.pass_time(5 * MINUTE)
    assert third.note == f"its job {first.job} is still processing"


def test_queue_lets_the_new_job_wait_for_the_one_before(wall: Wall) -> None:
    wall.add(every="5m", overlap="queue", max_attempts=1)
    jobs = [wall.pass_time(5 * MINUTE)[0].job or 0 for _ in range(3)]
    assert [wall.desk.state(job) for job in jobs] == ["pending", "blocked", "blocked"]
    assert wall.desk.run(failed("boom")) == jobs[0]  # however it ends
    assert [wall.desk.state(job) for job in jobs] == ["dead", "pending", "blocked"]


def test_replace_ends_the_one_before_first(wall: Wall) -> None:
    wall.add(every="5m", overlap="replace")
    (first,) = wall.pass_time(5 * MINUTE)
    (second,) = wall.pass_time(5 * MINUTE)
    replaced = wall.desk.get(first.job or 0)
    assert (replaced.state, replaced.reason) == (
        State.CANCELLED, "replaced by a newer job of schedule s",
    )  # fmt: skip
    (claim,) = wall.desk.claim()
    assert claim.id == second.job
    (third,) = wall.pass_time(5 * MINUTE)
    assert wall.store.orders(wall.desk.worker).cancel
    assert wall.desk.state(third.job or 0) is State.BLOCKED  # until the old one's tree is dead
    wall.desk.end(claim, failed("stopped"))
    assert wall.desk.state(claim.id) is State.CANCELLED
    assert wall.desk.state(third.job or 0) is State.PENDING


# Beside its times


def test_it_can_be_fired_beside_its_times(wall: Wall) -> None:
    before = wall.add(every="5m")
    fired = wall.table.fire_now("s")
    assert (fired.how, fired.nominal_ms, fired.number) == (How.ASKED, None, 1)
    after = wall.table.get("s")
    assert (after.next_ms, after.last_ms, after.last_job) == (before.next_ms, None, fired.job)
    assert wall.table.fire_now("s").how is How.SKIPPED
    (third,) = wall.pass_time(5 * MINUTE)
    assert (third.how, third.note) == (How.SKIPPED, f"its job {fired.job} is still pending")
    assert [one.number for one in wall.table.firings("s", 10, None)] == [3, 2, 1]


def test_a_paused_one_can_be_fired_too(wall: Wall) -> None:
    wall.add(every="5m")
    wall.table.pause("s")
    assert wall.table.fire_now("s").job is not None
    assert wall.table.get("s").paused


# Paused, handed off


def test_times_that_pass_in_a_pause_are_not_missed(wall: Wall) -> None:
    wall.add(every="5m")
    paused = wall.table.pause("s")
    assert (paused.next_ms, paused.due_ms, paused.over) == (None, None, False)
    assert paused.explain().startswith("It is paused: svcq schedule resume s")
    assert wall.pass_time(HOUR) == []
    assert wall.table.pause("s", paused=False).next_ms == wall.clock.now + 5 * MINUTE
    assert [one.missed for one in wall.pass_time(5 * MINUTE)] == [0]


def test_a_moment_that_passed_in_a_pause_cannot_be_resumed(wall: Wall) -> None:
    wall.add(at=(wall.clock.now + MINUTE) / 1000)
    wall.table.pause("s")
    wall.clock.advance(120)
    with pytest.raises(WrongState, match="'s' is over, none of its times is to come: edit it"):
        wall.table.pause("s", paused=False)


def test_pausing_twice_is_pausing(wall: Wall) -> None:
    wall.add(every="5m")
    assert wall.table.pause("s") == wall.table.pause("s")
    again = wall.table.pause("s", paused=False)
    assert again == wall.table.pause("s", paused=False)


def test_another_scheduler_fires_what_was_handed_to_it(wall: Wall) -> None:
    wall.add(every="5m")
    handed = wall.table.hand("s", "systemd")
    assert (handed.fired_by, handed.due_ms) == ("systemd", None)
    assert wall.pass_time(HOUR) == []
    assert wall.table.get("s").next_ms == wall.clock.now + 5 * MINUTE  # still known
    assert "fired by systemd" in wall.table.get("s").explain()
    # What nobody has fired is ours to make up for.
    assert wall.table.hand("s").due_ms == wall.clock.now - 55 * MINUTE
    (fired,) = wall.fire()
    assert (fired.how, fired.missed, fired.ran) == (How.CAUGHT_UP, 11, 1)
    assert wall.table.get("s").due_ms == wall.clock.now + 5 * MINUTE


def test_a_time_that_passes_while_it_is_handed_over_is_not_lost(wall: Wall) -> None:
    wall.add(at=(wall.clock.now + MINUTE) / SECOND)
    wall.clock.now += MINUTE
    wall.table.hand("s", "systemd")
    assert [one.how for one in wall.table.fire_if_due("s")] == [How.FIRED]
    assert wall.table.fire_if_due("s") == []


def test_an_edit_leaves_a_pause_and_a_hand_off_alone(wall: Wall) -> None:
    wall.add("paused", every="5m")
    wall.table.pause("paused")
    wall.add("handed", every="5m")
    wall.table.hand("handed", "systemd")
    for name in ("paused", "handed"):
        changed = wall.add(name, every="7m", replace=True)
        assert changed.due_ms is None
    assert wall.table.get("paused").paused
    assert wall.pass_time(HOUR) == []


# Missed times: 48 hours asleep


@pytest.mark.parametrize("every", ["1m", "1h", "6h", "2d"])
def test_once_makes_up_for_all_with_one(wall: Wall, every: str) -> None:
    schedule = wall.add(every=every, missed="once")
    (fired,) = wall.pass_time(2 * DAY + 2 * MINUTE)
    times = (2 * DAY + 2 * MINUTE) // (schedule.every_ms or 1)
    late = wall.clock.now - (fired.nominal_ms or 0) > MINUTE
    assert (fired.how, fired.ran) == (How.CAUGHT_UP, 1)
    assert fired.missed == times - (not late)
    assert fired.says == f"missed {fired.missed:,} while the machine slept, ran 1"
    assert wall.jobs() == [fired.job]
    assert wall.table.get("s").explain().endswith(f"Last: {fired.says}.")


def test_skip_leaves_them_out(wall: Wall) -> None:
    schedule = wall.add(every="1h", missed="skip", start=(wall.clock.now + 5 * MINUTE) / 1000)
    (fired,) = wall.pass_time(2 * DAY)
    assert (fired.how, fired.job, fired.missed, fired.ran) == (How.MISSED, None, 48, 0)
    assert fired.says == "missed 48 while the machine slept, ran none"
    assert wall.jobs() == []
    assert schedule.next_ms is not None
    assert wall.table.get("s").next_ms == schedule.next_ms + 48 * HOUR


def test_skip_fires_for_a_time_that_has_just_come(wall: Wall) -> None:
    wall.add(every="1h", missed="skip")
    missed, fired = wall.pass_time(2 * DAY)
    assert (missed.how, missed.missed) == (How.MISSED, 47)
    assert (fired.how, fired.nominal_ms) == (How.FIRED, wall.clock.now)


def test_all_queues_one_for_each_in_order(wall: Wall) -> None:
    schedule = wall.add(every="6h", missed="all", start=(wall.clock.now + HOUR) / 1000)
    assert schedule.overlap == "queue"
    fired = wall.pass_time(2 * DAY)
    assert [one.how for one in fired] == [How.CAUGHT_UP] * 8
    assert {(one.missed, one.ran) for one in fired} == {(8, 8)}
    assert [one.nominal_ms for one in fired] == [
        (schedule.next_ms or 0) + n * 6 * HOUR for n in range(8)
    ]
    for one in fired:  # one after the other
        assert wall.desk.claimed(10) == [one.job]
        (claim,) = [wall.store.runs_of(wall.desk.worker)]
        wall.store.cancel(claim[0][0])
        wall.store.rescue(wall.desk.worker, failed("gone"))
        wall.desk.worker = Desk(wall.store, wall.clock).worker


def test_all_is_capped_and_keeps_the_last(wall: Wall) -> None:
    wall.add(every="1m", missed="all")
    wall.clock.advance(30)
    fired = wall.pass_time(2 * DAY)
    *caught_up, last = fired
    assert last.how is How.FIRED
    assert len(caught_up) == 100
    assert {(one.missed, one.ran) for one in caught_up} == {(2879, 100)}
    nominal = [one.nominal_ms or 0 for one in fired]
    assert nominal == list(range(nominal[0], nominal[-1] + 1, MINUTE))


@pytest.mark.parametrize("times", [{"every": "1m"}, {"cron": "* * * * *"}])
def test_years_of_a_schedule_that_fires_every_minute(wall: Wall, times: dict[str, str]) -> None:
    wall.add(**times, missed="all")
    fired = wall.pass_time(800 * DAY)
    nominal = [one.nominal_ms or 0 for one in fired]
    assert nominal == list(range(nominal[0], nominal[-1] + 1, MINUTE))
    assert 0 <= wall.clock.now - nominal[-1] < MINUTE
    assert fired[0].says.startswith("missed 10,000 or more while the machine slept, ran 100")


def test_a_little_late_is_not_missed(wall: Wall) -> None:
    wall.add(every="1h", missed="skip")
    (fired,) = wall.pass_time(HOUR + MINUTE)
    assert fired.how is How.FIRED
    (late,) = wall.pass_time(HOUR + 1)
    assert late.how is How.MISSED


@pytest.mark.parametrize(("missed", "how"), [("once", How.CAUGHT_UP), ("skip", How.MISSED)])
def test_a_moment_that_was_slept_through(wall: Wall, missed: str, how: How) -> None:
    wall.add(at=(wall.clock.now + HOUR) / 1000, missed=missed)
    (fired,) = wall.pass_time(2 * DAY)
    assert (fired.how, fired.missed) == (how, 1)
    assert wall.table.get("s").over


def test_what_fires_again_soon_is_not_held_up_by_what_it_missed(wall: Wall) -> None:
    wall.add(every="1h", missed="all")
    wall.pass_time(2 * DAY)
    before = wall.clock.now
    (next_one,) = wall.pass_time(HOUR)
    assert (next_one.how, next_one.nominal_ms) == (How.FIRED, before + HOUR)


# A clock that is set back


def test_a_fixed_time_is_not_repeated_within_three_hours(wall: Wall) -> None:
    wall.clock.now = 1_800_010_800_000 - MINUTE  # a minute before 11:00
    wall.add(cron="0 11 * * *", overlap="queue")
    assert len(wall.pass_time(2 * MINUTE)) == 1
    wall.clock.now -= 2 * HOUR
    assert wall.table.set_back() == []
    assert wall.pass_time(3 * HOUR) == []


def test_a_fixed_time_that_has_been_has_no_second_job_after_an_edit(wall: Wall) -> None:
    wall.clock.now = 1_800_010_800_000 - MINUTE
    wall.add(cron="0 11 * * *", overlap="queue")
    assert len(wall.pass_time(2 * MINUTE)) == 1
    wall.clock.now -= 2 * HOUR
    wall.table.pause("s")
    wall.table.pause("s", paused=False)  # works its next time out anew
    assert wall.pass_time(2 * HOUR) == []
    assert len(wall.pass_time(DAY)) == 1


@pytest.mark.parametrize("times", [{"every": "10m"}, {"cron": "*/10 * * * *"}])
def test_what_follows_the_clock_goes_on_at_once(wall: Wall, times: dict[str, str]) -> None:
    wall.add(**times, overlap="queue")
    for _ in range(6):
        assert len(wall.pass_time(10 * MINUTE)) == 1
    wall.clock.now -= HOUR
    assert [one.name for one in wall.table.set_back()] == ["s"]
    assert len(wall.pass_time(10 * MINUTE)) == 1
    assert len(wall.jobs()) == 7
    voided = [one for one in wall.table.firings("s", 10, None) if one.nominal_ms is None]
    assert {one.note for one in voided} == {"by a clock that was ahead"}


def test_a_clock_that_was_a_year_ahead_does_not_silence_a_schedule(wall: Wall) -> None:
    right = wall.clock.now
    wall.clock.now += 365 * DAY
    wall.add("fixed", cron="0 11 * * *")
    wall.add("interval", every="1h")
    wall.pass_time(DAY)
    wall.clock.now = right
    assert [one.name for one in wall.table.set_back()] == ["fixed", "interval"]
    assert wall.table.get("interval").next_ms == right + HOUR
    next_ms = wall.table.get("fixed").next_ms
    assert next_ms is not None
    assert right < next_ms <= right + DAY
    assert wall.table.set_back() == []


def test_a_moment_does_not_come_twice(wall: Wall) -> None:
    wall.add(at=(wall.clock.now + DAY) / 1000)
    assert len(wall.pass_time(2 * DAY)) == 1
    wall.clock.now -= 2 * DAY
    assert wall.table.set_back() == []
    assert wall.pass_time(2 * DAY) == []


# Looking, and letting go


def test_what_comes_next(wall: Wall) -> None:
    assert wall.store.clocks().as_json() == {
        "running": False, "pids": [], "schedules": 0, "active": 0, "paused": 0, "next": None,
        "next_at": None, "elsewhere": [],
    }  # fmt: skip
    wall.add("later", every="1h")
    wall.add("soon", every="5m")
    wall.add("paused", every="1m")
    wall.table.pause("paused")
    stands = wall.store.clocks()
    assert (stands.schedules, stands.active, stands.paused) == (3, 2, 1)
    assert (stands.next_name, stands.next_due) == ("soon", wall.clock.now + 5 * MINUTE)
    assert wall.table.next_due() == stands.next_due


def test_history_goes_page_by_page(wall: Wall) -> None:
    wall.add("a", every="5m", overlap="queue")
    wall.add("b", every="5m", overlap="queue")
    for _ in range(5):
        wall.pass_time(5 * MINUTE)
    pages = wall.table.firings("a", 2, None), wall.table.firings("a", 2, 4)
    assert [[one.number for one in page] for page in pages] == [[5, 4], [3, 2]]
    assert len(wall.table.firings(None, 100, None)) == 10
    with pytest.raises(NotFound, match="There is no schedule 'none'"):
        wall.table.firings("none", 1, None)


def test_a_change_is_told_to_followers(wall: Wall) -> None:
    def told(verb: Callable[[], object]) -> list[tuple[int, str]]:
        cursor = wall.store.last_change()
        verb()
        return [(one.job, one.kind) for one in wall.store.changes(cursor)]

    assert told(lambda: wall.add(every="5m")) == [(0, "schedules")]
    assert told(lambda: wall.table.pause("s")) == [(0, "schedules")]
    assert told(lambda: wall.table.pause("s", paused=False)) == [(0, "schedules")]
    assert told(lambda: wall.pass_time(5 * MINUTE)) == [(1, "pending"), (0, "schedules")]
    assert told(lambda: wall.table.remove("s")) == [(0, "schedules")]


def test_the_history_is_bounded_by_age_and_number(wall: Wall, config: Config) -> None:
    wall.add("old", every="1h", overlap="queue")
    wall.pass_time(HOUR)
    wall.pass_time(HOUR)
    wall.table.pause("old")
    wall.clock.now += config.retention.firings
    wall.add("often", every="1s", missed="all")
    for _ in range(12):
        wall.pass_time(100 * SECOND)
    wall.store.cleanup()
    assert [one.number for one in wall.table.firings("old", 10, None)] == [2]  # the last one tells
    numbers = [one.number for one in wall.table.firings("often", 10_000, None)]
    assert len(numbers) == 1000
    assert numbers[0] == wall.table.get("often").firings


def test_times_are_refused_that_never_come(wall: Wall, clock: Clock) -> None:
    for words, why in [
        ({"at": clock.now / 1000 - 1}, r"The time 2027-01-15T07:59:59.000Z is past"),
        ({"at": clock.now / 1000}, r"is past: give one to come"),
        ({"every": 60, "end": clock.now / 1000 - 1}, r"its end .* is past; give a later one"),
        (
            {"every": 60, "start": clock.now / 1000 + 99, "end": clock.now / 1000 + 9},
            "after its end",
        ),
        (
            {"cron": "0 0 1 1 *", "end": clock.now / 1000 + 99},
            r"none of its times lies between now",
        ),
        ({"every": 60, "end": clock.now / 1000 + 59}, r"none of its times lies between now"),
        ({"every": 60, "jitter": 60}, r"The jitter 1m is as long as the time between two firings"),
        ({"cron": "*/5 * * * *", "jitter": "5m"}, r"is as long as .* \(5m\): give a shorter one"),
        ({"cron": "0,10 3 * * *", "jitter": "1h"}, r"is as long as .* \(10m\): give a shorter one"),
    ]:
        with pytest.raises(InvalidInput, match=why):
            wall.add(**words)
    assert wall.store.clocks().schedules == 0


# Another scheduler


def test_what_another_scheduler_fires_is_never_due_for_ours(wall: Wall) -> None:
    wall.add(every="1h")
    wall.table.hand("s", "systemd")
    assert wall.pass_time(90 * MINUTE) == []
    (fired,) = wall.table.fire_if_due("s")
    assert (fired.how, fired.missed, fired.ran) == (How.CAUGHT_UP, 1, 1)
    assert fired.note == "while systemd did not come by"
    assert wall.pass_time(HOUR) == []


def test_it_fires_for_each_time_once(wall: Wall) -> None:
    wall.add(every="1h")
    wall.table.hand("s", "systemd")
    assert wall.table.fire_if_due("s") == []
    wall.clock.now += HOUR
    (fired,) = wall.table.fire_if_due("s")
    assert (fired.how, fired.nominal_ms) == (How.FIRED, wall.clock.now)
    assert wall.table.fire_if_due("s") == []
    wall.table.hand("s")
    assert [one.how for one in wall.pass_time(HOUR)] == [How.SKIPPED]  # its job is still there


def test_its_jitter_is_not_late(wall: Wall) -> None:
    wall.add(every="6h", jitter="1h", missed="skip")
    wall.table.hand("s", "systemd")
    wall.clock.now += 6 * HOUR + 50 * MINUTE
    assert [one.how for one in wall.table.fire_if_due("s")] == [How.FIRED]
    wall.clock.now += 6 * HOUR + 50 * MINUTE
    assert [one.how for one in wall.table.fire_if_due("s")] == [How.MISSED]


def test_paused_or_over_it_is_not_due(wall: Wall) -> None:
    wall.add("paused", every="1h")
    wall.table.pause("paused")
    wall.add("over", at=(wall.clock.now + HOUR) / SECOND)
    wall.table.hand("over", "systemd")
    wall.clock.now += 2 * HOUR
    assert wall.table.fire_if_due("paused") == []
    assert len(wall.table.fire_if_due("over")) == 1
    assert wall.table.fire_if_due("over") == []
    assert wall.table.hand("over").over
    with pytest.raises(NotFound, match="no schedule 'nobody'"):
        wall.table.fire_if_due("nobody")


def test_added_paused_it_waits(wall: Wall) -> None:
    added = wall.table.add(wall.definition("s", every="1h"), paused=True)
    assert (added.paused, added.next_ms) == (1, None)
    assert wall.pass_time(5 * HOUR) == []
    wall.table.pause("s", paused=False)
    assert [one.how for one in wall.pass_time(HOUR)] == [How.FIRED]
    again = wall.table.add(wall.definition("s", every="2h"), replace=True, paused=True)
    assert (again.paused, again.next_ms) == (1, None)
