"""A desktop for a test: an X server, a window manager, a session bus, a panel and a daemon that
shows notifications, all real and all of its own, so that any number of them run at a time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from tests.helpers import eventually

PATIENCE = 60.0  # seconds: desktops are slow on a busy machine
WIDTH, HEIGHT = 1000, 700
PANEL_HEIGHT = 28
# What the panel asks the bus to start. Nothing else may be: dunst, once installed, would be.
_XFCONF = Path("/usr/share/dbus-1/services/org.xfce.Xfconf.service")

_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={folder}/bus</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{folder}/services</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
  </policy>
</busconfig>
"""
_PANEL = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
 <property name="configver" type="int" value="2"/>
 <property name="panels" type="array"><value type="int" value="1"/>
  <property name="dark-mode" type="bool" value="{dark}"/>
  <property name="panel-1" type="empty">
   <property name="position" type="string" value="p=6;x=0;y=0"/>
   <property name="length" type="uint" value="100"/>
   <property name="position-locked" type="bool" value="true"/>
   <property name="size" type="uint" value="{size}"/>
   <property name="plugin-ids" type="array"><value type="int" value="1"/></property>
  </property></property>
 <property name="plugins" type="empty">
  <property name="plugin-1" type="string" value="systray">
   <property name="icon-size" type="int" value="22"/>
   <property name="square-icons" type="bool" value="true"/>
  </property></property>
</channel>
"""
_DUNST = """[global]
    geometry = "300x5-10+40"
    origin = top-right
    offset = 10x40
    width = 340
    font = DejaVu Sans 10
    markup = full
    format = "<b>%s</b>\\n%b"
    icon_position = left
    max_icon_size = 48
    min_icon_size = 48
    padding = 8
    horizontal_padding = 10
    frame_width = 1
    idle_threshold = 0
    show_indicators = no
    mouse_left_click = do_action, close_current
    mouse_right_click = close_current
    mouse_middle_click = context
    dmenu = {menu}
    history_length = 100
    browser = /bin/true
[urgency_normal]
    background = "#ffffff"
    foreground = "#20282c"
    frame_color = "#9aa6ac"
    timeout = 60
"""


class Box(NamedTuple):
    x: int
    y: int
    width: int
    height: int


class Told(NamedTuple):
    """A notification, as it was asked for."""

    at: float
    replaces: int
    title: str
    body: str
    buttons: list[str]


class Desktop:
    def __init__(self, panel: str = "xfce", *, dunst: bool = True, dark: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="svcq-x-"))
        self.folder.chmod(0o700)
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        self.panel = panel
        self.dark = dark
        (self.folder / "services").mkdir()
        # Without the line that has systemd start it.
        lines = [x for x in _XFCONF.read_text().splitlines() if not x.startswith("Systemd")]
        (self.folder / "services" / _XFCONF.name).write_text("\n".join(lines) + "\n")
        (self.folder / "bus.conf").write_text(_BUS.format(folder=self.folder))
        self.display = self._start_display()
        self.start_bus()
        self.start("openbox", ["openbox"])
        eventually(self._has_manager, PATIENCE)
        self.start_panel()
        if dunst:
            self.start_dunst()

    def close(self) -> None:
        for name in reversed(list(self.parts)):
            self.stop(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "DISPLAY": self.display,
            "XDG_RUNTIME_DIR": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / ".config"),
            "XDG_DATA_DIRS": "/usr/local/share:/usr/share",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder}/bus",
            "NO_AT_BRIDGE": "1",
            "GTK_THEME": "Adwaita:dark" if self.dark else "Adwaita",
        }

    # Its parts

    def start(self, name: str, command: Sequence[str], **more: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, env={**self.environment, **more}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        self.parts[name] = process
        return process

    def stop(self, name: str) -> None:
        process = self.parts.pop(name)
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _start_display(self) -> str:
        """The server chooses a number that nobody has."""
        reading, writing = os.pipe()
        with (self.folder / "xvfb.log").open("wb") as log:
            self.parts["xvfb"] = subprocess.Popen(
                ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{WIDTH}x{HEIGHT}x24",
                 "-nolisten", "tcp", "-noreset"],
                pass_fds=[writing], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        os.close(writing)
        with os.fdopen(reading) as said:
            number = said.readline().strip()
        assert number, self.said("xvfb")
        return f":{number}"

    def start_bus(self) -> None:
        self.start("bus", ["dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork"])
        eventually(self._bus_answers, PATIENCE)

    def _bus_answers(self) -> bool:
        return self.ask_bus("GetId") != ""

    def ask_bus(self, *words: str) -> str:
        ran = subprocess.run(
            ["busctl", "--user", "--timeout=5", "call", "org.freedesktop.DBus", "/",
             "org.freedesktop.DBus", *words],
            env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return ran.stdout.strip()

    def owns(self, name: str) -> bool:
        return self.ask_bus("NameHasOwner", "s", name) == "b true"

    def _has_manager(self) -> bool:
        ran = self.run("xprop", "-root", "_NET_SUPPORTING_WM_CHECK", check=False)
        return "window id" in ran.stdout

    def start_panel(self) -> None:
        if self.panel == "xfce":
            folder = self.folder / ".config/xfce4/xfconf/xfce-perchannel-xml"
            folder.mkdir(parents=True, exist_ok=True)
            text = _PANEL.format(dark=str(self.dark).lower(), size=PANEL_HEIGHT)
            (folder / "xfce4-panel.xml").write_text(text)
            self.start("panel", ["xfce4-panel", "--disable-wm-check"])
            eventually(lambda: self.owns("org.kde.StatusNotifierWatcher"), PATIENCE)
        elif self.panel == "trayer":
            self.start(
                "panel",
                ["trayer", "--edge", "top", "--align", "left", "--widthtype", "pixel", "--width",
                 "160", "--height", str(PANEL_HEIGHT), "--SetDockType", "true", "--transparent",
                 "false"],
            )  # fmt: skip
            eventually(lambda: "trayer" in self.windows(), PATIENCE)

    def start_dunst(self) -> None:
        menu = self.folder / "menu.sh"
        menu.write_text(f'#!/bin/sh\nexec grep -m1 -F "$(cat {self.folder}/wanted)"\n')
        menu.chmod(0o755)
        (self.folder / "dunstrc").write_text(_DUNST.format(menu=menu))
        self.start("dunst", ["dunst", "-conf", str(self.folder / "dunstrc")])
        eventually(lambda: self.owns("org.freedesktop.Notifications"), PATIENCE)

    def start_monitor(self) -> None:
        """Notes whatever is told to whoever shows notifications."""
        rule = "interface='org.freedesktop.Notifications',member='Notify'"
        self.start("monitor", ["dbus-monitor", "--session", rule])
        eventually(lambda: "NameAcquired" in self.said("monitor"), PATIENCE)

    def notes(self) -> list[Told]:
        """All that was told since then."""
        found = []
        for part in self.said("monitor").split("method call time=")[1:]:
            if "member=Notify" not in part:
                continue
            texts = re.findall(r'^   string "(.*?)"$', part, re.MULTILINE | re.DOTALL)
            replaced = re.search(r"^   uint32 (\d+)$", part, re.MULTILINE)
            assert replaced is not None
            buttons = re.findall(r'^      string "(.*?)"$', part, re.MULTILINE)
            told = Told(float(part.split()[0]), int(replaced[1]), texts[2], texts[3], buttons[1::2])
            found.append(told)
        return found

    # What someone at it does and sees

    def run(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            [str(word) for word in words], env=self.environment, capture_output=True, text=True,
            check=False, timeout=PATIENCE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if check and ran.returncode:
            raise AssertionError(f"{ran.args} ended with {ran.returncode}: {ran.stderr}")
        return ran

    def windows(self) -> str:
        return self.run("xwininfo", "-root", "-tree").stdout

    def titles(self) -> list[str]:
        found = self.run("xdotool", "search", "--onlyvisible", "--name", ".", check=False)
        names = []
        for window in found.stdout.split():
            name = self.run("xdotool", "getwindowname", window, check=False).stdout.strip()
            names.append(name)
        return names

    def shot(self, file: Path | None = None) -> Image.Image:
        place = file or self.folder / "shot.png"
        self.run("import", "-window", "root", place)
        with Image.open(place) as image:
            return image.convert("RGB")

    def click(self, x: int, y: int, button: int = 1) -> None:
        self.run("xdotool", "mousemove", x, y, "click", button)

    def move(self, x: int, y: int) -> None:
        self.run("xdotool", "mousemove", x, y)

    def key(self, *names: str) -> None:
        self.run("xdotool", "key", *names)

    def type(self, text: str) -> None:
        self.run("xdotool", "type", "--delay", "5", text)

    def find(self, colour: tuple[int, int, int], box: tuple[int, int, int, int] | None = None,
             near: int = 12) -> tuple[int, int] | None:  # fmt: skip
        """The middle of what has that colour, where there is enough of it to be no accident."""
        image = self.shot()
        left, top, right, bottom = box or (0, 0, WIDTH, PANEL_HEIGHT)
        pixels = image.load()
        assert pixels is not None
        hits = [
            (x, y)
            for x in range(left, right)
            for y in range(top, bottom)
            if all(abs(a - b) <= near for a, b in zip(pixels[x, y], colour, strict=True))
        ]
        if len(hits) < 20:
            return None
        xs, ys = sorted(x for x, _ in hits), sorted(y for _, y in hits)
        return xs[len(xs) // 2], ys[len(ys) // 2]

    def menus(self) -> dict[str, Box]:
        """The menus that are open, by their windows."""
        found = {}
        for line in self.windows().splitlines():
            place = _geometry(line)
            window = line.split()[0] if place else ""
            if place and place.width > 60 and place.height > 20 and self._is_menu(window):
                found[window] = place
        return found

    def _is_menu(self, window: str) -> bool:
        kind = self.run("xprop", "-id", window, "_NET_WM_WINDOW_TYPE", check=False).stdout
        state = self.run("xwininfo", "-id", window, check=False).stdout
        return "_MENU" in kind and "IsViewable" in state


def _geometry(line: str) -> Box | None:
    found = re.search(r" (\d+)x(\d+)\+-?\d+\+-?\d+  \+(-?\d+)\+(-?\d+)", line)
    if not found:
        return None
    width, height, x, y = map(int, found.groups())
    return Box(x, y, width, height)
