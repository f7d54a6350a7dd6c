"""Windows: nothing starts with a session yet, since the tray has no part for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TRAY_NEEDS = ("pystray", "PIL")
TRAY_IS_HERE = False


def add_to_session(command: Sequence[str], home: str) -> Path | None:  # noqa: ARG001
    return None


def is_in_session() -> bool:
    return False


def remove_from_session() -> Path | None:
    return None
