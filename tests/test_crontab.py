"""Crontabs, by hand, against a reader that goes letter by letter, and with real shells."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcq.crontab import (
    Entry,
    Input,
    Unsaid,
    derived_names,
    read_crontab,
    shell_line,
    without_input,
    write_crontab,
)
from tests import crontab_oracle

MANUAL = """\
# use /bin/bash to run commands, instead of the default /bin/sh
SHELL=/bin/bash
# mail any output to `paul', no matter whose crontab this is
MAILTO=paul
#
# run five minutes after midnight, every day
5 0 * * *       $HOME/bin/daily.job >> $HOME/tmp/out 2>&1
# run at 10 pm on weekdays, annoy Joe
0 22 * * 1-5    mail -s "It's 10pm" joe%Joe,%%Where are your kids?%
  5 4 * * sun     echo "run at 5 after 4 every Sunday"
"""


def test_the_example_of_the_manual() -> None:
    read = read_crontab(MANUAL)
    variables = {"SHELL": "/bin/bash", "MAILTO": "paul"}
    assert read.problems == []
    assert read.entries == [
        Entry("5 0 * * *", "$HOME/bin/daily.job >> $HOME/tmp/out 2>&1", None, variables, line=7),
        Entry("0 22 * * 1-5", "mail -s \"It's 10pm\" joe", "Joe,\n\nWhere are your kids?\n",
              variables, line=9),
        Entry("5 4 * * sun", 'echo "run at 5 after 4 every Sunday"', None, variables, line=10),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("PATH=/bin", "PATH", "/bin"),
        ("PATH = /bin ", "PATH", "/bin"),
        ("A=b c  ", "A", "b c"),
        ("A=\" b c \"", "A", " b c "),
        ("A='say \"x\"'", "A", 'say "x"'),
        ("A=\"\"", "A", ""),
        ('"A B" = c', "A B", "c"),
        ("A=b=c # d", "A", "b=c # d"),
        ("A=it's", "A", "it's"),
    ],
)  # fmt: skip
def test_a_setting_holds_for_the_lines_after_it(line: str, name: str, value: str) -> None:
    read = read_crontab(f"@daily before\n{line}\n@daily after\n")
    assert [entry.variables for entry in read.entries] == [{}, {name: value}]


@pytest.mark.parametrize("line", ["A=", "A='b", "A='b' c", "=b", "A", "A B=c", "''=b"])
def test_what_is_no_setting_is_told(line: str) -> None:
    (problem,) = read_crontab(f"@daily a\n{line}\n").problems
    assert problem.line == 2
    assert "neither NAME=value nor five fields" in problem.says


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("61 * * * * a", "minute '61'"),
        ("* * * * a", "day of week 'a'"),
        ("* * * a", "neither NAME=value"),
        ("* * * * *", "no command"),
        ("* * * * * %input", "no command"),
        ("* * * * * * a", "give five fields"),
        ("@reboot a", "leave the line in the crontab"),
        ("@fortnightly a", "no cron name '@fortnightly'"),
        ("@daily", "no command"),
        ("0 0 31 2 * a", "never fires"),
        ("CRON_TZ=Mars/Base", "no time zone 'Mars/Base'"),
        ("RANDOM_DELAY=soon", "RANDOM_DELAY is 'soon'"),
        ("@daily a\0b", "NUL"),
    ],
)
def test_a_wrong_line_is_told_by_its_number_and_the_others_are_read(line: str, says: str) -> None:
    read = read_crontab(f"# a comment\n\n{line}\n@hourly true\n")
    (problem,) = read.problems
    assert problem.line == 3
    assert says in problem.says
    assert problem.says.endswith(".")
    assert [entry.line for entry in read.entries] == [4]


def test_zones_and_delays_are_those_of_cronie() -> None:
    read = read_crontab(
        "@daily a\nCRON_TZ=Europe/Paris\nRANDOM_DELAY=45\n@daily b\nRANDOM_DELAY=0\n@daily c\n"
    )
    assert [(e.zone, e.delay, e.variables) for e in read.entries] == [
        (None, 0, {}), ("Europe/Paris", 45, {}), ("Europe/Paris", 0, {}),
    ]  # fmt: skip


def test_in_a_systems_crontab_a_user_stands_before_the_command() -> None:
    read = read_crontab("17 *\t* * *\troot\tcd / && run\n@daily root\n", system=True)
    (entry,) = read.entries
    assert (entry.user, entry.command) == ("root", "cd / && run")
    assert "no user or no command" in read.problems[0].says


def test_what_crons_take_differently_is_told() -> None:
    read = read_crontab("PATH=$HOME/bin:$PATH\n@daily sed 's/\\\\/x/' a\n")
    assert read.entries[0].variables["PATH"] == "$HOME/bin:$PATH"
    assert [(one.line, one.says.split(":")[0]) for one in read.remarks] == [
        (1, "PATH has a $, which crontab(5) does not expand"),
        (2, "Two backslashes are kept as they stand; Debian's cron takes them for one."),
    ]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_last_line_may_end_as_it_likes(end: str) -> None:
    assert read_crontab(f"@daily a{end}").entries[0].command == "a"


LETTERS = st.sampled_from("ab0 \t=%'\"\\$*@#-")


@given(st.text(LETTERS, min_size=1))
def test_settings_are_read_as_cron_reads_them(text: str) -> None:
    line = text.lstrip(" \t")
    read = read_crontab(f"{line}\n@daily a\n")
    expected = crontab_oracle.setting(line) if line and not line.startswith("#") else None
    assert read.entries[-1].variables == ({} if expected is None else dict([expected]))


@given(st.sampled_from(["* * * * *", "1 2  3\t4 5", "@daily"]), st.text(LETTERS, max_size=20))
def test_commands_are_read_as_cron_reads_them(time: str, rest: str) -> None:
    read = read_crontab(f"{time} {rest}\n")
    expected = crontab_oracle.entry(f"{time} {rest}")
    if crontab_oracle.setting(f"{time} {rest}") is not None:
        assert read.entries == []
        return
    command, stdin = ("", None)
    if expected is not None and not expected[1].startswith("*"):
        command, stdin = crontab_oracle.command_and_input(expected[1])
    if not command.strip():
        assert read.entries == []
        assert len(read.problems) == 1
        return
    assert expected is not None
    (entry,) = read.entries
    assert (entry.expression.split(), entry.command, entry.stdin) == (expected[0], command, stdin)


# Names


def test_names_do_not_depend_on_times_or_order() -> None:
    first = read_crontab("@daily /usr/bin/backup.sh --full\n5 5 * * * cd /srv && ./sync\n").entries
    again = read_crontab("5 6 * * * cd /srv && ./sync\n@hourly /usr/bin/backup.sh --full\n").entries
    assert set(derived_names(first)) == set(derived_names(again))
    assert [name.rpartition("-")[0] for name in derived_names(first)] == ["backup.sh", "srv"]


def test_the_same_command_twice_has_two_names() -> None:
    entries = read_crontab("@daily a\n@weekly a\n# svcq schedule: b\n@daily a\n").entries
    first, second, third = derived_names(entries)
    assert (second, third) == (f"{first}-2", "b")


@given(st.lists(st.text(max_size=30).filter(str.strip), max_size=5))
def test_every_name_is_a_word_of_its_own(commands: list[str]) -> None:
    names = derived_names([Entry("@daily", command) for command in commands])
    assert len(set(names)) == len(names)
    for name in names:
        assert name.replace("-", "").replace(".", "").replace("_", "").isalnum()
        assert name.isascii()


# Standard input

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(TEXT, TEXT)
def test_a_line_with_input_is_recognised(command: str, stdin: str) -> None:
    wanted = Input("/bin/sh", command, f"{stdin}\n")
    assert without_input(shell_line(wanted)) == wanted


@pytest.mark.parametrize(
    "line", ["true", "exec a b <<'SVCQ_INPUT'\nSVCQ_INPUT\n", "exec ' <<'SVCQ_INPUT'\nSVCQ_INPUT\n",
             "exec /bin/sh -c  a <<'SVCQ_INPUT'\nSVCQ_INPUT\n"],
)  # fmt: skip
def test_a_line_that_someone_else_wrote_is_not(line: str) -> None:
    assert without_input(line) is None


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize(
    "stdin",
    [
        "plain\n",
        "\n\n",
        "$(touch /tmp/x) `id` $HOME 'single' \"double\" \\ \\\\ %s ${x}\n",
        "SVCQ_INPUT\nSVCQ_INPUT1\n",
        "EOF\n\tSVCQ_INPUT\n SVCQ_INPUT \n",
        "naïve ☃ \x01\x7f\n",
        "long\n" * 20_000,
    ],
    ids=["plain", "empty lines", "shell signs", "the mark", "nearly the mark", "odd", "long"],
)
def test_a_real_shell_hands_the_input_over_untouched(shell: str, stdin: str) -> None:
    command = 'IFS= read -r first; printf \'%s\\n\' "$first"; cat; echo "it\'s $0" >&2; exit 7'
    ran = subprocess.run(
        ["/bin/sh", "-c", shell_line(Input(shell, command, stdin))],
        capture_output=True, check=False, timeout=30,
    )  # fmt: skip
    assert ran.stdout.decode() == stdin
    assert ran.stderr.decode() == f"it's {shell}\n"
    assert ran.returncode == 7


# Writing

NAMES = st.sampled_from(["PATH", "SHELL", "HOME", "MAILTO", "A", "B", "LOGNAME"])
ENTRIES = st.builds(
    Entry,
    st.sampled_from(["@daily", "0 3 * * 1-5", "*/5 * * * *"]),
    st.text(LETTERS | st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
    .map(str.lstrip).filter(lambda text: text.strip() and not text.startswith("*")),
    st.none() | st.text(LETTERS | st.just("\n"), max_size=9).map(lambda text: f"{text}\n"),
    st.dictionaries(NAMES, st.text(LETTERS, max_size=6)),
    st.sampled_from([None, "UTC", "Europe/Paris"]),
    st.sampled_from([0, 0, 30]),
    st.sampled_from([None, None, "/srv", "/it's a/place"]),
    user=st.none(),
    name=st.none(),
    line=st.just(0),
    note=st.none(),
)  # fmt: skip


@given(st.lists(ENTRIES, max_size=5))
def test_what_is_written_is_read_back_or_stands_in_a_comment(entries: list[Entry]) -> None:
    named = {f"n{n}": entry._replace(name=f"n{n}") for n, entry in enumerate(entries)}
    text = write_crontab(named.values())
    read = read_crontab(text)
    assert read.problems == []
    found = {entry.name: entry for entry in read.entries}
    for name, entry in named.items():
        if name in found:
            assert same(found[name], entry)
        else:
            assert f"# {name} cannot stand in a crontab: Its command, input or a variable" in text
    assert set(found) <= set(named)


def same(read: Entry, wanted: Entry) -> bool:
    extra = {k: v for k, v in read.variables.items() if k not in wanted.variables}
    assert set(extra) <= {"PATH", "SHELL", "HOME", "LOGNAME"}
    said: Mapping[str, str] = {k: read.variables.get(k, "") for k in wanted.variables}
    return read._replace(variables=said, line=0) == wanted._replace(
        variables=dict(wanted.variables)
    )


def test_a_backslash_before_a_percent_sign_can_be_written_in_a_command_alone() -> None:
    assert "echo \\\\%" in write_crontab([Entry("@daily", "echo \\%", name="a")])
    text = write_crontab([Entry("@daily", "cat", "a\\\nb\n", name="a")])
    assert read_crontab(text).entries == []


def test_nobody_gets_a_line_of_their_own_into_it() -> None:
    evil = "x\n* * * * * rm -rf /"
    text = write_crontab(
        [
            Entry("@daily", evil, name="a"),
            Entry("@daily", "true", variables={"A": evil}, name="b"),
            Entry("@daily", "true", variables={evil: "x"}, name="c"),
            Entry("@daily", "true", directory=evil, name="d"),
            Entry("@daily", "true", name=evil),
        ],
        [Unsaid(evil, evil, evil)],
    )
    assert read_crontab(text).entries == []


def test_what_is_too_long_for_cron_is_not_written() -> None:
    text = write_crontab(
        [
            Entry("@daily", "echo " + "x" * 1000, name="a"),
            Entry("@daily", "true", variables={"A": "x" * 1000}, name="b"),
        ]
    )
    assert "# a cannot stand in a crontab: Its command is longer than cron takes" in text
    assert "# b cannot stand in a crontab: Its variable A is longer than cron takes" in text


def test_a_variable_of_the_lines_above_is_unset_where_it_does_not_belong() -> None:
    text = write_crontab(
        [
            Entry("@daily", "env", variables={"B": "2"}, directory="/srv", name="b"),
            Entry("@daily", "env", variables={"A": "1"}, name="a"),
        ]
    )
    assert "unset B; env" in text
    assert [(e.name, e.variables, e.directory) for e in read_crontab(text).entries] == [
        ("b", {"B": "2"}, "/srv"), ("a", {"A": "1"}, None),
    ]  # fmt: skip
