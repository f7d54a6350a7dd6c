"""Whatever goes wrong around it, the tray stays, says so, and goes on by itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import ROOT
from tests.helpers import eventually
from tests.tray.desktop import PATIENCE, Desktop
from tests.tray.person import GREY, RED, RING, TEAL, Person
from tests.tray.wrong import Wrong, answer

ITEM = "org.kde.StatusNotifierItem"


@pytest.fixture
def waiting(desktop: Desktop, tmp_path: Path) -> Iterator[Person]:
    """The tray runs, and no service."""
    person = Person(desktop, tmp_path)
    person.start()
    person.sees("svcq does not run")
    yield person
    person.close()


def test_the_service_goes_and_comes_back(person: Person) -> None:
    up = person.home.started[0]
    up.kill()
    person.icon(GREY)
    person.sees("svcq does not run")
    person.home.client.command("exit 3", name="meanwhile")
    person.home.start("up")
    person.sees("svcq: ")
    person.icon(RED)  # what has happened since is told
    eventually(
        lambda: "Failed: meanwhile" in [note.title for note in person.desktop.notes()], PATIENCE
    )


def test_a_service_that_hangs_is_said_and_followed_again(person: Person) -> None:
    up = person.home.started[0]
    up.send_signal(signal.SIGSTOP)
    try:
        person.sees("svcq does not answer")
    finally:
        up.send_signal(signal.SIGCONT)
    person.sees("svcq: nothing to do")
    person.home.run("exit 3")
    person.icon(RED)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (answer("500 Internal Server Error", b"<h1>Oops</h1>", "text/html"), "500"),
        (answer("200 OK", b"[[["), "does not understand"),
        (answer("200 OK", b'{"caller": 7}'), "does not understand"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not answer"),
    ],
    ids=["500", "no JSON", "other JSON", "no HTTP"],
)
def test_answers_that_make_no_sense(waiting: Person, said: bytes, shown: str) -> None:
    wrong = Wrong(waiting.home.path / "service.sock", said)
    try:
        eventually(lambda: wrong.asked > 3, PATIENCE)
        waiting.sees(shown)
        waiting.icon(GREY)
        assert waiting.desktop.parts["tray"].poll() is None
    finally:
        wrong.close()
    waiting.serve()
    waiting.icon(TEAL)
    assert "Traceback" not in waiting.desktop.said("tray")


def test_a_service_of_another_version_is_said(waiting: Person, tmp_path: Path) -> None:
    other = copied(tmp_path, "9.9.9")
    waiting.home.start("up", cwd=other, env={"PYTHONPATH": str(other)})
    waiting.sees("The service is svcq 9.9.9, this tray")
    waiting.home.started[-1].terminate()
    waiting.home.started[-1].wait(PATIENCE)
    waiting.serve()
    eventually(lambda: "9.9.9" not in "".join(waiting.tooltip()), PATIENCE)


def copied(folder: Path, version: str) -> Path:
    place = folder / "copy"
    for source, name in (("svcq", "svcq"), ("tray", "svcq_tray")):
        shutil.copytree(ROOT / source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "svcq" / "version.py").write_text(f'__version__ = "{version}"\n')
    return place


def test_names_of_ten_thousand_characters_with_markup(person: Person) -> None:
    name = "<b>&\x1b[31m\u202e_x_" * 1000
    person.home.add(f"sleep 600 # {name}")
    person.icon(RING)
    said = person.sees("sleep 600 # &lt;b&gt;&amp; _x_")
    assert all(len(line) < 200 for line in person.tooltip())
    assert said[0] == "svcq: 1 running"
    assert all(len(text) < 200 for text in person.texts())
    person.open_menu(TEAL)
    person.choose("sleep 600", "Stop")
    person.home.ended(1)


def test_the_panel_is_started_anew(person: Person) -> None:
    person.icon(TEAL)
    person.desktop.stop("panel")
    person.sees("Nobody here shows icons")
    person.desktop.start_panel()
    person.icon(TEAL)
    person.open_menu(TEAL)
    person.choose("Quit")
    assert person.desktop.parts["tray"].wait(PATIENCE) == 0


def test_the_session_bus_goes_and_comes_back(person: Person) -> None:
    person.icon(TEAL)
    for part in ("panel", "dunst", "monitor", "bus"):
        person.desktop.stop(part)
    assert person.home.run("exit 3", name="meanwhile").state == "dead"
    person.desktop.start_bus()
    person.desktop.start_monitor()
    person.desktop.start_panel()
    person.desktop.start_dunst()
    person.icon(RED)
    person.home.run("exit 3", name="afterwards")
    for name in ("meanwhile", "afterwards"):
        title = f"Failed: {name}"
        eventually(lambda title=title: is_told(person, title), PATIENCE)


def is_told(person: Person, title: str) -> bool:
    return title in [note.title for note in person.desktop.notes()]


def test_panels_that_ask_for_nonsense_get_an_error(person: Person) -> None:
    for words in (
        ("/MenuBar", "com.canonical.dbusmenu", "GetLayout", "iias", "777", "0", "0"),
        ("/MenuBar", "com.canonical.dbusmenu", "GetProperty", "is", "777", "label"),
        ("/MenuBar", "com.canonical.dbusmenu", "AboutToShow", "s", "x"),
        ("/MenuBar", "com.canonical.dbusmenu", "Explode"),
        ("/StatusNotifierItem", ITEM, "Scroll", "i", "1"),
        ("/StatusNotifierItem", "org.freedesktop.DBus.Properties", "Get", "ss", ITEM, "Nothing"),
        ("/StatusNotifierItem", "org.freedesktop.DBus.Properties", "Get", "ss", "no.such", "Id"),
        (
            "/StatusNotifierItem",
            "org.freedesktop.DBus.Properties",
            "Set",
            "ssv",
            ITEM,
            "Id",
            "s",
            "x",
        ),
    ):
        ran = person.desktop.run("busctl", "--user", "call", person.item, *words, check=False)
        assert ran.returncode == 1, words
    person.click_number(777)
    person.desktop.run("busctl", "--user", "introspect", person.item, "/MenuBar")
    assert person.property("Id") == "svcq"


def test_a_click_on_a_line_that_has_gone_does_nothing(person: Person) -> None:
    first, second = (
        person.home.add("sleep 600", name="first"),
        person.home.add("sleep 600", name="second"),
    )
    person.home.wait_until_running(first)
    person.home.wait_until_running(second)
    line = person.has("first")
    stop = next(one for one in line.below if one.text == "Stop")
    person.click_number(stop.number)
    person.home.ended(first)
    eventually(lambda: "first" not in "".join(person.tooltip()), PATIENCE)
    person.click_number(stop.number)
    person.home.run("true")
    assert person.home.is_running(second)
    person.home.client.cancel(second)


def test_what_did_not_work_is_told(person: Person) -> None:
    person.home.client.schedule("nightly", "true", cron="0 3 * * *")
    line = person.has("Run now")
    up = person.home.started[0]
    up.kill()
    up.wait()
    person.click_number(line.number)
    eventually(
        lambda: "That did not work" in [note.title for note in person.desktop.notes()], PATIENCE
    )


def refused(desktop: Desktop, home: Path, **more: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "svcq", "tray"], capture_output=True, text=True, check=False,
        env={**desktop.environment, "SVCQ_HOME": str(home), **more}, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.stdout == ""
    assert ran.stderr.startswith("svcq: ")
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert ran.stderr.endswith(".\n")
    return f"{ran.returncode} {ran.stderr}"


def test_one_tray_for_each_session(person: Person) -> None:
    said = refused(person.desktop, person.home.path)
    assert said.startswith("1 ")
    assert f"pid {person.desktop.parts['tray'].pid}" in said


def test_without_a_display_or_a_bus_it_says_so(bare: Desktop, tmp_path: Path) -> None:
    assert "no display" in refused(bare, tmp_path / "h", DISPLAY="")
    assert "':4711' cannot be reached" in refused(bare, tmp_path / "h", DISPLAY=":4711")
    assert "'w' cannot be reached" in refused(bare, tmp_path / "h", WAYLAND_DISPLAY="w")
    said = refused(bare, tmp_path / "h", DBUS_SESSION_BUS_ADDRESS="", XDG_RUNTIME_DIR="")
    assert said.startswith("4 ")
    assert "session bus" in said
    gone = refused(bare, tmp_path / "h", DBUS_SESSION_BUS_ADDRESS="unix:path=/nowhere")
    assert "session bus does not answer" in gone
    odd = refused(bare, tmp_path / "h", DBUS_SESSION_BUS_ADDRESS="what:is this")
    assert "session bus does not answer" in odd


def test_where_nobody_shows_icons_it_runs_and_says_so(alone: Person) -> None:
    alone.desktop.start_dunst()
    alone.desktop.start_monitor()
    alone.home.start("up")
    alone.start()
    alone.follows()
    alone.sees("Nobody here shows icons")
    eventually(lambda: "Nobody here shows icons" in alone.desktop.said("tray"), PATIENCE)
    alone.home.run("exit 3", name="render")
    eventually(lambda: "Failed: render" in [note.title for note in alone.desktop.notes()], PATIENCE)
    ran = subprocess.run(
        [sys.executable, "-m", "svcq", "doctor"], capture_output=True, text=True, check=False,
        env={**alone.desktop.environment, **alone.environment}, timeout=PATIENCE,
    )  # fmt: skip
    assert "tray: there is no icon: nobody shows icons of programs" in ran.stdout


def test_the_older_kind_of_tray_without_gtk_is_said(tmp_path: Path) -> None:
    desktop = Desktop("trayer", dunst=False)
    person = Person(desktop, tmp_path)
    try:
        person.home.start("up")
        person.start()
        person.sees("python3-gi")
    finally:
        person.close()
        desktop.close()


def test_it_ends_when_it_is_asked_to(person: Person) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        tray = person.desktop.parts["tray"]
        tray.send_signal(number)
        assert tray.wait(PATIENCE) == 0, person.desktop.said("tray")
        (person.desktop.folder / "tray.log").unlink()
        person.start()
    assert "Traceback" not in person.desktop.said("tray")


def test_it_ends_with_the_session(person: Person) -> None:
    """The bus of a user goes on after a log-out, and the display does not."""
    person.desktop.stop("xvfb")
    assert person.desktop.parts["tray"].wait(PATIENCE) == 0, person.desktop.said("tray")
    assert "Traceback" not in person.desktop.said("tray")


def test_a_mistake_in_the_settings_leaves_those_before(person: Person) -> None:
    person.home.run("true")  # no worker could start with the mistake
    file = person.home.path / "config.toml"
    good = file.read_text()
    file.write_text("[tray\n")
    person.home.client.command("exit 3", name="render")
    eventually(
        lambda: "Failed: render" in [note.title for note in person.desktop.notes()], PATIENCE
    )
    file.write_text(good)
    assert person.desktop.parts["tray"].poll() is None


def test_the_missing_extra_is_named(tmp_path: Path) -> None:
    """Where svcq's own packages are, and not the tray's."""
    code = (
        "import importlib.util as u, sys; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name in ('pystray', 'PIL') else find(name, *a)\n"
        "from svcq.cli import run; sys.exit(run(['tray']))"
    )
    env = {**os.environ, "DISPLAY": ":0", "SVCQ_HOME": str(tmp_path / "home")}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr == "svcq: The tray needs pystray, PIL: pip install svcq[tray].\n"
