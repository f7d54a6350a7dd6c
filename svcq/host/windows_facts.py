"""Windows: power and idleness.

Reaches its libraries inside its functions, so that the file can be imported anywhere.
"""

from __future__ import annotations

import ctypes
from typing import Any

from svcq.host.unknown import Unknown

_OFFLINE = 0
_NO_BATTERY = 128
_UNKNOWN = 255


class _PowerStatus(ctypes.Structure):
    _fields_ = (
        ("mains", ctypes.c_ubyte),
        ("battery", ctypes.c_ubyte),
        ("percent", ctypes.c_ubyte),
        ("saver", ctypes.c_ubyte),
        ("seconds_left", ctypes.c_uint32),
        ("seconds_full", ctypes.c_uint32),
    )


class _LastInput(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint), ("tick", ctypes.c_uint32))


def on_mains() -> bool | Unknown:
    """A machine without a battery is: nothing else could feed it."""
    power = _power()
    if power is None or (power.mains == _UNKNOWN and power.battery != _NO_BATTERY):
        return Unknown("Windows does not say whether this machine is on mains power")
    return bool(power.mains != _OFFLINE or power.battery == _NO_BATTERY)


def battery_percent() -> float | Unknown:
    power = _power()
    if power is None or power.battery == _NO_BATTERY or power.percent > 100:
        return Unknown("this machine has no battery that says how full it is")
    return float(power.percent)


def _power() -> _PowerStatus | None:
    power = _PowerStatus()
    return power if _library("kernel32").GetSystemPowerStatus(ctypes.byref(power)) else None


def load_average() -> float | Unknown:
    return Unknown("Windows has no load average")


def idle_seconds() -> float | Unknown:
    """How long nobody has used the session of this process."""
    last = _LastInput(size=ctypes.sizeof(_LastInput))
    if not _library("user32").GetLastInputInfo(ctypes.byref(last)):
        return Unknown("Windows does not say how long nobody has used this session")
    # Ticks are milliseconds that begin anew after 49 days.
    now: int = _library("kernel32").GetTickCount()
    return (now - int(last.tick)) % (1 << 32) / 1000


def unmetered() -> bool | Unknown:
    return Unknown("svcq cannot ask Windows whether the network is metered")


def _library(name: str) -> Any:
    return getattr(ctypes.windll, name)  # type: ignore[attr-defined]
