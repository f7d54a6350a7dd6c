"""The clock: fires schedules when their time has come.

APScheduler keeps the time, and the schedules stay where they are: `_Table` shows it the rows of
the store as its jobs, with `_Times` as their triggers. What it wants to run is fired together, in
one transaction of the store, which moves the rows on by itself. So any number of clocks may run
on one store: each time is fired for once, and when one of them dies, the others go on.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Self

from apscheduler.executors.base import BaseExecutor
from apscheduler.job import Job as Entry
from apscheduler.jobstores.base import BaseJobStore
from apscheduler.schedulers.base import BaseScheduler
from apscheduler.triggers.base import BaseTrigger

from svcq import host
from svcq.config import Config, Followed
from svcq.errors import StoreAway, SvcqError
from svcq.host import clocks
from svcq.host.bell import Bell
from svcq.schedules import Schedule
from svcq.service.rounds import RETRY, Rounds
from svcq.service.watch import Watch
from svcq.store import Store, machines, open_store
from svcq.times import SECOND, moment
from svcq.triggers import Trigger

_numbers = count(1)  # a process may have several clocks


class Clock:
    """Keeps a clock running in a thread, until it is left."""

    def __init__(self, config: Config, say: Callable[[str], None]) -> None:
        self._config = config
        self._say = say
        self._leaving = threading.Event()
        self._bell: Bell | None = None
        self._thread = threading.Thread(target=self._run, name="clock")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        bell = self._bell
        if bell is not None:
            with suppress(OSError):  # it was closed just now
                bell.ring()
        self._thread.join()

    def _run(self) -> None:
        said, settings = "", Followed(self._config)
        while not self._leaving.is_set():
            try:
                with closing(open_store(settings.config)) as store:
                    self._keep(store, settings)
            except StoreAway:
                self._leaving.wait(RETRY)  # whoever keeps the workers says so
            except Exception as error:  # noqa: BLE001  (whatever it is: schedules wait for it)
                why = str(error) if isinstance(error, SvcqError) else repr(error)
                if why != said:
                    said = why
                    self._say(f"The clock stumbled and starts anew: {why}")
                self._leaving.wait(RETRY)

    def _keep(self, store: Store, settings: Followed) -> None:
        """As long as the settings are the same."""
        bells = Path(store.timetable.bells)
        host.private_directory(bells)
        with (
            closing(Bell(bells, f"{os.getpid()}-{next(_numbers)}")) as self._bell,
            store.engine.hear(self._bell, "clocks"),
            closing(Ticker(store, self._say)) as ticker,
        ):
            signs = _Signs(store, settings.config.directory)
            while not (self._leaving.is_set() or _changed(settings)):
                signs.give()
                self._bell.wait(ticker.tick())
                self._bell.heard()
            signs.end()


class _Signs:
    """Of life, to whoever asks on other machines which clocks there are."""

    def __init__(self, store: Store, home: str) -> None:
        self._engine = store.engine
        self._who = socket.gethostname(), home
        self._next = 0.0

    def give(self) -> None:
        if clocks.awake() >= self._next:
            with suppress(SvcqError):
                machines.note(self._engine, *self._who, os.getpid())
                self._next = clocks.awake() + machines.HEARD_EVERY

    def end(self) -> None:
        with suppress(SvcqError):
            machines.leave(self._engine, *self._who, os.getpid())


def _changed(settings: Followed) -> bool:
    with suppress(SvcqError):  # a mistake in the file is told of by whoever keeps the workers
        return settings.changed()
    return False


class Ticker(BaseScheduler):  # type: ignore[misc]  # APScheduler comes without types
    """APScheduler over the schedules of a store. Whoever has it calls `tick`, and waits."""

    def __init__(
        self, store: Store, say: Callable[[str], None], watch: Watch | None = None
    ) -> None:
        taker = _Taker()
        table = _Table(Rounds(store, say, watch or Watch(store.engine.clock)), taker)
        super().__init__(timezone=UTC, jobstores={"default": table}, executors={"default": taker})
        self.start()

    def tick(self) -> float:
        """Fire what is due; for how many seconds there is nothing to do."""
        seconds: float = self._process_jobs()
        return seconds

    def close(self) -> None:
        self.shutdown(wait=False)

    def shutdown(self, wait: bool = True) -> None:
        super().shutdown(wait)

    def wakeup(self) -> None:
        """Nothing sleeps in here."""


class _Taker(BaseExecutor):  # type: ignore[misc]
    """Takes what APScheduler wants to run, so that all of it is fired together."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: list[Schedule] = []

    def submit_job(self, job: Entry, run_times: Sequence[datetime]) -> None:
        """Without counting how many run: overlaps are judged in the firing."""
        self._do_submit_job(job, run_times)

    def _do_submit_job(self, job: Entry, run_times: Sequence[datetime]) -> None:  # noqa: ARG002
        self._taken.append(job.kwargs["schedule"])

    def take(self) -> list[Schedule]:
        taken, self._taken = self._taken, []
        return taken


class _Table(BaseJobStore):  # type: ignore[misc]
    """The rows of schedules as APScheduler's job store. They change through the client alone."""

    def __init__(self, rounds: Rounds, taker: _Taker) -> None:
        super().__init__()
        self._rounds = rounds
        self._taker = taker

    def get_due_jobs(self, now: datetime) -> list[Entry]:
        return [self._entry(one, now) for one in self._rounds.due()]

    def get_next_run_time(self) -> datetime:
        """Asked for in each round when all that is due has been taken: now it is fired."""
        self._rounds.fire(self._taker.take())
        return datetime.now(UTC) + timedelta(seconds=self._rounds.wait())

    def update_job(self, job: Entry) -> None:
        """The firing moves the row on, in its own transaction."""

    def remove_job(self, job_id: str) -> None:
        """A schedule that is over stays, to tell how it went."""

    def lookup_job(self, job_id: str) -> Entry | None:
        raise NotImplementedError(f"Client.get_schedule finds {job_id}.")

    def get_all_jobs(self) -> list[Entry]:
        raise NotImplementedError("Client.schedules lists schedules.")

    def add_job(self, job: Entry) -> None:
        raise NotImplementedError(f"Client.schedule adds schedules, such as {job}.")

    def remove_all_jobs(self) -> None:
        raise NotImplementedError("Client.remove_schedule removes schedules.")

    def _entry(self, schedule: Schedule, now: datetime) -> Entry:
        """A schedule that is due, as APScheduler's own job stores make a job of a row."""
        entry = Entry.__new__(Entry)
        entry.__setstate__({
            "id": schedule.name, "name": schedule.name, "trigger": _Times(schedule.trigger),
            "func": f"{__name__}:_Table", "args": (), "kwargs": {"schedule": schedule},
            "executor": "default", "next_run_time": now, "misfire_grace_time": None,
            "coalesce": True, "max_instances": 1,
        })  # fmt: skip
        entry._scheduler = self._scheduler  # noqa: SLF001
        return entry


class _Times(BaseTrigger):  # type: ignore[misc]
    """The times of a schedule, as APScheduler asks for them."""

    def __init__(self, trigger: Trigger) -> None:
        self._trigger = trigger

    def get_next_fire_time(self, _: datetime | None, now: datetime) -> datetime | None:
        """The next to come; what has passed is judged in the firing, by `missed`."""
        found = self._trigger.next_after(round(now.timestamp() * SECOND))
        return None if found is None else moment(found)
