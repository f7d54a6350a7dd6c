"""The real icon in a real panel, clicked with a mouse; a real dialog, typed into."""

from __future__ import annotations

import json
import random
from pathlib import Path

from svcq.jobs import State
from tests.helpers import eventually
from tests.tray.desktop import PATIENCE, Desktop
from tests.tray.person import BLUE, GREY, RED, RING, TEAL, Person


def test_a_command_is_queued_watched_and_stopped(person: Person) -> None:
    person.open_menu(TEAL)
    person.choose("Queue a command")
    person.dialog("Queue a command")
    person.desktop.type("sleep 600")
    person.desktop.key("Return")
    person.no_dialog("Queue a command")
    person.home.wait_until_running(1)
    job = person.home.client.get(1)
    assert (job.command, job.options) == ("sleep 600", {"notify": True})
    person.icon(RING)
    person.sees("sleep 600")
    person.open_menu(TEAL)
    person.choose("sleep 600", "Stop")
    assert person.home.ended(1).state is State.CANCELLED
    eventually(lambda: person.desktop.find(RING) is None, PATIENCE)


def test_quit_ends_it(person: Person) -> None:
    person.open_menu(TEAL)
    person.choose("Quit")
    assert person.desktop.parts["tray"].wait(PATIENCE) == 0, person.desktop.said("tray")
    assert "Traceback" not in person.desktop.said("tray")


def test_the_icon_shows_how_it_stands(person: Person) -> None:
    person.home.run("exit 3")
    person.icon(RED)
    person.open_menu(RED)
    person.choose("mark as seen")
    person.icon(TEAL)
    person.open_menu(TEAL)
    person.choose("Pause all")
    person.icon(BLUE)
    assert all(queue.paused for queue in person.home.client.queues())
    person.open_menu(BLUE)
    person.choose("Resume all")
    person.icon(TEAL)
    person.home.started[0].terminate()
    person.icon(GREY)
    person.sees("svcq does not run")


def test_a_job_that_ended_is_retried_and_its_output_shown(person: Person) -> None:
    person.home.run("exit 3", name="render")
    person.icon(RED)
    person.open_menu(RED)
    person.choose("Ended", "render", "Show output")
    assert "/login#code=" in person.page()
    assert "&job=1" in person.page()
    person.icon(TEAL)  # who has seen the output has seen the failure
    person.open_menu(TEAL)
    person.choose("Ended", "render", "Retry")
    eventually(lambda: person.home.client.get(1).run == 2, PATIENCE)


def test_the_page_opens(person: Person) -> None:
    person.open_menu(TEAL)
    person.choose("Open page")
    assert "/login#code=" in person.page()
    assert "job=" not in person.page()


def test_a_mistake_in_the_dialog_is_said_in_place(person: Person) -> None:
    person.click_line("Queue a command...")
    person.dialog("Queue a command")
    person.desktop.type("echo hi")
    person.desktop.key("Tab")
    person.desktop.type("/nowhere")
    before = person.desktop.shot()
    person.desktop.key("Return")
    eventually(lambda: person.desktop.shot() != before, PATIENCE)
    assert "Queue a command" in person.desktop.titles()
    assert person.home.client.list() == []
    person.desktop.key("ctrl+a")
    person.desktop.type("/tmp")
    person.desktop.key("Return")
    person.no_dialog("Queue a command")
    assert person.home.ended(1).cwd == "/tmp"
    # What was queued is there to be chosen again.
    person.click_line("Queue a command...")
    person.dialog("Queue a command")
    person.desktop.key("Down")
    person.desktop.key("Down", "Return")
    person.desktop.key("Return")
    person.no_dialog("Queue a command")
    assert person.home.ended(2).command == "echo hi"


def test_the_clipboard_is_shown_before_it_is_queued(person: Person) -> None:
    copy = "printf 'echo one\\necho two\\n' | xclip -i -selection clipboard -loops 50 -quiet"
    person.desktop.start("clipboard", ["sh", "-c", copy])
    eventually(
        lambda: "two" in person.desktop.run(
            "xclip", "-o", "-selection", "clipboard", check=False
        ).stdout,
        PATIENCE,
    )  # fmt: skip
    person.click_line("Queue the clipboard...")
    person.dialog("Queue a command")
    assert person.home.client.list() == []
    person.desktop.key("Return")
    person.no_dialog("Queue a command")
    assert person.home.ended(1).command == "echo one && echo two"


def test_settings_are_changed_and_followed(person: Person) -> None:
    person.click_line("Settings...")
    person.dialog("svcq settings")
    # From the first field to the one for successes of long jobs.
    person.desktop.key("Tab", "Tab")
    person.desktop.key("ctrl+a")
    person.desktop.type("0s")
    person.desktop.key("Return")
    person.no_dialog("svcq settings")
    assert 'long_job = "0s"' in (person.home.path / "config.toml").read_text()
    person.home.run("true", name="quick one")
    eventually(
        lambda: "Done: quick one" in [note.title for note in person.desktop.notes()], PATIENCE
    )


def test_a_schedule_runs_now_and_pauses(person: Person) -> None:
    person.home.client.schedule("nightly", "echo night", cron="0 3 * * *")
    person.has("nightly")
    person.open_menu(TEAL)
    person.choose("Schedules", "nightly", "Run now")
    assert person.home.ended(1).command == "echo night"
    pause = next(line for line in person.has("nightly").below if line.text == "Pause")
    person.click_number(pause.number)
    eventually(lambda: person.home.client.get_schedule("nightly").paused, PATIENCE)


def test_it_starts_the_service_where_none_runs_and_steers_it(
    person: Person, tmp_path: Path
) -> None:
    person.home.started[0].terminate()
    person.sees("svcq does not run")
    person.click_line("Start")
    person.sees("svcq: nothing to do")
    pid = person.home.client.workers()
    person.click_line("Restart")
    eventually(lambda: person.home.client.workers() not in ([], pid), PATIENCE)
    person.sees("svcq: nothing to do")
    person.click_line("Stop")
    person.sees("svcq does not run")


def test_it_starts_the_service_at_its_start_where_it_may(desktop: Desktop, tmp_path: Path) -> None:
    person = Person(desktop, tmp_path, "")
    try:
        person.start()
        person.sees("svcq: nothing to do")
        person.click_line("Quit")
        assert desktop.parts["tray"].wait(PATIENCE) == 0
        # What runs does not end with it.
        assert person.home.run("true").state is State.COMPLETED
    finally:
        person.close()


def test_the_session_is_told_of(person: Person) -> None:
    """How long nobody has touched it, and that somebody has."""
    folder = person.home.path / "sessions"

    def idle_since() -> float:
        said = [json.loads(file.read_text())["idle_since"] for file in folder.glob("*.json")]
        return float(said[0] or 0) if said else 0.0

    person.desktop.move(10, 400)
    before = eventually(idle_since, PATIENCE)

    def touched_again() -> bool:
        person.desktop.move(random.randrange(900), 400)
        return idle_since() > before + 1

    eventually(touched_again, 2 * PATIENCE, 0.5)
