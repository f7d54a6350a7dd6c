"""Which ends pop up, and how: one by one, together when many come at once, later when it is to be
quiet. Pure: jobs and times in, notes out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from svcq.config.settings import Tray
from svcq.ends import counted, detail, headline, is_told, plain, summary, titles
from svcq.jobs import Job, State

from .model import Action, Icon, Note

ONE_BY_ONE = 3
"""So many may come by themselves, within `_WHILE`."""
_WHILE = 10.0
_GAPS = (1.0, 10.0, 30.0, 60.0)
"""Seconds between the notes that tell of many, ever longer for as long as it goes on."""
_CALM = 60.0
_KEPT_JOBS = 20


def wanted(job: Job, tray: Tray, of_queues: Mapping[str, str]) -> bool:
    """The user's own rule for a queue comes before what the queue says of itself."""
    if tray.notifications == "off":
        return False
    rule = tray.rules.get(job.queue) or of_queues.get(job.queue, "failures")
    return is_told(job, rule, tray.long_job)


def is_quiet(hours: tuple[int, int] | None, now: datetime) -> bool:
    if hours is None:
        return False
    minute, (begin, end) = now.hour * 60 + now.minute, hours
    if begin < end:
        return begin <= minute < end
    return minute >= begin or minute < end


class Tally:
    """Many ends as one."""

    def __init__(self) -> None:
        self.by_state = dict.fromkeys((State.DEAD, State.COMPLETED, State.CANCELLED), 0)
        self.jobs: list[Job] = []
        self.failures: list[Job] = []

    def __len__(self) -> int:
        return sum(self.by_state.values())

    def add(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if job.state in self.by_state:
                self.by_state[job.state] += 1
                kept = self.failures if job.state is State.DEAD else self.jobs
                if len(kept) < _KEPT_JOBS:
                    kept.append(job)

    def words(self) -> tuple[str, str]:
        dead, done, gone = self.by_state.values()
        return summary(dead, done, gone), titles([*self.failures, *self.jobs])


class Grouper:
    """Decides when what is told, as ends come in."""

    def __init__(self) -> None:
        self._single: deque[float] = deque(maxlen=ONE_BY_ONE)
        self._open = Tally()
        self._due: float | None = None
        self._told = -1e9
        self._gap = 0
        self._kept = Tally()  # while it is quiet

    def add(self, jobs: Sequence[Job], now: float, *, quiet: bool = False) -> list[Note]:
        """What is to be told at once of these ends."""
        if quiet:
            self._kept.add(jobs)
            return []
        notes = self.break_silence()
        if not jobs:
            return notes
        lately = sum(1 for at in self._single if now - at < _WHILE)
        if self._due is None and now - self._told > _CALM:
            self._open, self._gap = Tally(), 0
            if lately + len(jobs) <= ONE_BY_ONE:
                self._single.extend([now] * len(jobs))
                return [*notes, *map(note_of, jobs)]
        self._open.add(jobs)
        if self._due is None:
            first = now if self._gap == 0 else self._told
            self._due = first + _GAPS[min(self._gap, len(_GAPS) - 1)]
        return [*notes, *self.due(now)]

    def due(self, now: float) -> list[Note]:
        """What is to be told of many, if it is time."""
        if self._due is None or now < self._due:
            return []
        self._due, self._told, self._gap = None, now, self._gap + 1
        return [_of_many(self._open)]

    def wait(self, now: float) -> float | None:
        return None if self._due is None else max(self._due - now, 0.0)

    def break_silence(self) -> list[Note]:
        """When the quiet hours are over: what there was."""
        if not len(self._kept):
            return []
        kept, self._kept = self._kept, Tally()
        words, named = kept.words()
        return [_together("quiet", f"While it was quiet: {words}", named, bool(kept.failures))]


def note_of(job: Job) -> Note:
    """One end. `Retry` is for what failed; a click shows the job."""
    failed = job.state is State.DEAD
    buttons = [("Show output", Action("output", job.id))]
    if job.state is not State.COMPLETED:
        buttons.append(("Retry", Action("retry", job.id)))
    return Note(
        f"job-{job.id}-{job.run}", headline(job), detail(job), Action("output", job.id),
        tuple(buttons), icon=Icon("idle", failed),
    )  # fmt: skip


def _of_many(tally: Tally) -> Note:
    words, named = tally.words()
    return _together("many", words, named, bool(tally.failures))


def away(tally: Tally, more: bool = False) -> Note | None:
    """What has ended while no tray ran; `more` where not all of it can be known any more."""
    if not len(tally):
        return None
    words, named = tally.words()
    n = len(tally)
    title = f"{counted(n)} ended while you were away"
    if more:
        title = f"More than {title}"
    return _together("away", title, f"{words}: {named}", bool(tally.failures))


def _together(key: str, title: str, body: str, failed: bool) -> Note:
    return Note(
        key, plain(title), plain(body, 200), Action("page"), (("Open page", Action("page")),),
        icon=Icon("idle", failed),
    )  # fmt: skip
