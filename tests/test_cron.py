"""crontab(5), by hand and against a daemon that looks at every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svcq.cron import Cron, parse_cron
from svcq.errors import InvalidInput
from tests import cron_oracle

# An hour at night, an hour at night elsewhere, half an hour, and an hour at midnight.
ZONES = ("Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Santiago")
YEAR = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


def fires(cron: Cron, after: datetime, n: int) -> list[datetime]:
    """The next n firings."""
    return list(islice(iter_firings(cron, after), n))


def iter_firings(cron: Cron, after: datetime):  # type: ignore[no-untyped-def]
    ms = round(after.timestamp() * 1000)
    while (found := cron.next_after(ms)) is not None:
        ms = found
        yield datetime.fromtimestamp(ms / 1000, UTC)


def within(cron: Cron, begin: datetime, end: datetime) -> list[datetime]:
    found = []
    for at in iter_firings(cron, begin - timedelta(milliseconds=1)):
        if at >= end:
            break
        found.append(at)
    return found


def local(text: str, after: str, n: int, zone: str = "UTC") -> list[str]:
    cron = parse_cron(text, zone)
    begin = datetime.fromisoformat(after).replace(tzinfo=cron.zone)
    return [f"{at.astimezone(cron.zone):%a %m-%d %H:%M %z}" for at in fires(cron, begin, n)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 3 * * 0", ["Sun 01-03 03:00", "Sun 01-10 03:00"]),
        ("0 3 * * 7", ["Sun 01-03 03:00", "Sun 01-10 03:00"]),
        ("0 3 * * SUN", ["Sun 01-03 03:00", "Sun 01-10 03:00"]),
        ("0 0 * * mon-wed,5", ["Mon 01-04 00:00", "Tue 01-05 00:00", "Wed 01-06 00:00"]),
        ("0 0 13 * 5", ["Fri 01-08 00:00", "Wed 01-13 00:00", "Fri 01-15 00:00"]),
        ("0 0 */10 * 1", ["Mon 01-11 00:00", "Mon 02-01 00:00"]),
        ("0 0 1 * */2", ["Thu 04-01 00:00", "Sat 05-01 00:00"]),
        ("5-59/20 22-23 * * *", ["Fri 01-01 22:05", "Fri 01-01 22:25", "Fri 01-01 22:45"]),
        ("*/25 1 * * *", ["Fri 01-01 01:00", "Fri 01-01 01:25", "Fri 01-01 01:50"]),
        ("0 12 31 * *", ["Sun 01-31 12:00", "Wed 03-31 12:00"]),
        ("@hourly", ["Fri 01-01 01:00", "Fri 01-01 02:00"]),
        ("@daily", ["Sat 01-02 00:00", "Sun 01-03 00:00"]),
        ("@midnight", ["Sat 01-02 00:00", "Sun 01-03 00:00"]),
        ("@weekly", ["Sun 01-03 00:00", "Sun 01-10 00:00"]),
        ("@monthly", ["Mon 02-01 00:00", "Mon 03-01 00:00"]),
        ("@yearly", ["Sat 01-01 00:00", "Mon 01-01 00:00"]),
        ("@annually", ["Sat 01-01 00:00", "Mon 01-01 00:00"]),
        ("  1\t2  3 feb * ", ["Wed 02-03 02:01"]),
    ],
)
def test_what_the_fields_mean(text: str, expected: list[str]) -> None:
    found = local(text, "2027-01-01T00:00:00", len(expected))
    assert [at.removesuffix(" +0000") for at in found] == expected


def test_rare_days_are_found() -> None:
    cron = parse_cron("0 0 29 2 */7")  # the twenty-ninth, and a Sunday
    (first, second) = fires(cron, datetime(2027, 1, 1, tzinfo=UTC), 2)
    assert (first.date().isoformat(), second.date().isoformat()) == ("2032-02-29", "2060-02-29")


def test_the_firing_itself_is_not_after_itself() -> None:
    cron = parse_cron("*/5 * * * *")
    assert cron.next_after(299_999) == 300_000
    assert cron.next_after(300_000) == 600_000


def test_a_zone_in_front_wins() -> None:
    cron = parse_cron("CRON_TZ=Asia/Kolkata 30 3 * * *", "Europe/Paris")
    assert cron.zone.key == "Asia/Kolkata"
    assert cron.text == "30 3 * * *"
    (at,) = fires(cron, datetime(2027, 1, 1, tzinfo=UTC), 1)
    assert at == datetime(2027, 1, 1, 22, tzinfo=UTC)


def test_a_skipped_time_fires_once_when_the_gap_is_over() -> None:
    assert local("30 2 * * *", "2027-03-27T12:00", 2, "Europe/Paris") == [
        "Sun 03-28 03:00 +0200", "Mon 03-29 02:30 +0200",
    ]  # fmt: skip
    assert local("0,30 2 * * *", "2027-03-27T12:00", 2, "Europe/Paris") == [
        "Sun 03-28 03:00 +0200", "Mon 03-29 02:00 +0200",
    ]  # fmt: skip


def test_a_repeated_time_fires_the_first_time_alone() -> None:
    assert local("30 2 * * *", "2027-10-30T12:00", 2, "Europe/Paris") == [
        "Sun 10-31 02:30 +0200", "Mon 11-01 02:30 +0100",
    ]  # fmt: skip


def test_a_wildcard_follows_the_clock_as_it_really_goes() -> None:
    assert local("30 * * * *", "2027-03-28T01:00", 2, "Europe/Paris") == [
        "Sun 03-28 01:30 +0100", "Sun 03-28 03:30 +0200",
    ]  # fmt: skip
    assert local("30 * * * *", "2027-10-31T02:00", 3, "Europe/Paris") == [
        "Sun 10-31 02:30 +0200", "Sun 10-31 02:30 +0100", "Sun 10-31 03:30 +0100",
    ]  # fmt: skip


def test_a_day_that_a_zone_left_out_is_made_up_for() -> None:
    assert local("0 12 30 12 *", "2011-12-01T00:00", 1, "Pacific/Apia") == ["Sat 12-31 00:00 +1400"]


@cache
def year_in(zone: str) -> list[tuple[datetime, datetime]]:
    return cron_oracle.minutes_of(zone, *YEAR)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "text",
    [
        "30 2 * * *",
        "0 0 * * *",
        "15,45 0-3 * * *",
        "*/10 2 * * *",
        "30 23 * * 6,0",
        "7 * 1-7 * mon",
    ],
)
def test_a_year_of_firings(zone: str, text: str) -> None:
    assert within(parse_cron(text, zone), *YEAR) == cron_oracle.firings(text, year_in(zone))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("text", [f"{m} {h} * * *" for h in (0, 1, 2, 3, 23) for m in (0, 29, 59)])
def test_a_daily_time_fires_once_each_day(zone: str, text: str) -> None:
    days = [at.astimezone(parse_cron(text, zone).zone).date()
            for at in within(parse_cron(text, zone), *YEAR)]  # fmt: skip
    assert len(days) == len(set(days))
    assert len(days) in (364, 365, 366)
    assert all((b - a).days == 1 for a, b in pairwise(days))


@cache
def days_of_change(zone: str) -> list[list[tuple[datetime, datetime]]]:
    """Five days around each change of the clocks, as the year's minutes show them."""
    minutes = year_in(zone)
    offsets = [wall.replace(tzinfo=UTC) - at for at, wall in minutes]
    changes = [i for i in range(1, len(minutes)) if offsets[i] != offsets[i - 1]]
    assert len(changes) == 2
    return [minutes[i - 2 * 1440 : i + 3 * 1440] for i in changes]


