"""Times as triggers of the Task Scheduler, checked against the schema that Microsoft documents
(MS-TSCH, 2.5): what parts there are, in which order, and what they may hold."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest

from svcq.cron import parse_cron
from svcq.errors import Refused
from svcq.host import windows_triggers
from svcq.host.wanted import Interval, Once, Pattern, Times
from svcq.host.windows_tasks import NAMESPACE, element, missing, task, text_of
from svcq.host.windows_triggers import check_zone, triggers

BASE = ["Enabled", "StartBoundary", "EndBoundary", "Repetition", "ExecutionTimeLimit"]
OF_TRIGGERS = {
    "TimeTrigger": [*BASE, "RandomDelay"],
    "CalendarTrigger": [
        *BASE, "RandomDelay", "ScheduleByDay", "ScheduleByWeek", "ScheduleByMonth",
        "ScheduleByMonthDayOfWeek",
    ],
}  # fmt: skip
INSIDE = {
    "ScheduleByDay": {"DaysInterval"},
    "ScheduleByWeek": {"WeeksInterval", "DaysOfWeek"},
    "ScheduleByMonth": {"DaysOfMonth", "Months"},
    "ScheduleByMonthDayOfWeek": {"Weeks", "DaysOfWeek", "Months"},
    "Repetition": {"Interval", "Duration", "StopAtDurationEnd"},
}
DURATION = re.compile(r"P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?$")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?$")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows_triggers, "check_zone", lambda zone: None)


def pattern(cron: str) -> Pattern:
    one = parse_cron(cron, "UTC")
    return Pattern(
        one.minutes, one.hours, one.days, one.months, one.weekdays, one.either_day, one.fixed,
        one.zone,
    )  # fmt: skip


def name(one: ET.Element) -> str:
    return one.tag.removeprefix(f"{{{NAMESPACE}}}")


def said(times: Times, jitter_ms: int = 0) -> list[str]:
    """Each trigger in short: its beginning, its repetition, and its days."""
    found = []
    for one in triggers(times, jitter_ms):
        check(one)
        values = {name(part): part.text for part in one.iter() if part.text}
        days = [name(part) for part in one if name(part).startswith("Schedule")]
        inside = [part.text or name(part) for part in one[-1].iter() if not len(part)][:3]
        repeats = [values[key] for key in ("Interval", "Duration", "RandomDelay") if key in values]
        found.append(
            " ".join([values["StartBoundary"], *repeats, *days, *(inside if days else [])])
        )
    return found


def check(trigger: ET.Element) -> None:
    """By the schema."""
    order = OF_TRIGGERS[name(trigger)]
    parts = [name(part) for part in trigger]
    assert parts == sorted(parts, key=order.index), parts
    assert len(set(parts)) == len(parts)
    for part in trigger.iter():
        text = part.text or ""
        match name(part):
            case "StartBoundary":
                assert MOMENT.match(text), text
            case "Interval" | "Duration" | "RandomDelay":
                assert DURATION.match(text), text
            case "Enabled" | "StopAtDurationEnd":
                assert text in ("true", "false")
            case "Day":
                assert 1 <= int(text) <= 31
            case known if known in INSIDE:
                assert {name(inner) for inner in part} <= INSIDE[known]


@pytest.mark.parametrize(
    ("cron", "wanted"),
    [
        ("30 3 * * *", ["2020-01-01T03:30:00 ScheduleByDay 1"]),
        ("0,20 3 * * *", ["2020-01-01T03:00:00 ScheduleByDay 1",
                          "2020-01-01T03:20:00 ScheduleByDay 1"]),
        ("*/15 9 * * 1-3",
         ["2020-01-01T09:00:00 PT15M PT46M ScheduleByWeek 1 Monday Tuesday"]),
        ("0 0 1,15 * *", ["2020-01-01T00:00:00 ScheduleByMonth 1 15 January"]),
        ("0 0 * 2 0", ["2020-01-01T00:00:00 ScheduleByMonthDayOfWeek 1 2 3"]),
        ("0 0 13 * 5", ["2020-01-01T00:00:00 ScheduleByMonth 13 January February",
                        "2020-01-01T00:00:00 ScheduleByWeek 1 Friday"]),
    ],
)  # fmt: skip
def test_patterns(cron: str, wanted: list[str]) -> None:
    assert said(pattern(cron)) == wanted


def test_every_minute_takes_a_trigger_an_hour() -> None:
    found = said(pattern("* * * * *"))
    assert len(found) == 24
    assert found[0] == "2020-01-01T00:00:00 PT1M PT1H ScheduleByDay 1"


def test_intervals_and_moments() -> None:
    assert said(Interval(90_000, 1_700_000_000_000)) == ["2023-11-14T22:13:20Z PT1M30S"]
    assert said(Once(1_700_000_000_001)) == ["2023-11-14T22:13:21Z"]
    assert said(Once(0), jitter_ms=90_061_000) == ["1970-01-01T00:00:00Z P1DT1H1M1S"]


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (Interval(30_000, 0), "from a minute to 31 days"),
        (Interval(60_500, 0), "whole seconds"),
        (Interval(32 * 86_400_000, 0), "from a minute to 31 days"),
        (pattern("0,1,3,7 * * * *"), "96 triggers"),
        (pattern("0 0 */2 * 1"), "must also be a day of the week"),
    ],
)
def test_what_it_cannot_say_is_refused(times: Times, why: str) -> None:
    with pytest.raises(Refused, match=why):
        triggers(times)


def test_a_zone_whose_clock_goes_otherwise_is_refused() -> None:
    berlin, london = ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/London")
    check_zone(berlin, local=ZoneInfo("Europe/Vienna"))
    with pytest.raises(Refused, match=r"give it --tz Europe/London, or leave it to svcq\."):
        check_zone(berlin, local=london)


SETTINGS = {"MultipleInstancesPolicy": "IgnoreNew", "Enabled": "true", "WakeToRun": "false"}


def whole(times: Times = Once(0), command: str = "C:\\a & b\\python.exe") -> str:  # noqa: B008
    return task("about <it>", "S-1-5-21-1", triggers(times), SETTINGS, command, "-m svcq")


def test_a_task_has_its_parts_in_the_order_of_the_schema() -> None:
    root = ET.fromstring(whole()[39:])
    assert root.get("version") == "1.2"
    assert [name(part) for part in root] == [
        "RegistrationInfo", "Triggers", "Principals", "Settings", "Actions",
    ]  # fmt: skip
    assert text_of(whole(), "Actions/Exec/Command") == "C:\\a & b\\python.exe"


def test_what_was_changed_in_a_task_is_named() -> None:
    wanted = whole(Interval(60_000, 0))
    assert missing(wanted, wanted) == []
    assert missing(wanted, wanted.replace("about", "other")) == []
    more = wanted.replace("</Settings>", "<Hidden>false</Hidden></Settings>")
    assert missing(wanted, more) == []  # what Windows adds by itself
    assert missing(wanted, wanted.replace("PT1M", "PT2M")) == ["Interval", "Interval"]
    assert missing(wanted, wanted.replace("IgnoreNew", "Queue")) == ["MultipleInstancesPolicy"]
    assert missing(wanted, "no XML") == ["Task"]
    assert "Command" in missing(wanted, whole(Interval(60_000, 0), "C:\\evil.exe"))


def test_elements_are_of_the_schemas_namespace() -> None:
    assert element("Enabled", "true").tag == f"{{{NAMESPACE}}}Enabled"
