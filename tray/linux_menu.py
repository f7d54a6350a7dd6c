"""The menu over D-Bus: com.canonical.dbusmenu, as panels draw it.

A line keeps its number for as long as its key lives, and no number is used twice: a click on a line
that has gone meanwhile does nothing, and never something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from dbus_fast import Variant
from dbus_fast.errors import DBusError

from .linux_bus import Bus, Interface, Method
from .model import SEPARATOR, Action, Item

NAME = "com.canonical.dbusmenu"
PATH = "/MenuBar"
_ROOT = 0


class Menu:
    def __init__(self, bus: Bus, act: Callable[[Action], None], opened: Callable[[], None]) -> None:
        self._bus = bus
        self._act = act
        self._opened = opened
        self._numbers: dict[str, int] = {}
        self._next = count(1)
        self._revision = 1
        self._items: dict[int, Item] = {_ROOT: Item("root")}

    def interface(self) -> Interface:
        return Interface(
            NAME,
            {
                "GetLayout": Method("iias", "u(ia{sv}av)", self._get_layout),
                "GetGroupProperties": Method("aias", "a(ia{sv})", self._get_group),
                "GetProperty": Method("is", "v", self._get_one),
                "Event": Method("isvu", "", self._event),
                "EventGroup": Method("a(isvu)", "ai", self._events),
                "AboutToShow": Method("i", "b", lambda _: False),
                "AboutToShowGroup": Method("ai", "aiai", lambda _: ([], [])),
            },
            {
                "Version": ("u", lambda: 3),
                "TextDirection": ("s", lambda: "ltr"),
                "Status": ("s", lambda: "normal"),
                "IconThemePath": ("as", list),
            },
        )

    def set(self, items: Sequence[Item]) -> None:
        """In the loop of the bus. An open menu changes its words in place."""
        before, self._items = self._items, {}
        self._take(Item("root", children=tuple(items)), _ROOT)
        for gone in set(self._numbers) - {item.key for item in self._items.values()}:
            del self._numbers[gone]
        if _shape(before) != _shape(self._items):
            self._revision += 1
            self._tell("LayoutUpdated", "ui", self._revision, _ROOT)
            return
        changed = [
            [number, _properties(item)]
            for number, item in self._items.items()
            if _properties(item) != _properties(before[number])
        ]
        if changed:
            self._tell("ItemsPropertiesUpdated", "a(ia{sv})a(ias)", changed, [])

    def _take(self, item: Item, number: int) -> None:
        self._items[number] = item
        for child in item.children:
            if child.key not in self._numbers:
                self._numbers[child.key] = next(self._next)
            self._take(child, self._numbers[child.key])

    def _tell(self, member: str, signature: str, *values: Any) -> None:
        self._bus.soon(lambda: self._bus.signal(PATH, f"{NAME}.{member}", signature, *values))

    # What panels ask

    def _get_layout(self, parent: int, depth: int, wanted: list[str]) -> tuple[int, list[Any]]:
        return self._revision, self._layout(parent, depth, wanted)

    def _layout(self, number: int, depth: int, wanted: list[str]) -> list[Any]:
        item = self._item(number)
        children = item.children if depth else ()
        below = [self._layout(self._numbers[one.key], depth - 1, wanted) for one in children]
        return [number, _chosen(item, wanted), [Variant("(ia{sv}av)", one) for one in below]]

    def _item(self, number: int) -> Item:
        if number not in self._items:
            raise DBusError("org.freedesktop.DBus.Error.InvalidArgs", f"there is no line {number}")
        return self._items[number]

    def _get_group(self, numbers: list[int], wanted: list[str]) -> list[Any]:
        known = [one for one in numbers or self._items if one in self._items]
        return [[one, _chosen(self._items[one], wanted)] for one in known]

    def _get_one(self, number: int, name: str) -> Variant:
        return _properties(self._item(number)).get(name, Variant("s", ""))

    def _event(self, number: int, kind: str, _data: Variant, _time: int) -> None:
        if kind == "opened" and number == _ROOT:
            self._opened()
        item = self._items.get(number)
        if kind == "clicked" and item is not None and item.action is not None and item.enabled:
            self._act(item.action)

    def _events(self, events: list[Any]) -> list[int]:
        for number, kind, data, time in events:
            self._event(number, kind, data, time)
        return [event[0] for event in events if event[0] not in self._items]


def _shape(items: dict[int, Item]) -> dict[int, tuple[str, ...]]:
    return {number: tuple(one.key for one in item.children) for number, item in items.items()}


def _properties(item: Item) -> dict[str, Variant]:
    if item.key.startswith(SEPARATOR):
        return {"type": Variant("s", "separator")}
    # A single underline would be taken for the mark of a key.
    label = item.text.replace("_", "__")
    said = {"label": Variant("s", label), "enabled": Variant("b", item.enabled)}
    if item.children:
        said["children-display"] = Variant("s", "submenu")
    return said


def _chosen(item: Item, wanted: list[str]) -> dict[str, Variant]:
    return {key: value for key, value in _properties(item).items() if not wanted or key in wanted}
