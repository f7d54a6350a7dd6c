"""Which ends pop up, and how many at a time."""

from __future__ import annotations

from datetime import datetime

import pytest
from svcq_tray.model import Action, Note
from svcq_tray.rules import Grouper, Tally, away, is_quiet, note_of, wanted

from svcq.config.settings import Tray
from svcq.ends import is_told, plain
from svcq.jobs import Job
from tests.tray.samples import job

PLAIN = Tray()


def test_the_final_failure_is_always_told() -> None:
    assert wanted(job(1, "dead"), PLAIN, {})
    assert not wanted(job(1, "retrying"), PLAIN, {})


def test_a_success_is_told_when_it_took_long() -> None:
    assert not wanted(job(1, "completed", took=59), PLAIN, {})
    assert wanted(job(1, "completed", took=60), PLAIN, {})
    assert not wanted(job(1, "completed", took=9999), PLAIN._replace(long_job=None), {})


def test_a_job_says_itself_whether_it_is_told() -> None:
    assert wanted(job(1, "completed", options={"notify": True}), PLAIN, {})
    assert wanted(job(1, "cancelled", options={"notify": True}), PLAIN, {"default": "never"})
    assert not wanted(job(1, "dead", options={"notify": False}), PLAIN, {})


def test_what_a_person_stopped_is_no_news() -> None:
    assert not wanted(job(1, "cancelled", took=9999), PLAIN, {"default": "all"})


def test_a_queue_says_it_for_its_jobs_and_the_user_for_the_queue() -> None:
    done, failed = job(1, "completed"), job(2, "dead")
    assert wanted(done, PLAIN, {"default": "all"})
    quiet = PLAIN._replace(rules={"default": "never"})
    assert not wanted(failed, quiet, {"default": "all"})
    assert wanted(done, PLAIN._replace(rules={"default": "all"}), {})
    assert wanted(failed, PLAIN._replace(rules={"other": "never"}), {})


def test_off_is_off() -> None:
    assert not wanted(job(1, "dead"), PLAIN._replace(notifications="off"), {})


def test_only_ends_are_told() -> None:
    assert not is_told(job(1, options={"notify": True}), "all")


@pytest.mark.parametrize(
    ("hours", "at", "quiet"),
    [
        (None, "12:00", False),
        ((22 * 60, 7 * 60), "23:30", True),
        ((22 * 60, 7 * 60), "06:59", True),
        ((22 * 60, 7 * 60), "07:00", False),
        ((22 * 60, 7 * 60), "21:59", False),
        ((13 * 60, 14 * 60), "13:00", True),
        ((13 * 60, 14 * 60), "14:00", False),
    ],
)
def test_quiet_hours(hours: tuple[int, int] | None, at: str, quiet: bool) -> None:
    assert is_quiet(hours, datetime.fromisoformat(f"2026-11-18T{at}")) is quiet


def dead(*numbers: int) -> list[Job]:
    return [job(number, "dead", run=1, reason="out of attempts") for number in numbers]


def test_a_few_come_one_by_one() -> None:
    grouper = Grouper()
    notes = [note for n in (1, 2, 3) for note in grouper.add(dead(n), n)]
    assert [note.title for note in notes] == [f"Failed: work {n}" for n in (1, 2, 3)]
    assert grouper.wait(3) is None


def test_many_at_once_come_as_one() -> None:
    grouper = Grouper()
    assert grouper.add(dead(*range(50)), 100) == []
    wait = grouper.wait(100)
    assert wait is not None
    assert wait <= 1
    (note,) = grouper.due(101)
    assert note.title == "50 jobs failed"
    assert note.body == "work 0, work 1, work 2 and 17 more"
    assert grouper.due(102) == []


def test_ten_thousand_in_a_minute_are_a_handful() -> None:
    grouper, notes = Grouper(), []
    for n in range(10_000):
        notes += grouper.add(dead(n), 1000 + n * 0.006)
    end = 1060.0
    while (wait := grouper.wait(end)) is not None:
        end += wait
        notes += grouper.due(end)
    assert len(notes) <= 8
    assert len({note.key for note in notes}) <= 4
    assert notes[-1].title == "9,997 jobs failed"  # three came by themselves
    assert end < 1180


def test_after_a_flood_they_come_one_by_one_again() -> None:
    grouper = Grouper()
    grouper.add(dead(*range(50)), 100)
    grouper.due(101)
    (note,) = grouper.add(dead(99), 200)
    assert note.title == "Failed: work 99"


def test_what_came_while_it_was_quiet_is_told_afterwards() -> None:
    grouper = Grouper()
    assert grouper.add(dead(1, 2), 1, quiet=True) == []
    assert grouper.add([job(3, "completed")], 2, quiet=True) == []
    first, second = grouper.add(dead(4), 3)
    assert first.title == "While it was quiet: 2 jobs failed, 1 completed"
    assert second.title == "Failed: work 4"
    assert grouper.break_silence() == []


def test_what_ended_while_nobody_was_there() -> None:
    tally = Tally()
    assert away(tally) is None
    tally.add([*dead(1, 2), job(3, "completed")])
    note = away(tally)
    assert note is not None
    assert note.title == "3 jobs ended while you were away"
    assert note.body == "2 jobs failed, 1 completed: work 1, work 2, work 3"


def test_a_failure_has_buttons_that_do_it() -> None:
    note = note_of(dead(7)[0])
    assert dict(note.buttons) == {
        "Show output": Action("output", 7), "Retry": Action("retry", 7),
    }  # fmt: skip
    assert note.click == Action("output", 7)


def test_a_success_offers_no_retry() -> None:
    assert "Retry" not in dict(note_of(job(1, "completed")).buttons)


@pytest.mark.parametrize("name", ["<b>\x1b[31m\x00\u202e\n" * 1000, "x" * 10_000])
def test_what_is_told_is_short_and_plain(name: str) -> None:
    note: Note = note_of(job(1, "dead", name=name, error=name * 3, reason="out of attempts"))
    for text in (note.title, note.body):
        assert len(text) <= 210
        assert all(char.isprintable() for char in text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc", "a b c"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("rtl \u202etxt.exe", "rtl txt.exe"),
        ("half \ud83d", "half"),
        ("\u200b\ufeff", ""),
        ("x" * 200, "x" * 99 + "…"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown
