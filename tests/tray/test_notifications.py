"""What pops up, by a real daemon, and what its buttons do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.helpers import eventually
from tests.tray.desktop import HEIGHT, PATIENCE, WIDTH, Desktop, Told
from tests.tray.person import RED, Person

NASTY = "<b>bold</b> & <img src='x'>\x1b[31m\u202e" + "x" * 10_000
POPUPS = (WIDTH // 2, 30, WIDTH, HEIGHT)


def told(person: Person, wanted: Callable[[Told], bool]) -> Told:
    """Wait for such a notification."""
    return eventually(lambda: next(filter(wanted, person.desktop.notes()), None), PATIENCE)


def shown(person: Person) -> tuple[int, int]:
    """Where a popup is: its picture is red."""
    return eventually(lambda: person.desktop.find(RED, POPUPS), PATIENCE)


def press(person: Person, button: str) -> None:
    """Open the popup's own menu of buttons with the mouse, and take one."""
    (person.desktop.folder / "wanted").write_text(button)
    person.desktop.click(*shown(person), 2)


def test_a_failure_is_told_with_its_reason(person: Person) -> None:
    person.home.run("exit 3", name="render")
    note = told(person, lambda note: note.title == "Failed: render")
    assert note.body.startswith("Job 1: out of attempts: ended with exit code 3")
    assert note.buttons == ["Show", "Show output", "Retry"]


def test_retry_does_it(person: Person) -> None:
    person.home.run("exit 3")
    press(person, "Retry")
    eventually(lambda: person.home.client.get(1).run == 2, PATIENCE)


def test_show_output_opens_the_page_of_the_job(person: Person) -> None:
    person.home.run("exit 3")
    press(person, "Show output")
    assert "&job=1" in person.page()


def test_a_click_opens_the_page_of_the_job(person: Person) -> None:
    person.home.run("exit 3")
    person.desktop.click(*shown(person))
    assert "&job=1" in person.page()


def test_only_what_is_worth_it_is_told(person: Person) -> None:
    person.home.run("true", name="unasked")
    person.home.run("true", name="asked", notify=True)
    person.home.run("exit 1", name="hushed", notify=False)
    person.home.client.queue("night", notify=True)
    person.sees("svcq: nothing to do")
    person.home.run("exit 1", name="last")
    told(person, lambda note: note.title == "Failed: last")
    titles = [note.title for note in person.desktop.notes()]
    assert titles == ["Done: asked", "Failed: last"]


def test_a_name_full_of_markup_is_shown_as_it_is(person: Person) -> None:
    person.home.run(f"exit 3 # {NASTY}")
    note = told(person, lambda note: "Failed" in note.title)
    assert len(note.title) < 120
    assert "<b>bold</b> & <img" in note.title
    assert "\x1b" not in note.title
    person.home.run("exit 3", name=NASTY[:20], queue="q")
    note = told(person, lambda note: "<b>bold" in note.title and "Job 2" in note.body)
    assert "&" not in note.body or "&amp;" in note.body
    shown(person)


def test_many_ends_are_told_as_one(person: Person) -> None:
    person.home.client.queue("default", paused=True)
    for _ in range(30):
        person.home.add("exit 1")
    person.home.client.resume("default")
    total = told(person, lambda note: "jobs failed" in note.title)
    eventually(lambda: person.home.client.counts()["dead"] == 30, PATIENCE)

    def counted() -> bool:
        notes = person.desktop.notes()
        single = sum(note.title.startswith("Failed: ") for note in notes)
        last = [note for note in notes if "jobs failed" in note.title][-1]
        return single + int(last.title.split()[0]) == 30

    eventually(counted, 3 * PATIENCE)
    assert len(person.desktop.notes()) < 10
    assert total.buttons == ["Show", "Open page"]


def test_what_ended_while_nobody_was_there_is_told_at_the_start(person: Person) -> None:
    person.home.run("exit 1", name="before")
    told(person, lambda note: note.title == "Failed: before")
    person.desktop.stop("tray")
    for name in ("one", "two", "three"):
        person.home.run("exit 1", name=name)
    (person.desktop.folder / "tray.log").unlink()
    person.start()
    note = told(person, lambda note: "while you were away" in note.title)
    assert note.title == "3 jobs ended while you were away"
    assert note.body == "3 jobs failed: one, two, three"
    person.icon(RED)


def test_what_the_service_no_longer_tells_one_by_one_is_told_all_the_same(person: Person) -> None:
    person.home.run("exit 1", name="before")
    told(person, lambda note: note.title == "Failed: before")
    person.desktop.stop("tray")
    for name in ("one", "two"):
        person.home.run("exit 1", name=name)
    person.home.svcq("config", "set", "retention.changes", "0s")
    assert person.home.svcq("cleanup").returncode == 0
    (person.desktop.folder / "tray.log").unlink()
    person.start()
    note = told(person, lambda note: "while you were away" in note.title)
    assert note.title == "More than 2 jobs ended while you were away"
    assert "3 jobs failed" in person.sees("3 jobs failed")


def test_quiet_hours_keep_it_for_later(person: Person) -> None:
    person.home.svcq("config", "set", "tray.quiet", "00:00-23:59")
    person.home.run("exit 1", name="hushed")
    person.icon(RED)  # it is seen all the same
    person.home.svcq("config", "set", "tray.quiet", "")
    person.home.run("exit 1", name="loud")
    told(person, lambda note: note.title == "Failed: loud")
    titles = [note.title for note in person.desktop.notes()]
    assert titles == ["While it was quiet: 1 job failed", "Failed: loud"]


def test_others_on_the_bus_cannot_press_our_buttons(person: Person) -> None:
    person.home.run("exit 3")
    told(person, lambda note: "Failed" in note.title)
    for number in range(1, 5):
        person.desktop.run(
            "busctl", "--user", "emit", "/org/freedesktop/Notifications",
            "org.freedesktop.Notifications", "ActionInvoked", "us", number, "1",
        )  # fmt: skip
    # What is pressed in earnest afterwards is heard, so the others were before.
    press(person, "Show output")
    person.page()
    assert person.home.client.get(1).run == 1


def test_without_a_daemon_it_is_said_and_goes_on_once_there_is_one(
    bare: Desktop, tmp_path: Path
) -> None:
    person = Person(bare, tmp_path)
    try:
        person.home.start("up")
        person.start()
        person.sees("svcq: nothing to do")
        person.follows()
        person.home.run("exit 3", name="unheard")
        person.sees("Nobody shows notifications here")
        bare.start_monitor()
        bare.start_dunst()
        person.home.run("exit 3", name="heard")
        told(person, lambda note: note.title == "Failed: heard")
        told(person, lambda note: note.title == "Failed: unheard")
        eventually(lambda: "Nobody shows" not in "".join(person.tooltip()), PATIENCE)
        bare.stop("dunst")
        bare.start_dunst()
        person.home.run("exit 3", name="again")
        told(person, lambda note: note.title == "Failed: again")
        shown(person)
    finally:
        person.close()
