"""What a clock does each time it looks: notice what became of the time, fire what is due, and say
what is worth saying."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from svcq.errors import StoreAway, SvcqError
from svcq.schedules import Firing, How, Schedule
from svcq.service.watch import Gap, Watch
from svcq.store import Store
from svcq.times import MINUTE, SECOND, format_duration

# Between two looks: a machine that slept, a clock that was set and a writer that could not ring
# are noticed after that.
LONGEST_WAIT = 1.0  # seconds
RETRY = 5.0  # seconds until a store that is away is tried again
_WORTH_KEEPING = MINUTE  # by which a clock was set
_MOST_LINES = 10


class Rounds:
    def __init__(self, store: Store, say: Callable[[str], None], watch: Watch) -> None:
        self._timetable = store.timetable
        self._now = store.engine.clock
        self._say = say
        self._watch = watch
        # What was due before the first look, or is found late with no other reason.
        self._why = "while no clock was running"
        self._checked = False  # whether the clock was set back; that may be while nobody looks
        self._failed = False  # in this round
        self._error = ""

    def due(self) -> list[Schedule]:
        """What is to be fired, as far as it fits into one transaction."""
        gap = self._watch.look()
        self._failed = False
        with self._told():
            self._notice(gap)
            next_due = self._timetable.next_due()
            if next_due is not None and next_due <= self._now():
                return self._timetable.due()
        return []

    def fire(self, due: Sequence[Schedule]) -> None:
        with self._told():
            if due:
                self._tell(self._timetable.fire(due, self._why))

    def wait(self) -> float:
        """For how many seconds there is nothing to do."""
        ahead = LONGEST_WAIT
        with self._told():
            next_due = self._timetable.next_due()
            if next_due is not None:
                ahead = (next_due - self._now()) / SECOND
        if self._failed:
            return RETRY
        self._error = ""
        if ahead > 0:
            self._why = "while the clock was held up"
        return max(min(ahead, LONGEST_WAIT), 0.0)

    def _notice(self, gap: Gap) -> None:
        if gap.set_by < 0:
            self._checked = False
        if gap.slept:
            self._say(f"The machine slept for {format_duration(gap.slept)}.")
        if gap.set_by:
            way = "forward" if gap.set_by > 0 else "back"
            self._say(f"The clock was set {way} by {format_duration(abs(gap.set_by))}.")
            if abs(gap.set_by) >= _WORTH_KEEPING:
                self._timetable.note_clock_set(gap.set_by)
        self._why = str(gap) or self._why
        if not self._checked:
            for one in self._timetable.set_back():
                self._say(f"Schedule {one.name} counts from now again: the clock had been ahead.")
            self._checked = True

    def _tell(self, fired: Sequence[Firing]) -> None:
        """What did not go as usual, a line for each schedule."""
        unusual = {one.schedule: one for one in fired if one.how is not How.FIRED}
        for name, one in list(unusual.items())[:_MOST_LINES]:
            self._say(f"Schedule {name}: {one.says}.")
        if len(unusual) > _MOST_LINES:
            self._say(f"And {len(unusual) - _MOST_LINES} more schedules; their histories tell.")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """A store that is away does not end the clock; it is told of once."""
        try:
            yield
        except SvcqError as error:
            # Of a server that does not answer, whoever keeps the workers says so.
            if str(error) != self._error and not isinstance(error, StoreAway):
                self._error = str(error)
                self._say(f"The clock could not look at the schedules: {self._error}")
            self._why = "while the store could not be used"
            self._failed = True
