"""What is shown of what is known: without a display."""

from __future__ import annotations

from itertools import pairwise

import pytest
from svcq_tray.model import SEPARATOR, Action, Icon, Situation
from svcq_tray.view import view

from svcq.schedules import Schedule
from tests.tray.samples import job, lines, situation

NASTY = "<b>x</b>\x1b[31m\x00\u202e\n" * 1000


def test_nothing_to_do() -> None:
    look = view(situation())
    assert look.icon == Icon("idle")
    assert look.tooltip == ("svcq: nothing to do",)


def test_what_runs_fills_the_ring_and_has_lines_of_its_own() -> None:
    look = view(situation(job(1, progress=0.2), job(2, progress=0.6), job(3)))
    assert look.icon == Icon("running", False, 3, 0.4)
    assert look.tooltip[:2] == ("svcq: 3 running", "work 1 · 20%")
    found = lines(look)
    assert found["job-1"].text == "▶ work 1 · 20%"
    assert found["job-1-stop"].action == Action("stop", 1)
    assert found["job-3-output"].action == Action("output", 3)


def test_a_small_step_redraws_nothing() -> None:
    assert (
        view(situation(job(1, progress=0.501))).icon == view(situation(job(1, progress=0.5))).icon
    )


def test_nobody_says_how_far_it_is() -> None:
    assert view(situation(job(1))).icon == Icon("running", False, 1, None)


def test_more_run_than_fit() -> None:
    look = view(situation(*(job(n) for n in range(8)), counts={"processing": 1234}))
    assert look.icon.number == 1234
    assert lines(look)["more"].text == "1,226 more on the page..."


def test_what_waits_is_counted() -> None:
    look = view(situation(counts={"pending": 2, "retrying": 1, "scheduled": 1, "dead": 7}))
    assert look.tooltip == ("svcq: 4 waiting",)


def test_all_queues_are_paused() -> None:
    look = view(situation(queues={"a": True, "b": True}))
    assert look.icon.kind == "paused"
    assert look.tooltip == ("svcq: nothing to do, paused",)
    assert "pause" not in lines(look)
    assert lines(look)["resume"].action == Action("resume")
    assert view(situation(queues={"a": True, "b": False})).icon.kind == "idle"


def test_failures_show_until_they_are_seen() -> None:
    look = view(situation(unseen=2))
    assert look.icon == Icon("idle", failed=True)
    assert look.tooltip[1] == "2 jobs failed"
    assert lines(look)["seen"].action == Action("seen")
    assert "seen" not in lines(view(situation()))


def test_more_failures_than_are_counted() -> None:
    assert view(situation(unseen=1000)).tooltip[1] == "More than 999 jobs failed"
    assert view(situation(unseen=999)).tooltip[1] == "999 jobs failed"


def test_the_service_is_down() -> None:
    look = view(Situation(None, "svcq does not run: start it."))
    assert look.icon.kind == "down"
    assert look.tooltip == ("svcq does not run: start it.",)
    found = lines(look)
    assert found["start"].enabled
    assert not found["stop"].enabled
    assert not {"add", "page", "pause"} & found.keys()
    assert {"settings", "quit", "about"} <= found.keys()


def test_another_version_is_said() -> None:
    look = view(situation(version="9.9.9"))
    assert any("9.9.9" in line and "start it anew" in line for line in look.tooltip)


def test_troubles_are_in_the_tooltip_and_in_the_menu() -> None:
    look = view(situation(troubles=("Nobody shows notifications here.",)))
    assert "Nobody shows notifications here." in look.tooltip
    assert lines(look)["trouble-0"].text == "Nobody shows notifications here."
    assert not lines(look)["trouble-0"].enabled


def test_who_may_only_look_is_told_so_and_can_click_nothing_else() -> None:
    mine = job(1, owner="ada")
    ended = (job(2, "dead", owner="ada"),)
    look = view(situation(mine, role="reader", account="ada", recent=ended))
    found = lines(look)
    assert "You may only look" in found["read-only"].text
    for key in ("add", "clipboard", "pause", "job-1-stop", "ended-2-0-retry"):
        assert not found[key].enabled
    assert found["job-1-output"].enabled


def test_users_steer_their_own_jobs() -> None:
    known = situation(job(1, owner="ada"), job(2, owner="bob"), role="user", account="ada")
    found = lines(view(known))
    assert found["add"].enabled
    assert found["job-1-stop"].enabled
    assert not found["job-2-stop"].enabled
    assert not found["pause"].enabled


def test_the_service_of_the_machine_asks_for_a_password() -> None:
    assert "password" in lines(view(situation(service="machine")))["restart"].text
    assert not lines(view(situation(service="other")))["service"].enabled


def test_what_ended_can_be_retried() -> None:
    ended = (job(5, "dead", run=2, reason="out of attempts"), job(4, "completed", run=1))
    found = lines(view(situation(recent=ended)))
    assert found["ended-5-2"].text.startswith("✗")
    assert found["ended-5-2-note"].text == "Job 5 is dead: out of attempts"
    assert found["ended-5-2-retry"].action == Action("retry", 5)
    assert found["ended-4-1"].text.startswith("✓")


def schedule(name: str, *, paused: int = 0) -> Schedule:
    said = dict.fromkeys(Schedule._fields)
    return Schedule(**{**said, "name": name, "paused": paused, "next_ms": 1_900_000_000_000})


def test_schedules_run_now_and_pause() -> None:
    known = (schedule("nightly"), schedule("weekly", paused=1))
    found = lines(view(situation(schedules=known)))
    assert found["schedule-nightly-run"].action == Action("fire", "nightly")
    assert found["schedule-nightly-pause"].action == Action("pause schedule", "nightly")
    assert found["schedule-weekly-resume"].action == Action("resume schedule", "weekly")
    assert "paused" in found["schedule-weekly"].text
    assert "next" in found["schedule-nightly"].text


@pytest.mark.parametrize("name", [NASTY, "x" * 10_000, "\ud800", ""])
def test_names_of_jobs_are_shown_as_one_short_plain_line(name: str) -> None:
    nasty = job(1, name=name, progress_note=name, error=name)
    ended = job(2, "dead", name=name, reason=name[:50] or None, run=1)
    look = view(situation(nasty, recent=(ended,), version=name))
    for text in [*look.tooltip, *(item.text for item in lines(look).values())]:
        assert len(text) < 200
        assert all(char.isprintable() for char in text), text
        assert "\u202e" not in text


def test_lines_stand_between_groups_alone() -> None:
    for known in (situation(), situation(job(1), unseen=1), Situation(None, "away")):
        keys = [item.key for item in view(known).menu]
        parts = [key.startswith(SEPARATOR) for key in keys]
        assert not parts[0]
        assert not parts[-1]
        assert not any(a and b for a, b in pairwise(parts))


def test_a_job_keeps_its_line_while_others_come_and_go() -> None:
    """The key is the job's: a click that comes late cannot stop another one."""
    one = lines(view(situation(job(7), job(8))))["job-8-stop"]
    assert lines(view(situation(job(8), job(9))))["job-8-stop"] == one
