"""What is written into the dialogs, and what is meant by it."""

from __future__ import annotations

import pytest
from svcq_tray.form import SHOWN, Form, changed

from svcq.errors import InvalidInput
from tests.clients import assert_sentence


def test_a_form_becomes_a_job(tmp_path: object) -> None:
    form = Form("ffmpeg -i a b", str(tmp_path), "video", "5", "in 10m", "idle > 10m", notify=True)
    command, options = form.job()
    assert command == "ffmpeg -i a b"
    at = options.pop("run_at")
    assert at.tzinfo is not None
    assert options == {
        "cwd": str(tmp_path), "queue": "video", "priority": 5, "when": "idle>10m", "notify": True,
    }  # fmt: skip


def test_what_is_left_empty_is_left_to_svcq() -> None:
    _, options = Form("true", "", "", "", "", "", notify=False).job()
    assert options.keys() == {"cwd", "notify"}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"command": "  "}, "command"),
        ({"folder": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({"priority": "high"}, "high"),
        ({"time": "some day"}, "some day"),
        ({"condition": "moon"}, "moon"),
    ],
)
def test_a_mistake_is_said_in_a_sentence(fields: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Form(**{"command": "true", **fields}).job()  # type: ignore[arg-type]
    assert_sentence(caught.value, named)


BEFORE = {one.key: "" for one in SHOWN} | {"tray.notifications": "on", "tray.long_job": "1m"}


def test_settings_that_changed_are_written() -> None:
    now = {**BEFORE, "tray.long_job": "", "tray.quiet": " 22:00-07:00 "}
    assert changed(BEFORE, now) == {"tray.long_job": "", "tray.quiet": "22:00-07:00"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("tray.quiet", "25:00-07:00"), ("tray.quiet", "night"), ("tray.long_job", "soon"),
     ("tray.rules", "video=loud"), ("tray.rules", "=all"), ("tray.notifications", "maybe")],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_refused(key: str, value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        changed(BEFORE, {**BEFORE, key: value})
    assert_sentence(caught.value, value)
