"""Notifications of the desktop (org.freedesktop.Notifications): shown, replaced, clicked.

Straight over the bus that is there anyway, so that a note can take the place of the one before it,
and so that it goes on when the one who shows them is started anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from dbus_fast import Message, Variant
from dbus_fast.errors import DBusError

from .icon import draw
from .linux_bus import Bus, owner_changes
from .linux_markup import escaped
from .model import Action, Note

NAME = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
_MOST_KNOWN = 200
_MOST_WAITING = 3
_SIZE = 64
_CLICK = "default"


class Notices:
    def __init__(self, bus: Bus, act: Callable[[Action], None]) -> None:
        self._bus = bus
        self._act = act
        self._numbers: dict[str, int] = {}
        self._shown: dict[int, Note] = {}
        self._markup = self._buttons = False
        self._owner: str | None = None
        self._waiting: deque[Note] = deque(maxlen=_MOST_WAITING)
        self.trouble = ""

    def show(self, note: Note) -> None:
        if self._bus.connected:
            self._bus.soon(lambda: self._show(note))
        else:
            self._waiting.append(note)

    async def begin(self, bus: Bus) -> None:
        await bus.follow(f"type='signal',interface='{NAME}',path='{PATH}'")
        await bus.follow(owner_changes(NAME))
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        """What could not be told while there was nobody; of much, the last."""
        waiting = list(self._waiting)
        self._waiting.clear()
        for note in waiting:
            self.show(note)

    def lost(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """Numbers are those of one who shows them; the next begins anew."""
        self._owner = None
        self._numbers.clear()
        self._shown.clear()

    async def _show(self, note: Note) -> None:
        try:
            if self._owner is None:
                await self._learn()
            number = await self._notify(note)
        except (DBusError, TimeoutError) as error:
            said = getattr(error, "text", "") or "no answer"
            self.trouble = (
                f"Nobody shows notifications here ({said[:80]}): start a daemon for them."
            )
            self._forget()
            self._waiting.append(note)
            return
        self.trouble = ""
        self._numbers[note.key] = number
        self._shown[number] = note
        while len(self._shown) > _MOST_KNOWN:
            gone = self._shown.pop(next(iter(self._shown)))
            self._numbers.pop(gone.key, None)

    async def _learn(self) -> None:
        """What they can do; asking starts one, where the bus knows how."""
        (can,) = await self._bus.call(NAME, PATH, f"{NAME}.GetCapabilities")
        self._markup, self._buttons = "body-markup" in can, "actions" in can
        self._owner = await self._bus.owner(NAME)

    async def _notify(self, note: Note) -> int:
        actions = [_CLICK, "Show"] if self._buttons else []
        for n, (label, _) in enumerate(note.buttons if self._buttons else ()):
            actions += [str(n), label]
        hints: dict[str, Variant] = {
            "urgency": Variant("y", 1),
            "desktop-entry": Variant("s", "svcq-tray"),
            "image-data": Variant("(iiibiiay)", _image(note)),
        }
        body = escaped(note.body) if self._markup else note.body
        (number,) = await self._bus.call(
            NAME, PATH, f"{NAME}.Notify", "susssasa{sv}i", "svcq",
            self._numbers.get(note.key, 0), "", note.title, body, actions, hints, -1,
        )  # fmt: skip
        return int(number)

    def heard(self, message: Message) -> None:
        if message.member == "NameOwnerChanged" and message.body and message.body[0] == NAME:
            self._forget()
            if message.body[2]:
                self._tell_waiting()
        if message.interface != NAME or message.sender != self._owner or len(message.body) < 2:
            return
        number, what = message.body[0], message.body[1]
        note = self._shown.get(number)
        if note is None:
            return
        if message.member == "ActionInvoked":
            action = _meant(note, what)
            if action is not None:
                self._act(action)
        elif message.member == "NotificationClosed":
            self._shown.pop(number, None)
            if self._numbers.get(note.key) == number:
                del self._numbers[note.key]


def _meant(note: Note, key: Any) -> Action | None:
    if key == _CLICK:
        return note.click
    known = {str(n): action for n, (_, action) in enumerate(note.buttons)}
    return known.get(str(key))


def _image(note: Note) -> list[Any]:
    image = draw(note.icon, _SIZE)
    return [_SIZE, _SIZE, 4 * _SIZE, True, 8, 4, image.tobytes()]
