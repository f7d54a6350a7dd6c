"""The scheduler of the system at hand, to which a schedule can be handed over."""

from __future__ import annotations

import sys
from pathlib import Path

from svcq.host.standing import Trouble
from svcq.host.wanted import Interval, Once, Pattern, Timer, Times

if sys.platform == "win32":
    from svcq.host.windows_timers import SCHEDULER, Timers, timers
else:
    from svcq.host.linux_timers import SCHEDULER, Timers

    def timers(home: Path, *, system: bool = False) -> Timers:
        """What the scheduler has of a home: the user's own scheduler, or the machine's."""
        from svcq.host.service import manager

        return Timers(str(home), manager(system=system).folder, system=system)


__all__ = [
    "SCHEDULER",
    "Interval",
    "Once",
    "Pattern",
    "Timer",
    "Timers",
    "Times",
    "Trouble",
    "timers",
]
