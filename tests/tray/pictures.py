"""The pictures of the tray in docs/images: `python -m tests.tray.pictures`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from tests.clients import ROOT
from tests.helpers import eventually
from tests.tray.desktop import PATIENCE, Desktop
from tests.tray.person import SETTINGS, TEAL, Person

IMAGES = ROOT / "docs" / "images"
_PROGRESS = 'echo "{percent} {note}" > "$SVCQ_PROGRESS"; exec sleep 600'


def main() -> None:
    desktop = Desktop("xfce")
    person = Person(desktop, Path(tempfile.mkdtemp()), f"{SETTINGS}\n[workers]\nslots = 3\n")
    try:
        desktop.run("xsetroot", "-solid", "#3f6d86")
        _fill(person)
        person.start()
        person.follows()
        person.home.run("echo disk full >&2; exit 1", name="backup photos", queue="night")
        eventually(lambda: desktop.find((214, 48, 49), (500, 30, 1000, 300)), PATIENCE)
        person.open_menu(TEAL)
        person.choose("render scene 4")
        desktop.move(person.shown.x + 60, person.shown.y + 40)
        desktop.shot(IMAGES / "tray.png")
        _crop(IMAGES / "tray.png", (0, 0, 1000, 400))
        desktop.key("Escape", "Escape")
        person.click_line("Queue a command...")
        person.dialog("Queue a command")
        desktop.type("ffmpeg -i talk.mov talk.mp4")
        desktop.key("Tab")
        desktop.type("~/video")
        desktop.key("Tab")
        desktop.run("dunstctl", "close-all")
        desktop.move(990, 690)
        desktop.shot(IMAGES / "tray-queue.png")
        _crop(IMAGES / "tray-queue.png", (215, 100, 790, 520))
    finally:
        person.close()
        desktop.close()


def _fill(person: Person) -> None:
    home = person.home
    home.start("up")
    home.client.schedule("nightly", "true", cron="0 3 * * *")
    for name in ("thumbnails", "sync mail"):
        home.run("true", name=name)
    for name, percent, note in (
        ("render scene 4", 42, "frame 101 of 240"),
        ("encode talk.mp4", 71, ""),
    ):
        job = home.add(_PROGRESS.format(percent=percent, note=note), name=name, queue="video")
        eventually(lambda job=job: home.client.get(job).progress, PATIENCE)
    home.client.queue("later", paused=True)
    for n in range(5):
        home.add("true", name=f"upload {n}", queue="later")


def _crop(file: Path, box: tuple[int, int, int, int]) -> None:
    with Image.open(file) as image:
        image.convert("RGB").crop(box).quantize(128).save(file, optimize=True)


if __name__ == "__main__":
    main()