def fields(low: int, high: int, names: list[str] | None = None) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    pair = st.tuples(value, value).map(sorted)
    step = st.integers(1, high + 5)
    parts = [
        st.just("*"),
        value.map(str),
        pair.map(lambda p: f"{p[0]}-{p[1]}"),
        step.map(lambda s: f"*/{s}"),
        st.tuples(pair, step).map(lambda p: f"{p[0][0]}-{p[0][1]}/{p[1]}"),
    ]
    if names:
        parts.append(st.sampled_from(names))
    return st.lists(st.one_of(parts), min_size=1, max_size=3).map(",".join)


EXPRESSIONS = st.tuples(
    fields(0, 59),
    fields(0, 23),
    fields(1, 31),
    fields(1, 12, cron_oracle.MONTHS),
    fields(0, 7, cron_oracle.DAYS),
).map(" ".join)


@pytest.mark.early
@settings(max_examples=25, deadline=None, derandomize=True)
@given(text=EXPRESSIONS, zone=st.sampled_from(ZONES))
def test_any_expression_around_the_changes_of_the_clocks(text: str, zone: str) -> None:
    for minutes in days_of_change(zone):
        begin, end = minutes[0][0], minutes[-1][0] + timedelta(minutes=1)
        expected = cron_oracle.firings(text, minutes)
        if never_fires(text):
            assert expected == []
        else:
            assert within(parse_cron(text, zone), begin, end) == expected


def never_fires(text: str) -> bool:
    try:
        parse_cron(text)
    except InvalidInput as refused:
        return "never fires" in str(refused)
    return False


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("60 * * * *", r"The minute '60' .* has 60, which is out of range: give 0 to 59, "),
        ("* 24 * * *", r"The hour '24' .* give 0 to 23"),
        ("* * 0 * *", r"The day of month '0' .* give 1 to 31"),
        ("* * * 13 *", r"The month '13' .* give 1 to 12, or jan to dec"),
        ("* * * * 8", r"The day of week '8' .* give 0 to 7, or sun to sat"),
        ("* * * * sat-sun", r"range that ends before it begins \(sat-sun\)"),
        ("* * * mon *", r"The month 'mon' .* has mon, which is out of range"),
        ("*/0 * * * *", r"The minute '\*/0' .* step of 0"),
        ("5/10 * * * *", r"step after the one value 5, not after a range"),
        ("1,,2 * * * *", r"The minute '1,,2' .* is not understood"),
        ("-5 * * * *", r"is not understood"),
        ("1.5 * * * *", r"is not understood"),
        ("٣ * * * *", r"is not understood"),
        ("99999999999999999999 * * * *", r"is not understood"),
        ("* * * *", r"has 4 fields: give five"),
        ("0 0 3 * * *", r"has 6 fields: give five"),
        ("", r"has 0 fields: give five"),
        ("@reboot", r"'@reboot' names no time"),
        ("@often", r"There is no cron name '@often': use one of @hourly"),
        ("0 0 31 2 *", r"'0 0 31 2 \*' never fires: no month 2 has a day 31"),
        ("0 0 31 4,jun */2", r"never fires"),
        ("CRON_TZ=Europe/Pariss 0 0 * * *", r"There is no time zone 'Europe/Pariss'"),
        ("CRON_TZ=../etc/passwd 0 0 * * *", r"There is no time zone"),
        ("CRON_TZ= 0 0 * * *", r"There is no time zone ''"),
        (5, r"The cron expression 5 is not text"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as refused:
        parse_cron(text)
    assert str(refused.value).count("\n") == 0


def test_a_day_that_seldom_comes_or_a_weekday_instead_is_no_mistake() -> None:
    assert parse_cron("0 0 29 2 *")
    assert parse_cron("0 0 31 2 1")  # or a Monday in February
