"""What the machine at hand says about itself, by name; each is looked up when it is asked for."""

import sys

from svcq.host import sessions
from svcq.host.unknown import Unknown

if sys.platform == "win32":
    from svcq.host.windows_facts import (
        battery_percent,
        idle_seconds,
        load_average,
        on_mains,
        unmetered,
    )
else:
    from svcq.host.linux_facts import (
        battery_percent,
        idle_seconds,
        load_average,
        on_mains,
        unmetered,
    )

__all__ = ["Unknown", "fact"]

_READERS = {
    "mains": on_mains,
    "battery": battery_percent,
    "idle": idle_seconds,
    "load": load_average,
    "unmetered": unmetered,
}


def fact(name: str) -> float | Unknown:
    """Percent, seconds, a load, or yes and no; never raises."""
    if name == "idle" and (seconds := sessions.idle_seconds()) is not None:
        return seconds
    known = _READERS[name]()
    if name == "unmetered" and isinstance(known, Unknown):
        said = sessions.unmetered()
        return known if said is None else said
    return known
