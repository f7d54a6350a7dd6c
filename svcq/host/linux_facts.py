"""Linux: power, load, idleness and network, from the kernel, logind and NetworkManager."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from svcq.host.unknown import Unknown

POWER = Path("/sys/class/power_supply")
_PATIENCE = 2.0  # seconds for an answer from the system bus


class _Supply(NamedTuple):
    kind: str
    online: str
    status: str
    capacity: str


def on_mains(power: Path = POWER) -> bool:
    """A machine without a battery is: nothing else could feed it."""
    supplies = _supplies(power)
    batteries = [one for one in supplies if one.kind == "Battery"]
    mains = [one for one in supplies if one.kind != "Battery" and one.online]
    if not batteries or any(one.online != "0" for one in mains):
        return True
    # Some machines have no file for the mains: there the battery tells.
    return not mains and all(one.status != "Discharging" for one in batteries)


def battery_percent(power: Path = POWER) -> float | Unknown:
    """Of several batteries, the mean."""
    charges = [
        int(one.capacity)
        for one in _supplies(power)
        if one.kind == "Battery" and one.capacity.isdecimal()
    ]
    if not charges:
        return Unknown("this machine has no battery that says how full it is")
    return sum(charges) / len(charges)


def _supplies(power: Path) -> list[_Supply]:
    """Those of the machine; a mouse has a battery, too."""
    try:
        folders = sorted(power.iterdir())
    except OSError:
        return []
    return [
        _Supply(*(_word(folder / name) for name in ("type", "online", "status", "capacity")))
        for folder in folders
        if _word(folder / "scope") != "Device" and _word(folder / "present") != "0"
    ]


def _word(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""  # a battery can be taken out at any time


def load_average() -> float | Unknown:
    """Of the last minute."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return Unknown("the system does not say how busy it is")


def idle_seconds() -> float | Unknown:
    """How long nobody has used any session, as logind sees it; 0 while somebody does."""
    said = _ask("org.freedesktop.login1", "/org/freedesktop/login1",
                "org.freedesktop.login1.Manager", "IdleHint", "IdleSinceHint")  # fmt: skip
    try:
        idle, since = said
        if idle != "true":
            return 0.0
        # Nobody has logged in since the start.
        start = time.clock_gettime(time.CLOCK_BOOTTIME)
        return start if since == "0" else max(time.time() - int(since) / 1e6, 0.0)
    except ValueError:
        return Unknown("logind does not say how long nobody has used this machine")


def unmetered() -> bool | Unknown:
    said = _ask("org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
                "org.freedesktop.NetworkManager", "Metered")  # fmt: skip
    # NMMetered: 1 yes, 2 no, 3 probably yes, 4 probably no; 0 without a connection.
    answer = {"1": False, "2": True, "3": False, "4": True}.get(said[0] if said else "")
    if answer is None:
        return Unknown("NetworkManager does not say whether the network is metered")
    return answer


def _ask(service: str, path: str, interface: str, *properties: str) -> list[str]:
    """Values of properties on the system bus; none when nobody answers."""
    command = ["busctl", "--system", "--auto-start=no", "get-property", service, path, interface]
    try:
        said = subprocess.run(
            [*command, *properties], capture_output=True, text=True, errors="replace",
            timeout=_PATIENCE, check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.partition(" ")[2] for line in said.stdout.splitlines()]  # "b true", "t 17"
