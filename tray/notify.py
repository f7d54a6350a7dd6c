"""Telling the desktop of ends: from what the stream says to notes that are shown.

In a thread of its own, so that a flood of ends holds up neither the stream nor the menu.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from svcq.client.remote import RemoteClient
from svcq.config.settings import Tray
from svcq.errors import NotFound
from svcq.jobs import FINISHED, Job, State

from .door import WRONG, Door
from .feed import Ended, News
from .model import Note
from .rules import Grouper, Tally, away, is_quiet, wanted
from .state import State as Kept

_ONE_BY_ONE = 8  # jobs that are asked for singly
_PAGE = 1000
_FLOOD_GAP = 2.0  # seconds over which many ends are gathered before they are looked at
_SAVE = 5.0


class Teller:
    def __init__(
        self,
        door: Door,
        kept: Kept,
        show: Callable[[Note], None],
        settings: Callable[[], Tray],
        rules: Callable[[], Mapping[str, str]],
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        self._door = door
        self._kept = kept
        self._show = show
        self._settings = settings
        self._rules = rules
        self._now = now
        self._began = datetime.now(UTC)
        self._news: queue.Queue[News | None] = queue.Queue()
        self._grouper = Grouper()
        self._again: list[News] = []  # what could not be looked at
        self._before_us = kept.cursor is not None  # something may have ended
        self._client: RemoteClient | None = None
        self._thread = threading.Thread(target=self._run, name="teller", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._news.put(None)
        self._thread.join(2)
        self._kept.save()

    def hear(self, news: News) -> None:
        """From the feed."""
        for job in news.went_on:
            self._kept.unseen.discard(job)
        for end in news.ended:
            if end.kind == State.DEAD:
                self._kept.failed(end.job)
        self._news.put(news)

    def _run(self) -> None:
        saved = 0.0
        while True:
            heard = self._gather()
            if heard is None:
                return
            try:
                self._tell(heard)
            except WRONG:
                # The service went away just now: the cursor stays, and is told of anew.
                self._forget_client()
                self._again = heard
                time.sleep(1)
                continue
            if heard:
                self._kept.reach(heard[-1].cursor)
            if time.monotonic() - saved > _SAVE or not heard:
                self._kept.save()
                saved = time.monotonic()

    def _gather(self) -> list[News] | None:
        """What has come; in a flood, what comes within a moment, too. None at the end."""
        if self._again:
            again, self._again = self._again, []
            return again
        found: list[News | None] = []
        wait = self._grouper.wait(time.monotonic())
        try:
            found.append(self._news.get(timeout=_LONGEST if wait is None else wait))
            many = found[0] is not None and len(found[0].ended) > _ONE_BY_ONE
            until = time.monotonic() + (_FLOOD_GAP if many else 0)
            while found[-1] is not None:
                left = until - time.monotonic()
                found.append(self._news.get(block=left > 0, timeout=max(left, 0)))
        except queue.Empty:
            pass
        return None if None in found else [one for one in found if one is not None]

    def _tell(self, heard: list[News]) -> None:
        tray = self._settings()
        quiet = is_quiet(tray.quiet, self._now())
        for note in [] if quiet else self._grouper.break_silence():
            self._show(note)
        missed = any(one.missed for one in heard)
        ended = {end.job: end for one in heard for end in one.ended}
        jobs = self._look(list(ended.values()))
        if missed:
            jobs += [job for job in self._died_since(self._kept.at) if job.id not in ended]
        jobs = [job for job in jobs if wanted(job, tray, self._rules())]
        if heard and self._before_us and not quiet:
            jobs = self._tell_away(jobs, missed)
        self._before_us = self._before_us and not heard
        now = time.monotonic()
        for note in [*self._grouper.add(jobs, now, quiet=quiet), *self._grouper.due(now)]:
            self._show(note)

    def _tell_away(self, jobs: list[Job], missed: bool) -> list[Job]:
        """What ended before we came is told as one; what is left has ended since."""
        before = {job.id for job in jobs if job.finished_at and job.finished_at < self._began}
        tally = Tally()
        tally.add(job for job in jobs if job.id in before)
        note = away(tally, missed)
        if note is not None:
            self._show(note)
        return [job for job in jobs if job.id not in before]

    def _died_since(self, at: float) -> list[Job]:
        """When there was more than could be told one by one, failures at least are."""
        since = datetime.fromtimestamp(at, UTC)
        found = self._asked().list(state=["dead"], limit=_PAGE)  # the last to die come first
        died = [job for job in found if job.finished_at and job.finished_at >= since]
        for job in died:
            self._kept.failed(job.id)
        return died

    # Asking

    def _look(self, ended: list[Ended]) -> list[Job]:
        """The jobs themselves, as they now are; those that are gone, or run again, are left out."""
        if len(ended) <= _ONE_BY_ONE:
            found = [self._job(end.job) for end in ended]
        else:
            found = list(self._many(ended))
        return [job for job in found if job is not None and job.state in FINISHED]

    def _job(self, job: int) -> Job | None:
        try:
            return self._asked().get(job)
        except NotFound:
            return None

    def _many(self, ended: list[Ended]) -> Iterable[Job]:
        """By page: those that ended last come first."""
        for kind in {end.kind for end in ended}:
            sought = {end.job for end in ended if end.kind == kind}
            limit = min(len(sought) + _PAGE, 10 * _PAGE)
            yield from (
                job for job in self._asked().list(state=[kind], limit=limit) if job.id in sought
            )

    def _asked(self) -> RemoteClient:
        if self._client is None:
            self._client = self._door.client()
        return self._client

    def _forget_client(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


_LONGEST = 30.0
