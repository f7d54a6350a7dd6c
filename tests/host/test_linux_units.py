"""The text of units: words as they are, and who wrote it."""

from __future__ import annotations

import pytest

from svcq.errors import Refused
from svcq.host import linux_units as units

ENV = {"SVCQ_HOME": '/home/50% "off"\\$x', "PATH": "/bin"}


def user_text(python: str = "/usr/bin/python3", **options: bool) -> str:
    (unit,) = units.user_units(python, ENV, **options)
    return unit.text


def test_words_are_taken_as_they_are() -> None:
    text = user_text("/opt/my python/$bin/python")
    assert 'ExecStart="/opt/my python/$$bin/python" "-P" "-m" "svcq" "service"\n' in text
    assert r'Environment="SVCQ_HOME=/home/50%% \"off\"\\$x"' in text
    assert 'Environment="PATH=/bin"' in text


def test_a_line_break_in_a_path_is_refused() -> None:
    with pytest.raises(Refused, match="control character"):
        units.user_units("/opt/python\nExecStartPre=/bin/rm", {})


def test_what_is_said_of_a_worker_is_said_once() -> None:
    template = units.system_units("/usr/bin/python3", {})[2]
    assert template.name == units.WORKER
    for setting in units.WORKER_SETTINGS:
        assert f"\n{setting}\n" in template.text


def test_a_change_by_hand_is_seen() -> None:
    for unit in (*units.user_units("/python", ENV), *units.system_units("/python", ENV)):
        text = unit.text
        assert units.is_ours(text)
        assert not units.is_edited(text)
        assert not units.is_outdated(text, text)
        for edited in (
            text.replace("\n[Unit]\n", "\n[Unit]\nDescription=mine\n"),
            text.replace("\n[Unit]", "\n# a word\n[Unit]"),
            f"{text}# a word\n",
        ):
            assert edited != text
            assert units.is_edited(edited), unit.name


def test_another_session_is_no_change_but_other_settings_are() -> None:
    text = user_text("/python")
    (elsewhere,) = units.user_units("/other/python", {"PATH": "/elsewhere"}, linger=False)
    assert not units.is_outdated(text, elsewhere.text)
    assert units.program_of(text) != units.program_of(elsewhere.text)
    assert units.is_outdated(text.replace("WatchdogSec=60", "WatchdogSec=30"), elsewhere.text)


def test_the_unit_of_the_first_version_is_ours_and_outdated() -> None:
    first = (
        "# Made by `svcq install`; what you write in here, the next one replaces.\n[Unit]\nA=b\n"
    )
    assert units.is_ours(first)
    assert not units.is_edited(first)
    assert units.is_outdated(first, user_text())
    assert not units.is_ours("[Unit]\nDescription=someone else's\n")


def test_who_declined_to_linger_is_remembered() -> None:
    assert units.declines_linger(user_text(linger=False))
    assert not units.declines_linger(user_text())
