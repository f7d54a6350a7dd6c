"""What people's sessions say of themselves: the tray of each tells the service, which keeps it.

A session knows better than the machine how long nobody has touched it, since few desktops tell
logind. What was said is good for as long as the tray goes on saying it.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRESH = 90.0  # seconds for which it holds; the tray says it again before
FOLDER = "sessions"


def note(home: str, who: str, *, idle: float | None, metered: bool | None) -> None:
    """Keep what the session of an account says; None is what it does not know."""
    folder = os.path.join(home, FOLDER)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    now = time.time()
    said = {"at": now, "idle_since": None if idle is None else now - idle, "metered": metered}
    # It is said again and again, so that it need not survive a power cut.
    draft = os.path.join(folder, f".{who.encode().hex()}.{os.getpid()}")
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(said, file)
    os.replace(draft, os.path.join(folder, f"{who.encode().hex()}.json"))


def idle_seconds() -> float | None:
    """How long nobody has used any session that tells; None when none does."""
    now = time.time()
    known = [one["idle_since"] for one in _heard() if one.get("idle_since") is not None]
    return max(now - max(known), 0.0) if known else None


def unmetered() -> bool | None:
    known = [bool(one["metered"]) for one in _heard() if one.get("metered") is not None]
    return not any(known) if known else None


def _heard() -> list[dict[str, Any]]:
    from svcq import host

    home = os.environ.get("SVCQ_HOME") or os.path.join(host.data_directory(), "svcq")
    folder = os.path.join(home, FOLDER)
    found: list[dict[str, Any]] = []
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError, ValueError, KeyError, TypeError):
                if name.endswith(".json"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        said = json.load(file)
                    if abs(time.time() - float(said["at"])) < FRESH:
                        found.append(said)
    return found
