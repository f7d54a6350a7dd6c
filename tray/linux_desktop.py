"""Linux: what of the desktop at hand shows icons and notifications."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from svcq.errors import Unreachable

from .linux_bus import Bus
from .linux_notices import NAME as NOTICES
from .linux_notices import Notices
from .linux_session import Session
from .model import Action

_WAYS = (
    "on GNOME, the extension AppIndicator and KStatusNotifierItem Support; elsewhere a panel "
    "with a status area"
)


class Desktop:
    """The panel's icon and the notifications of this session."""

    def __init__(self, act: Callable[[Action], None], opened: Callable[[], None]) -> None:
        need_display()
        self._bus = Bus()
        self.notices = Notices(self._bus, act)
        old = _old_tray_alone()
        stock = _old_kind(act) if old else None
        guests: list[Any] = [self.notices]
        if stock is None:
            # Else importing pystray chooses a backend, which may want a display of its own.
            os.environ["PYSTRAY_BACKEND"] = "dummy"
            from .linux_item import Item

            guests.append(Item(self._bus, act, opened))
        self.panel: Any = stock or guests[-1]
        self._without_gtk = old and len(guests) > 1
        self._bus.start(*guests)

    def close(self) -> None:
        self._bus.stop()

    def troubles(self) -> list[str]:
        """What is missing now, in sentences."""
        if not self._bus.connected:
            why = f" ({self._bus.error})" if self._bus.error else ""
            return [f"The session bus is away{why}: nothing can be shown until it is back."]
        found = []
        if not self.panel.is_shown:
            found.append(NO_PANEL if not self._without_gtk else NO_GTK)
        if self.notices.trouble:
            found.append(self.notices.trouble)
        return found


NO_PANEL = f"Nobody here shows icons of programs, so there is none: there would be with {_WAYS}."
NO_GTK = (
    "The tray here is of the older kind, which takes GTK: install python3-gi and gir1.2-gtk-3.0 "
    "into the Python of svcq."
)


def need_display() -> None:
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise Unreachable(
            "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set): "
            "start svcq tray in a desktop session."
        )
    session = Session()
    if session.is_over():
        named = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
        raise Unreachable(
            f"The display {named!r} cannot be reached: start svcq tray in a desktop session."
        )
    session.close()


def _old_kind(act: Callable[[Action], None]) -> Any:
    """By GTK; None where that is not there."""
    os.environ["PYSTRAY_BACKEND"] = "gtk"
    with suppress(Exception):  # whatever GTK lacks
        importlib.import_module("gi")
        stock = importlib.import_module(f"{__package__}.stock")
        return stock.Stock(act)
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "pystray"]:
        del sys.modules[name]
    return None


def _old_tray_alone() -> bool:
    """Whether only the kind of tray is here that takes windows (XEmbed)."""
    return not asyncio.run(_has(("org.kde.StatusNotifierWatcher",)))[0] and _x_tray()


def _x_tray() -> bool:
    if not os.environ.get("DISPLAY"):
        return False
    with suppress(Exception):  # a display that is away, or of another kind
        from Xlib.display import Display

        display = Display()
        try:
            name = display.intern_atom(f"_NET_SYSTEM_TRAY_S{display.get_default_screen()}")
            return bool(display.get_selection_owner(name))
        finally:
            display.close()
    return False


async def _has(names: tuple[str, ...]) -> list[bool]:
    """Which of these names somebody has on the session bus."""
    from dbus_fast import BusType, Message
    from dbus_fast.aio import MessageBus

    from .linux_bus import address

    where = address()
    if where is None:
        return [False for _ in names]
    found = []
    try:
        bus = await MessageBus(bus_address=where, bus_type=BusType.SESSION).connect()
    except Exception:  # noqa: BLE001  (an address that leads nowhere is no bus)
        return [False for _ in names]
    for name in names:
        asked = Message(
            destination="org.freedesktop.DBus", path="/", interface="org.freedesktop.DBus",
            member="NameHasOwner", signature="s", body=[name],
        )  # fmt: skip
        reply = await bus.call(asked)
        found.append(bool(reply is not None and reply.body and reply.body[0] is True))
    bus.disconnect()
    return found


def examine() -> str | None:
    """What is missing here for the tray, for `svcq doctor`; None when nothing is."""
    from .linux_bus import address

    if address() is None:
        return "there is no session bus"
    panel, notices = asyncio.run(_has(("org.kde.StatusNotifierWatcher", NOTICES)))
    del notices  # the bus may start one when it is needed
    return None if panel or _x_tray() else f"nobody shows icons of programs (it takes {_WAYS})"


def in_session() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
