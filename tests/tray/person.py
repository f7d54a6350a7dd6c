"""Someone at a desktop with svcq in its panel: what they click, and what they see."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers import eventually
from tests.lifecycle.homes import Home
from tests.tray.desktop import PATIENCE, Box, Desktop

TEAL, RING, RED, GREY, BLUE = (
    (11, 114, 104), (64, 224, 190), (214, 48, 49), (110, 120, 128), (58, 96, 150)
)  # fmt: skip
SETTINGS = """
[jobs]
grace = "500ms"
max_attempts = 1

[tray]
start_service = "no"
"""


class Line(NamedTuple):
    number: int
    text: str
    enabled: bool
    separator: bool
    below: tuple[Line, ...]


class Person:
    def __init__(self, desktop: Desktop, folder: Path, settings: str = SETTINGS) -> None:
        self.desktop = desktop
        self.home = Home(folder, settings)
        self.browser = desktop.folder / "browser"
        self.opened = desktop.folder / "opened"
        # Reads what it is to show while it is there, as a browser does.
        self.browser.write_text(f'#!/bin/sh\ncat "${{1#file://}}" >> {self.opened}\n')
        self.browser.chmod(0o755)
        self.shown = Box(0, 0, 0, 0)
        """The menu that was opened last."""

    def close(self) -> None:
        if "tray" in self.desktop.parts:
            self.desktop.stop("tray")
        self.home.close()

    # The tray

    @property
    def environment(self) -> dict[str, str]:
        return {"SVCQ_HOME": str(self.home.path), "BROWSER": str(self.browser)}

    def start(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        command = list(words) or [sys.executable, "-m", "svcq", "tray"]
        tray = self.desktop.start("tray", command, **{**self.environment, **more})
        eventually(lambda: self._runs(tray), PATIENCE)
        return tray

    def _runs(self, tray: subprocess.Popen[bytes]) -> bool:
        assert tray.poll() is None, self.desktop.said("tray")
        return "The tray runs." in self.desktop.said("tray")

    def serve(self) -> subprocess.Popen[str]:
        """`svcq up`, until the tray shows it."""
        up = self.home.start("up")
        if "tray" in self.desktop.parts:
            self.sees("svcq: ")
        return up

    def follows(self) -> None:
        """Wait until whatever happens from now on is heard."""
        eventually(
            lambda: any('"cursor": null' not in one.read_text() for one in self.kept()), PATIENCE
        )

    def kept(self) -> list[Path]:
        """What it remembers."""
        return [one for one in self.home.path.glob("tray-*.json") if "commands" not in one.name]

    # What is on the bus

    @property
    def item(self) -> str:
        return f"org.kde.StatusNotifierItem-{self.desktop.parts['tray'].pid}-1"

    def ask(self, *words: str) -> Any:
        ran = self.desktop.run("busctl", "--user", "--json=short", "--timeout=10", "--", *words)
        return json.loads(ran.stdout)["data"]

    def property(self, name: str) -> Any:
        interface = "org.kde.StatusNotifierItem"
        return self.ask("get-property", self.item, "/StatusNotifierItem", interface, name)

    def tooltip(self) -> list[str]:
        _, _, first, rest = self.property("ToolTip")
        return [first, *filter(None, rest.split("\n"))]

    def sees(self, text: str) -> list[str]:
        """Wait until the tooltip says it."""

        def looked() -> list[str]:
            with suppress(AssertionError):  # it may just be connecting anew
                said = self.tooltip()
                return said if text in "\n".join(said) else []
            return []

        return eventually(looked, PATIENCE)

    def menu(self) -> tuple[Line, ...]:
        _, root = self.ask(
            "call", self.item, "/MenuBar", "com.canonical.dbusmenu", "GetLayout", "iias", "0",
            "-1", "0",
        )  # fmt: skip
        return _line(root).below

    def texts(self) -> list[str]:
        return [line.text for line in _all(self.menu())]

    def has(self, text: str) -> Line:
        """Wait until the menu has such a line."""
        found: Line = eventually(
            lambda: next((line for line in _all(self.menu()) if text in line.text), None), PATIENCE
        )
        return found

    def click_line(self, text: str) -> None:
        """As a panel tells of a click, once there is such a line."""
        found = eventually(
            lambda: [line for line in _all(self.menu()) if line.text == text and line.enabled],
            PATIENCE,
        )
        self.click_number(found[0].number)

    def click_number(self, number: int) -> None:
        self.desktop.run(
            "busctl", "--user", "call", self.item, "/MenuBar", "com.canonical.dbusmenu", "Event",
            "isvu", number, "clicked", "i", 0, 0,
        )  # fmt: skip

    # With the mouse and the keyboard

    def icon(self, colour: tuple[int, int, int]) -> tuple[int, int]:
        """Where in the panel it is, once it has that colour."""
        return eventually(lambda: self.desktop.find(colour), PATIENCE)

    def open_menu(self, colour: tuple[int, int, int] = TEAL, button: int = 1) -> Box:
        x, y = self.icon(colour)
        before = self.desktop.menus()
        self.desktop.click(x, y, button)
        return self._opened(before)

    def _opened(self, before: dict[str, Box]) -> Box:
        """The menu that has just opened, once it keeps its place."""

        def settled() -> Box | None:
            new = {one: box for one, box in self.desktop.menus().items() if one not in before}
            same = new and self.desktop.menus().items() >= new.items()
            return next(iter(new.values())) if same else None

        self.shown = eventually(settled, PATIENCE)
        return self.shown

    def choose(self, *path: str) -> None:
        """In the open menu, with the mouse."""
        lines = self.menu()
        for text in path:
            before = self.desktop.menus()
            n = next(i for i, line in enumerate(lines) if line.enabled and text in line.text)
            height = list(_heights(lines, self.shown.height))[n]
            self.desktop.click(self.shown.x + self.shown.width // 3, self.shown.y + height)
            lines = lines[n].below
            if lines:
                self._opened(before)

    def choose_line(self, n: int, *, of: int) -> None:
        """In the menu that was opened last, by its place; what opens is the next one."""
        before = self.desktop.menus()
        y = self.shown.y + _MARGIN + round((n + 0.5) * (self.shown.height - 2 * _MARGIN) / of)
        self.desktop.click(self.shown.x + self.shown.width // 3, y)
        if n == 1:
            self._opened(before)

    def dialog(self, title: str) -> None:
        """Wait until it is there, and takes what is typed."""
        eventually(lambda: title in self.desktop.titles(), PATIENCE)
        eventually(
            lambda: title in self.desktop.run(
                "xdotool", "getactivewindow", "getwindowname", check=False
            ).stdout,
            PATIENCE,
        )  # fmt: skip

    def no_dialog(self, title: str) -> None:
        eventually(lambda: title not in self.desktop.titles(), PATIENCE)

    def page(self) -> str:
        """What the browser was told to open."""
        return eventually(lambda: self.opened.exists() and self.opened.read_text(), PATIENCE)


def _heights(lines: tuple[Line, ...], height: int) -> Iterator[int]:
    """Where the middle of each line is, in a menu as GTK draws it."""
    separators = sum(line.separator for line in lines)
    each = (height - 2 * _MARGIN - separators) / (len(lines) - separators)
    at = float(_MARGIN)
    for line in lines:
        size = 1 if line.separator else each
        yield round(at + size / 2)
        at += size


_MARGIN = 4


def _line(node: Any) -> Line:
    number, said, below = node
    known = {key: value["data"] for key, value in said.items()}
    text = known.get("label", "").replace("__", "_")
    lines = tuple(_line(one["data"]) for one in below)
    separator = known.get("type") == "separator"
    return Line(number, text, known.get("enabled", True), separator, lines)


def _all(lines: tuple[Line, ...]) -> Iterator[Line]:
    for line in lines:
        yield line
        yield from _all(line.below)
