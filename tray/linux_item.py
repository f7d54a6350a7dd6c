"""The icon as a StatusNotifierItem, on the base of pystray's icons: what KDE, xfce, Cinnamon, MATE,
Budgie, LXQt and GNOME with its extension show. Needs no toolkit."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dbus_fast import Message
from dbus_fast.errors import DBusError
from pystray import _base

from .icon import argb, draw
from .linux_bus import Bus, Interface, Method, owner_changes
from .linux_markup import escaped
from .linux_menu import PATH as MENU
from .linux_menu import Menu
from .model import Action, Icon, Look

NAME = "org.kde.StatusNotifierItem"
PATH = "/StatusNotifierItem"
WATCHER = "org.kde.StatusNotifierWatcher"
# What panels show: small ones, usual ones, large ones, and each for twice as many pixels.
_ASK_AGAIN = (0.2, 0.5, 1.0, 2.0, 5.0)
SIZES = (16, 22, 24, 32, 44, 48, 64)


class Item(_base.Icon):  # type: ignore[misc]  # pystray ships without types
    """pystray's icon holds what is shown and runs until it is stopped; this tells the bus."""

    HAS_DEFAULT_ACTION = False
    HAS_NOTIFICATION = False

    def __init__(self, bus: Bus, act: Callable[[Action], None], opened: Callable[[], None]) -> None:
        super().__init__("svcq", icon=Icon("down"), title="svcq")
        self._bus = bus
        self._drawn = Icon("down")
        self._lines = Menu(bus, act, opened)
        self._tooltip: tuple[str, ...] = ("svcq",)
        self._ended = threading.Event()
        self._registered = False
        bus.offer(PATH, self._interface())
        bus.offer(MENU, self._lines.interface())

    @property
    def is_shown(self) -> bool:
        """Whether some panel has taken it."""
        return self._registered

    def show(self, look: Look) -> None:
        self._bus.loop.call_soon_threadsafe(self._show_in_loop, look)

    def _show_in_loop(self, look: Look) -> None:
        if look.icon != self._drawn:
            self._drawn = look.icon
            self.icon = look.icon
        if look.tooltip != self._tooltip:
            self._tooltip = look.tooltip
            self.title = look.tooltip[0]
            self._say("NewToolTip")
        self._lines.set(look.menu)

    # On the bus

    async def begin(self, bus: Bus) -> None:
        await bus.follow(owner_changes(WATCHER))
        await bus.request_name(self._bus_name)
        if await bus.owner(WATCHER) is not None:
            await self._register()

    @property
    def _bus_name(self) -> str:
        return f"{NAME}-{os.getpid()}-1"

    async def _register(self) -> None:
        """With the panel; one that is only just coming up may need to be asked again."""
        member = f"{WATCHER}.RegisterStatusNotifierItem"
        for wait in _ASK_AGAIN:
            with suppress(DBusError, TimeoutError):
                await self._bus.call(WATCHER, "/StatusNotifierWatcher", member, "s", self._bus_name)
                self._registered = True
                return
            await asyncio.sleep(wait)

    def heard(self, message: Message) -> None:
        """A panel has come, or has gone."""
        if message.member == "NameOwnerChanged" and message.body and message.body[0] == WATCHER:
            self._registered = False
            if message.body[2]:
                self._bus.soon(self._register)

    def lost(self) -> None:
        self._registered = False

    def _interface(self) -> Interface:
        nothing = Method("ii", "", lambda *_: None)
        return Interface(
            NAME,
            {
                "ContextMenu": nothing,
                "Activate": nothing,
                "SecondaryActivate": nothing,
                "Scroll": Method("is", "", lambda *_: None),
            },
            {
                "Category": ("s", lambda: "ApplicationStatus"),
                "Id": ("s", lambda: "svcq"),
                "Title": ("s", lambda: "svcq"),
                "Status": ("s", lambda: "Active"),
                "WindowId": ("i", lambda: 0),
                "IconThemePath": ("s", str),
                "IconName": ("s", str),
                "IconPixmap": ("a(iiay)", lambda: pixmaps(self._drawn)),
                "OverlayIconName": ("s", str),
                "OverlayIconPixmap": ("a(iiay)", list),
                "AttentionIconName": ("s", str),
                "AttentionIconPixmap": ("a(iiay)", list),
                "AttentionMovieName": ("s", str),
                "ToolTip": ("(sa(iiay)ss)", self._tip),
                "ItemIsMenu": ("b", lambda: True),
                "Menu": ("o", lambda: MENU),
            },
        )

    def _tip(self) -> list[Any]:
        first, *rest = self._tooltip
        return ["", [], first, "\n".join(map(escaped, rest))]

    def _say(self, member: str) -> None:
        self._bus.soon(lambda: self._bus.signal(PATH, f"{NAME}.{member}"))

    # What pystray's icon asks of a backend

    def _show(self) -> None:
        self._say("NewIcon")

    def _hide(self) -> None:
        self._say("NewIcon")

    def _update_icon(self) -> None:
        self._icon_valid = True
        self._say("NewIcon")

    def _update_title(self) -> None:
        self._say("NewTitle")

    def _update_menu(self) -> None:
        """The lines of the menu come with `show`."""

    def _run(self) -> None:
        self._mark_ready()
        self._ended.wait()

    def _stop(self) -> None:
        self._ended.set()


def pixmaps(icon: Icon) -> list[Any]:
    return [[size, size, argb(draw(icon, size))] for size in SIZES]
