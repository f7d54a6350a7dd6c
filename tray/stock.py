"""An icon by one of pystray's own backends, where that is what shows one: GTK's for the older kind
of tray, Windows' for its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pystray

from .icon import draw
from .model import SEPARATOR, Action, Icon, Item, Look

_SIZE = 64
_TIP = 120  # characters: Windows shows no more


class Stock:
    is_shown = True

    def __init__(self, act: Callable[[Action], None]) -> None:
        self._act = act
        self._lock = threading.Lock()
        self._look: Look | None = None
        self._icon = pystray.Icon("svcq", draw(Icon("down"), _SIZE), "svcq")

    def run(self, setup: Callable[[Any], None]) -> None:
        # A loop in C hears no handler of Python's: what is remembered is on the disk anyway.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._icon.run(setup)

    def stop(self) -> None:
        self._icon.stop()

    @property
    def visible(self) -> bool:
        return bool(self._icon.visible)

    @visible.setter
    def visible(self, wish: bool) -> None:
        self._icon.visible = wish

    def show(self, look: Look) -> None:
        with self._lock:
            before, self._look = self._look, look
            if before is None or before.icon != look.icon:
                self._icon.icon = draw(look.icon, _SIZE)
            if before is None or before.tooltip != look.tooltip:
                self._icon.title = "\n".join(look.tooltip)[:_TIP]
            if before is None or before.menu != look.menu:
                self._icon.menu = self._menu(look.menu)

    def _menu(self, items: Sequence[Item]) -> Any:
        return pystray.Menu(*(self._line(item) for item in items))

    def _line(self, item: Item) -> Any:
        if item.key.startswith(SEPARATOR):
            return pystray.Menu.SEPARATOR
        if item.children:
            return pystray.MenuItem(item.text, self._menu(item.children), enabled=item.enabled)
        action = item.action

        def clicked() -> None:
            if action is not None:
                self._act(action)

        return pystray.MenuItem(item.text, clicked, enabled=item.enabled)
