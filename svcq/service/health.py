"""How the service is: what its manager says, what its units are, how it ended the last times."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from svcq.finding import Finding, said_by
from svcq.host import processes
from svcq.host.service import Manager, Standing
from svcq.logs import tail
from svcq.service.crew import crew
from svcq.service.log import service_log
from svcq.service.starts import WITHIN, recent_crashes
from svcq.store import Store, Worker
from svcq.times import format_duration
from svcq.version import __version__
from svcq.worker.places import Places

_LAST_LINES = 3


def examine_service(home: Path, manager: Manager) -> Iterator[Finding]:
    """Every check of the service that needs no store."""
    stands = manager.standing()
    yield _manager(manager, stands)
    yield from said_by("service", lambda: _service(home, manager, stands))
    if stands.installed:
        yield from _units(manager)
    yield from said_by("starts", lambda: _starts(home, manager, stands))


def _manager(manager: Manager, stands: Standing) -> Finding:
    absence = manager.absence()
    if absence is None:
        return Finding("manager", True, "systemd is there")
    return Finding("manager", not stands.installed, absence, "svcq up runs workers without it")


def _service(home: Path, manager: Manager, stands: Standing) -> Finding:
    if not stands.installed:
        makes = f"svcq install{manager.option} lets it run by itself"
        return Finding("service", True, f"not installed; {makes}")
    if stands.running:
        says = f": {stands.text}" if stands.text else ""
        return Finding("service", True, f"it runs, with pid {stands.pid}{says}")
    holder = _holder(home)
    if holder not in (None, str(stands.pid)):
        says = f"its unit does not run, because another one does, with pid {holder}"
        return Finding("service", False, says, f"end that, then svcq{manager.option} start")
    why = f" ({stands.text})" if stands.text else ""
    words = (tail(service_log(home), _LAST_LINES) or "").replace("\n", " | ")
    last = f"; the last it noted: {words.rstrip('.')}" if words else ""
    return Finding("service", False, f"it is installed, but does not run{why}{last}",
                   f"svcq{manager.option} start")  # fmt: skip


def _holder(home: Path) -> str | None:
    """The pid of whoever is the service of this home now."""
    lock = Places(home).service_lock
    return lock.read_text().strip() if processes.lock_is_held(lock) else None


def _units(manager: Manager) -> Iterator[Finding]:
    wrong = False
    for trouble in manager.troubles(sys.executable):
        wrong = True
        yield Finding("unit", False, *trouble)
    if not wrong:
        yield Finding("unit", True, "enabled, and as svcq would write it")


def _starts(home: Path, manager: Manager, stands: Standing) -> Finding:
    crashes = recent_crashes(home, stands.pid)
    if crashes.times:
        often = "once" if crashes.times == 1 else f"{crashes.times} times in a row"
        says = f"the service crashed {often} in the last {format_duration(WITHIN)}"
        return Finding("starts", False, f"{says} ({crashes.last.rstrip('.')})",
                       f"svcq{manager.option} log --service tells more")  # fmt: skip
    return Finding("starts", True, "no crash of late")


def examine_crew(store: Store, places: Places, manager: Manager) -> Finding:
    """Whether the workers of the service are of its version, and in units of their own."""
    mine = crew(store, places)
    others = [one for one in mine if one.version != __version__]
    if others:
        says = f"{_named(others)} of another version ({others[0].version}, this is {__version__})"
        if all(one.state != "running" for one in others):
            return Finding("crew", True, f"{says}; they finish what they hold and end")
        return Finding("crew", False, says, f"svcq{manager.option} restart replaces them")
    inside = [one for one in mine if manager.is_inside(one.pid)]
    if inside:
        says = (
            f"{_named(inside)} inside the unit of the service, and what that may use up is theirs"
        )
        return Finding("crew", False, says, manager.way_to_units)
    return Finding("crew", True, f"{len(mine)} kept by the service")


def _named(workers: list[Worker]) -> str:
    ids = ", ".join(str(worker.id) for worker in workers)
    return f"worker {ids} is" if len(workers) == 1 else f"workers {ids} are"
