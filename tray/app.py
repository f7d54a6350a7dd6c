"""The tray as a whole: what follows, looks, tells and does, put together."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import svcq
from svcq import host
from svcq.client.remote import RemoteClient
from svcq.config import Followed
from svcq.config.settings import Tray
from svcq.errors import Refused, SvcqError
from svcq.host import processes
from svcq.version import __version__

from . import ask, door
from .actions import Actions
from .desktop import Desktop, need_display
from .door import Door
from .facts import Facts
from .feed import Feed, News
from .model import Action, Look, Situation, Snapshot
from .notify import Teller
from .state import state_of
from .view import view

_GAP = 0.25  # seconds between two looks, however much happens
_EVERY = 5.0  # seconds after which it is looked again: pauses of queues are in no stream
_AWAY = 1.0
_RESTARTED = "SVCQ_TRAY_RESTARTED"


def run(say: Callable[[str], None]) -> int:
    """Until someone quits it."""
    need_display()
    found = door.find()
    lock = _only_one(found)
    try:
        app = App(found)
        return app.run(say)
    finally:
        os.close(lock)


def _only_one(found: Door) -> int:
    """One for each session and service."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
    session = "\n".join([str(found.socket), *(os.environ.get(name, "") for name in names)])
    sum_of = hashlib.blake2b(session.encode(), digest_size=6).hexdigest()
    host.private_directory(found.own)
    path = found.own / f"tray-{sum_of}.lock"
    lock = processes.hold_lock(path)
    if lock is None:
        raise Refused(
            f"The tray of this session runs already, with pid {path.read_text() or 'unknown'}: "
            "its icon is in the panel; Quit in its menu ends it."
        )
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    return lock


class App:
    def __init__(self, found: Door) -> None:
        self._door = found
        self._kept = state_of(found)
        self._settings = Followed(found.settings())
        self._snapshot: Snapshot | None = None
        self._says = ""
        self._shown: Look | None = None
        self._dirty = threading.Event()
        self._leaving = threading.Event()
        self._start_anew = False
        self._desktop = Desktop(self._act, self._dirty.set)
        show = self._desktop.notices.show
        self._actions = Actions(found, self._kept, self._dirty.set, show, self.leave)
        self._teller = Teller(found, self._kept, show, self._tray, self._rules)
        self._feed = Feed(found.connect, self._kept.cursor, self._hear, self._dirty.set)
        self._facts = Facts(found, self.leave)
        self._looker = threading.Thread(target=self._look_on, name="looker", daemon=True)

    def run(self, say: Callable[[str], None]) -> int:
        panel = self._desktop.panel
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.leave())
        self._start_service()
        self._looker.start()
        self._teller.start()
        self._feed.start()
        self._facts.start()

        def begin(icon: Any) -> None:
            icon.visible = True
            say("The tray runs.")
            for trouble in self._desktop.troubles():
                say(trouble)

        panel.run(begin)
        self.close()
        if self._start_anew:
            os.environ[_RESTARTED] = _on_disk()
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606  (the same program, as it is now)
        return 0

    def leave(self) -> None:
        """From whichever thread."""
        if not self._leaving.is_set():
            self._leaving.set()
            self._dirty.set()
            threading.Thread(target=self._desktop.panel.stop, daemon=True).start()

    def close(self) -> None:
        self._leaving.set()
        self._dirty.set()
        for part in (self._facts, self._feed, self._teller):
            part.stop()
        self._actions.close()
        self._desktop.close()

    def _act(self, action: Action) -> None:
        self._actions(action)

    def _start_service(self) -> None:
        """The user's own, where none runs; the machine's is not for us to start unasked."""
        if self._door.whose != "own" or self._tray().start_service == "no":
            return
        connection = self._door.connect()
        try:
            connection.ask("GET", "/service")
        except door.WRONG:
            self._says = "svcq is being started."
            self._actions(Action("start"))
        finally:
            connection.close()

    # What the others ask

    def _tray(self) -> Tray:
        with suppress(SvcqError):  # with a mistake in the file, what was said before holds
            self._settings.changed()
        return self._settings.config.tray

    def _rules(self) -> dict[str, str]:
        known = self._snapshot
        return {} if known is None else dict(known.rules)

    def _hear(self, news: News) -> None:
        self._teller.hear(news)

    # Looking

    def _look_on(self) -> None:
        client: RemoteClient | None = None
        while not self._leaving.is_set():
            began = time.monotonic()
            self._dirty.clear()
            try:
                client = client or self._door.client()
                was_away = self._snapshot is None
                self._snapshot, self._says = ask.look(client), ""
                if was_away:
                    self._feed.hurry()
                self._follow_upgrade(self._snapshot)
            except door.WRONG as error:
                self._snapshot = None
                self._says = door.says(error, self._door)
                if client is not None:
                    client.close()
                    client = None
            self._show()
            self._leaving.wait(max(began + _GAP - time.monotonic(), 0))
            self._dirty.wait(_AWAY if self._snapshot is None else _EVERY)

    def _show(self) -> None:
        look = view(self._situation())
        if look != self._shown:
            self._desktop.panel.show(look)
            self._shown = look

    def _situation(self) -> Situation:
        troubles = self._desktop.troubles()
        if self._snapshot is not None and self._feed.trouble:
            troubles.append(f"Changes are not followed just now: {self._feed.trouble}")
        return Situation(
            self._snapshot, self._says, len(self._kept.unseen), tuple(troubles), self._door.whose
        )

    def _follow_upgrade(self, known: Snapshot) -> None:
        """When svcq was upgraded under us, be the new one."""
        other = known.version != __version__ and known.version == _on_disk()
        if other and os.environ.get(_RESTARTED) != known.version:
            self._start_anew = True
            self.leave()


def _on_disk() -> str:
    """The version of the program as it would now be started."""
    with suppress(OSError):
        text = Path(str(svcq.__file__)).with_name("version.py").read_text("utf-8")
        if found := re.search(r'"([^"]+)"', text):
            return found[1]
    return ""
