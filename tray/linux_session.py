"""Linux: what the session says of itself: how long nobody has touched it, and a metered network."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

_PATIENCE = 2.0


class Session:
    def __init__(self) -> None:
        self._display: Any = None

    def is_over(self) -> bool:
        """Whether the display has gone; what runs on would be in nobody's session."""
        wayland = os.environ.get("WAYLAND_DISPLAY")
        if wayland:
            return not Path(os.environ.get("XDG_RUNTIME_DIR", ""), wayland).exists()
        return self._connect() is None

    def _connect(self) -> Any:
        """The display, or None."""
        try:
            if self._display is None:
                from Xlib.display import Display

                self._display = Display()
            self._display.sync()
        except Exception:  # noqa: BLE001  (the library has errors of its own for all that may be)
            self.close()
        return self._display

    def idle_seconds(self) -> float | None:
        """By the display server; None where it does not tell."""
        if os.environ.get("WAYLAND_DISPLAY"):
            said = _ask(
                "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core",
                "org.gnome.Mutter.IdleMonitor", "GetIdletime",
            )  # fmt: skip
            return int(said.split()[1]) / 1000 if said.startswith("t ") else None
        display = self._connect()
        with suppress(Exception):  # it may lack the extension
            from Xlib.ext import screensaver

            return float(screensaver.query_info(display.screen().root).idle) / 1000
        return None

    def metered(self) -> bool | None:
        """By the portal, for sessions where NetworkManager does not speak to the machine."""
        if not _runs("org.freedesktop.portal.Desktop"):
            return None
        said = _ask(
            "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop",
            "org.freedesktop.portal.NetworkMonitor", "GetMetered",
        )  # fmt: skip
        return {"b true": True, "b false": False}.get(said)

    def close(self) -> None:
        if self._display is not None:
            with suppress(Exception):
                self._display.close()
            self._display = None


def _runs(name: str) -> bool:
    bus = ("org.freedesktop.DBus", "/", "org.freedesktop.DBus")
    return _ask(*bus, "NameHasOwner", "s", name) == "b true"


def _ask(*words: str) -> str:
    command = ["busctl", "--user", "--auto-start=no", "call", *words]
    with suppress(OSError, subprocess.SubprocessError):
        ran = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE,
            check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return ran.stdout.strip()
    return ""
