"""What became of the time between two looks: whether the machine slept, or someone set the clock.

The clock on the wall can be set; two others cannot, of which one stands still while the machine
sleeps. What the three disagree about tells what happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from svcq.host import clocks
from svcq.times import SECOND, format_duration

# The three are read one after the other, on a machine that may be busy; and clocks are corrected
# by little all the time.
_NOTICED = 2 * SECOND


class Gap(NamedTuple):
    """What happened between two looks, in milliseconds; 0 for what did not."""

    slept: int = 0
    set_by: int = 0  # below 0 where the clock was set back

    def __str__(self) -> str:
        """To follow "missed 3"."""
        slept = f"while the machine slept for {format_duration(self.slept)}"
        ahead = f"when the clock was set forward by {format_duration(self.set_by)}"
        return " and ".join([slept] * bool(self.slept) + [ahead] * (self.set_by > 0))


class Watch:
    def __init__(
        self,
        wall: Callable[[], int],
        awake: Callable[[], float] = clocks.awake,
        since_boot: Callable[[], float] = clocks.since_boot,
    ) -> None:
        self._wall, self._awake, self._since_boot = wall, awake, since_boot
        self._last = self._read()

    def look(self) -> Gap:
        """What happened since the last look."""
        seen = self._read()
        wall, awake, since_boot = (new - old for new, old in zip(seen, self._last, strict=True))
        self._last = seen
        slept, set_by = since_boot - awake, wall - since_boot
        return Gap(
            slept if slept > _NOTICED else 0,
            set_by if abs(set_by) > _NOTICED else 0,
        )

    def _read(self) -> tuple[int, int, int]:
        return self._wall(), round(self._awake() * SECOND), round(self._since_boot() * SECOND)
