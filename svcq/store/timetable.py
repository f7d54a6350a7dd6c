"""Every verb of schedules, once, as store.py has those of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from svcq.errors import StoreError, SvcqError
from svcq.schedules import OURS, Definition, Firing, Schedule, decide
from svcq.store import firing, schedules
from svcq.store.engine import Transaction
from svcq.times import MINUTE

if TYPE_CHECKING:
    from svcq.config import Config
    from svcq.store.engine import Engine
    from svcq.store.ledger import Ledger

    Writing = Callable[[], AbstractContextManager[tuple[Transaction, Ledger]]]

BATCH = 100  # schedules in one transaction
CLOCKS = "clocks"  # whom to ring


class Timetable:
    """The schedules of a store."""

    def __init__(self, engine: Engine, config: Config, writing: Writing) -> None:
        self._engine = engine
        self._config = config
        self._writing = writing
        self.bells = f"{engine.bells}/{CLOCKS}"

    # What people do with schedules

    def add(
        self, definition: Definition, *, replace: bool = False, paused: bool = False
    ) -> Schedule:
        """A new schedule; or, with `replace`, one that is there, said anew."""
        with self._changing() as tx:
            return schedules.add(tx, definition, replace=replace, paused=paused)

    def change(self, name: str, change: Callable[[Schedule, str | None], Definition]) -> Schedule:
        """Say a schedule anew, from what it is and its environment."""
        with self._changing() as tx:
            return schedules.change(tx, name, change)

    def remove(self, name: str) -> None:
        with self._changing() as tx:
            schedules.remove(tx, name)

    def pause(self, name: str, *, paused: bool = True) -> Schedule:
        """Times that pass meanwhile are not missed: nobody wanted them."""
        with self._changing() as tx:
            return schedules.place(tx, name, paused=paused)

    def hand(self, name: str, to: str = OURS) -> Schedule:
        """Let another scheduler fire it, or ours again."""
        with self._changing() as tx:
            return schedules.place(tx, name, fired_by=to)

    @contextmanager
    def _changing(self) -> Iterator[Transaction]:
        with self._writing() as (tx, ledger):
            yield tx
            ledger.told_of_schedules()
        self._engine.ring(CLOCKS)

    # Firing

    def due(self, n: int = BATCH) -> list[Schedule]:
        """What is to be fired now, the longest due first."""
        with self._engine.read() as tx:
            return schedules.due(tx, n)

    def coming(self, n: int) -> list[Schedule]:
        """Those that our clocks fire next, whenever that is."""
        with self._engine.read() as tx:
            return schedules.coming(tx, n)

    def fire(self, due: Sequence[Schedule], why: str = "") -> list[Firing]:
        """Queue the jobs of schedules that are due, and move them on to their next time.

        `why` says what kept the clock, where it comes late. A schedule that another clock was
        faster with is left alone; one whose job cannot be queued says so in its history, and
        does not hold up the others.
        """
        try:
            return self._fire(due, why)
        except StoreError:
            raise
        except (SvcqError, ValueError) as error:  # a row may have been written by hand
            if len(due) == 1:
                return self._fail(due[0], str(error).rstrip("."))
            return [one for schedule in due for one in self.fire([schedule], why)]

    def _fire(self, due: Sequence[Schedule], why: str) -> list[Firing]:
        clock, now = self._config.clock, self._engine.clock()
        # Thought through before the store is held.
        decided = [
            (schedule, decide(schedule, now, late=clock.late, catch_up=clock.catch_up))
            for schedule in due
        ]
        with self._writing() as (tx, ledger):
            fired = [
                one
                for schedule, decision in decided
                for one in firing.fire(tx, ledger, schedule, decision, why, self._config)
            ]
            if fired:
                ledger.told_of_schedules()
            return fired

    def _fail(self, schedule: Schedule, error: str) -> list[Firing]:
        with self._writing() as (tx, ledger):
            ledger.told_of_schedules()
            return firing.fail(tx, schedule, error)

    def fire_if_due(self, name: str) -> list[Firing]:
        """As a clock would, for another scheduler that comes by: nothing where no time has come."""
        with self._engine.read() as tx:
            schedule, now = schedules.as_it_stands(tx, name), tx.now
        if schedule.paused or schedule.next_ms is None or schedule.next_ms > now:
            return []
        if schedule.fired_by != OURS:
            # Of what it comes late by, the jitter is meant.
            due = min(now, schedule.next_ms + schedule.jitter_ms)
            schedule = schedule._replace(due_ms=due)
        return self.fire([schedule], f"while {schedule.fired_by} did not come by")

    def set_back(self) -> list[Schedule]:
        """After the clock was set back: those whose next time was worked out anew."""
        with self._engine.read() as tx:
            if not tx.rows("set_later_than", at=tx.now + MINUTE):
                return []
        with self._changing() as tx:
            return schedules.set_back(tx)

    def note_clock_set(self, by: int) -> None:
        """Someone set the clock by so many milliseconds: for whoever wonders, later."""
        with self._writing() as (tx, _):
            tx.run("set_meta", key="clock_set", value=f"{tx.now} {by}")

    def clock_set(self) -> tuple[int, int] | None:
        """When the clock was last set, and by how much, in milliseconds."""
        with self._engine.read() as tx:
            row = tx.row("meta", key="clock_set")
        if row is None:
            return None
        at, by = map(int, row[0].split())
        return at, by

    def fire_now(self, name: str) -> Firing:
        """Queue a job of it now, beside its times, unless one is there that it must not overlap."""
        with self._writing() as (tx, ledger):
            ledger.told_of_schedules()
            return firing.fire_now(tx, ledger, name, self._config)

    # Looking

    def get(self, name: str) -> Schedule:
        with self._engine.read() as tx:
            return schedules.get(tx, name)

    def environment(self, name: str) -> dict[str, str] | None:
        with self._engine.read() as tx:
            return schedules.environment(tx, name)

    def failing(self) -> Schedule | None:
        """One whose last job could not be queued, if there is any."""
        with self._engine.read() as tx:
            row = tx.row("failing_schedule")
            return None if row is None else Schedule._make(row)

    def next_due(self) -> int | None:
        """Until when, in Unix milliseconds, no schedule fires."""
        with self._engine.read() as tx:
            row = tx.row("next_schedule")
            return None if row is None else row[0]

    def firings(self, name: str | None, limit: int, before: int | None) -> list[Firing]:
        """What became of the times of a schedule, or of all, newest first."""
        with self._engine.read() as tx:
            return firing.history(tx, name, limit, before)

    def firing_of(self, job: int) -> Firing | None:
        """Where a job comes from, if a schedule queued it."""
        with self._engine.read() as tx:
            return firing.firing_of(tx, job)

    # Last in the class: its name hides the built-in one from what follows.

    def list(
        self, *, after: str, limit: int, paused: bool | None, task: str | None, fired_by: str | None
    ) -> list[Schedule]:
        with self._engine.read() as tx:
            return schedules.listed(
                tx, after=after, n=limit, paused=paused, task=task, fired_by=fired_by
            )
