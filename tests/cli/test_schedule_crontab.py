"""`svcq schedule import` and `export`: crontabs, to and fro."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.crontab import read_crontab
from tests.cli.conftest import Svcq
from tests.lifecycle.homes import Home

CRONTAB = """\
# a crontab
PATH=/opt/bin:/usr/bin:/bin
MAILTO=paul
5 0 * * *       $HOME/bin/daily.job >> out 2>&1
CRON_TZ=America/New_York
SHELL=/bin/bash
0 22 * * 1-5    mail -s "It's 10pm" joe%Joe,%%Where are your kids?
*/10 * * * *    [[ -e x ]] && date +\\%s
"""


def imported(svcq: Svcq, text: str, *words: str) -> dict[int, dict[str, str]]:
    found = svcq.ok("schedule", "import", "-", *words, "--json", stdin=text).json
    return {one["line"]: one for one in found}


def test_a_line_becomes_what_cron_makes_of_it(svcq: Svcq, client: Client) -> None:
    names = {line: one["schedule"] for line, one in imported(svcq, CRONTAB).items()}
    assert list(names) == [4, 7, 8]
    daily = client.get_schedule(names[4])
    assert (daily.cron, daily.command) == ("5 0 * * *", "$HOME/bin/daily.job >> out 2>&1")
    assert (daily.missed, daily.overlap) == ("skip", "queue")
    home = os.path.expanduser("~")
    assert daily.options == {"max_attempts": 1, "cwd": home}
    assert client.schedule_environment(names[4]) == {
        "SHELL": "/bin/sh", "HOME": home, "LOGNAME": getpass.getuser(), "MAILTO": "paul",
        "PATH": "/opt/bin:/usr/bin:/bin",
    }  # fmt: skip
    ten = client.get_schedule(names[8])
    assert (ten.zone, ten.command) == (
        "America/New_York", ["/bin/bash", "-c", "[[ -e x ]] && date +%s"],
    )  # fmt: skip


def test_what_is_said_about_it(svcq: Svcq, tmp_path: Path) -> None:
    file = tmp_path / "crontab"
    file.write_text(CRONTAB)
    said = svcq.ok("schedule", "import", file).out
    assert "3 added." in said
    assert "Nothing is mailed to paul: output is kept (svcq log JOB)" in said
    assert "cron goes on with these lines as well: take them out there." in said
    assert "Line 7: mail-" in said
    said = svcq.ok("schedule", "import", file).out
    assert "3 unchanged." in said
    assert "cron goes on" not in said


def test_imported_twice_it_is_unchanged_and_a_new_time_is_a_change(
    svcq: Svcq, client: Client
) -> None:
    first = imported(svcq, CRONTAB)
    client.edit_schedule(first[4]["schedule"], timeout="5m")
    assert {one["done"] for one in imported(svcq, CRONTAB).values()} == {"unchanged"}
    again = imported(svcq, CRONTAB.replace("5 0 *", "6 1 *").replace("/opt/bin:", ""))
    assert {one["done"] for one in again.values()} == {"changed"}
    assert len(client.schedules()) == 3
    daily = client.get_schedule(first[4]["schedule"])
    assert (daily.cron, daily.options["timeout"]) == ("6 1 * * *", "5m")


def test_wrong_lines_are_told_and_the_others_imported(svcq: Svcq) -> None:
    text = "61 * * * * a\n@reboot b\n@daily c\nnonsense\n# svcq schedule: a/b\n@daily d\n"
    said = svcq("schedule", "import", "-", stdin=text)
    assert said.code == 1
    assert [line.partition(":")[2].partition(":")[0] for line in said.err.splitlines()] == [
        " Line 1", " Line 2", " Line 4", " Line 6",
    ]  # fmt: skip
    assert "1 added, 4 lines not used." in said.out
    assert len(svcq.ok("schedule", "list", "--json").json) == 1


def test_strictly_nothing_is_imported(svcq: Svcq) -> None:
    said = svcq("schedule", "import", "-", "--strict", stdin="@daily c\n@reboot b\n")
    assert said.code == 2
    assert "Line 2: @reboot names no time" in said.err
    assert "Nothing was imported" in said.err
    assert svcq.ok("schedule", "list", "--json").json == []
    svcq.ok("schedule", "import", "-", "--strict", stdin="@daily c\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("HOME=/no/such/place\n@daily a\n", "no directory '/no/such/place'"),
        ("CRON_TZ=Mars/X\n@daily a\n", "no time zone 'Mars/X'"),
        ("@daily a\0b\n", "NUL"),
    ],
)
def test_what_cannot_run_here_is_told_by_its_line(svcq: Svcq, text: str, says: str) -> None:
    said = svcq("schedule", "import", "-", "--strict", stdin=text)
    assert said.code == 2
    assert says in said.err
    assert svcq.ok("schedule", "list", "--json").json == []


def test_a_crontab_that_is_no_text(svcq: Svcq, tmp_path: Path) -> None:
    file = tmp_path / "crontab"
    file.write_bytes(b"@daily a\n\xff\n")
    assert "line 2, is not UTF-8" in svcq.refuses("schedule", "import", file)


def test_a_systems_crontab_has_users(svcq: Svcq) -> None:
    me = getpass.getuser()
    text = f"17 * * * * {me} echo mine\n18 * * * * nobody-else echo theirs\n"
    said = svcq("schedule", "import", "-", "--system-crontab", stdin=text)
    assert "It is for the user nobody-else" in said.err
    (found,) = svcq.ok("schedule", "list", "--json").json
    assert found["command"] == "echo mine"


def test_options_for_new_ones(svcq: Svcq) -> None:
    text = 'MAILTO=""\n@daily a\nMAILTO=me\n@daily b\n'
    found = imported(svcq, text, "--queue", "cron", "--notify", "--paused")
    shown = {
        line: svcq.ok("schedule", "show", one["schedule"], "--json").json
        for line, one in found.items()
    }
    assert [shown[line]["options"].get("notify") for line in (2, 4)] == [None, True]
    assert all(one["paused"] and one["options"]["queue"] == "cron" for one in shown.values())


def test_the_users_own_crontab(svcq: Svcq, tmp_path: Path, monkeypatch) -> None:
    program = tmp_path / "crontab"
    program.write_text('#!/bin/sh\n[ "$1" = -l ] && echo "@daily echo hi"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "1 added." in svcq.ok("schedule", "import", "--user-crontab").out
    program.write_text("#!/bin/sh\necho no crontab for me >&2; exit 1\n")
    said = svcq.refuses("schedule", "import", "--user-crontab", code=1)
    assert said == "crontab -l does not show your crontab (no crontab for me)."
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert "There is no program crontab" in svcq.refuses(
        "schedule", "import", "--user-crontab", code=1
    )


def test_a_worker_runs_a_line_with_its_input(tmp_path: Path) -> None:
    """What the shell is given arrives, whatever it holds."""
    home = Home(tmp_path)
    try:
        file = tmp_path / "crontab"
        text = "SHELL=/bin/bash\nA=$b 'c'\n@daily cat; echo \"$0 $A\"%$(id) `id` \\% 'x'%\"%last"
        file.write_text(text)
        assert home.svcq("schedule", "import", file).returncode == 0
        (schedule,) = home.client.schedules()
        home.worker()
        ran = home.svcq("schedule", "run", schedule.name, "--wait")
        assert ran.returncode == 0, ran
        job = home.client.get_schedule(schedule.name).last_job
        log = home.svcq("log", job).stdout
        assert log == "$(id) `id` % 'x'\n\"\nlast\n/bin/bash $b 'c'\n"
    finally:
        home.close()


# Export


def test_exported_and_imported_it_is_unchanged(svcq: Svcq, client: Client, tmp_path: Path) -> None:
    imported(svcq, CRONTAB)
    svcq.ok("schedule", "add", "here", "--cron", "0 3 * * *", "--tz", "Asia/Tokyo", "--jitter",
            "30m", "--cwd", tmp_path, "--env", "A= b ", "--", "echo", "50%", "it's")  # fmt: skip
    before = {one.name: one for one in client.schedules()}
    file = tmp_path / "exported"
    assert svcq.ok("schedule", "export", file).out == f"Wrote 4 lines of a crontab to {file}.\n"
    found = imported(svcq, file.read_text())
    assert {one["schedule"]: one["done"] for one in found.values()} == dict.fromkeys(
        before, "unchanged"
    )
    for name in before:
        client.remove_schedule(name)
    imported(svcq, file.read_text())
    again = {one.name: one for one in client.schedules()}
    assert again.keys() == before.keys()
    for name, one in again.items():
        assert (one.cron, one.zone, one.jitter_ms) == (
            before[name].cron, before[name].zone, before[name].jitter_ms,
        )  # fmt: skip
        assert one.options["cwd"] == before[name].options["cwd"]
    assert again["here"].command == "echo 50% 'it'\"'\"'s'"


def test_what_a_crontab_cannot_say_is_a_comment(svcq: Svcq) -> None:
    cron = ("--cron", "@daily", "--tz", "UTC")
    svcq.ok("schedule", "add", "often", "--every", "45m", "--", "true")
    svcq.ok("schedule", "add", "task", *cron, "--task", "mail.send")
    svcq.ok("schedule", "add", "paused", *cron, "--paused", "--", "true")
    svcq.ok("schedule", "add", "ends", *cron, "--end", "2031-01-01", "--", "true")
    svcq.ok("schedule", "add", "jitter", *cron, "--jitter", "90s", "--", "true")
    svcq.ok("schedule", "add", "lines", *cron, "--", "echo a\n* * * * * rm -rf /")
    svcq.ok("schedule", "add", "limited", *cron, "--timeout", "5m", "--", "true")
    text = svcq.ok("schedule", "export").out
    assert [entry.name for entry in read_crontab(text).entries] == ["limited"]
    for sentence in (
        "# often cannot stand in a crontab: Its times are no pattern of minutes, hours and days.",
        "#   every 45m: true",
        "# task cannot stand in a crontab: It runs a task of Python.",
        "# paused cannot stand in a crontab: It is paused.",
        "# ends cannot stand in a crontab: It has a start or an end.",
        "# jitter cannot stand in a crontab: Its jitter is no whole number of minutes.",
        "# lines cannot stand in a crontab: Its command",
        "# Without timeout=5m.",
    ):
        assert sentence in text


def test_secrets_are_written_when_asked_for_alone(svcq: Svcq) -> None:
    svcq.ok("schedule", "add", "a", "--cron", "@daily", "--env", "TOKEN=hush", "--", "true")
    assert "hush" not in svcq.ok("schedule", "export").out
    assert "TOKEN (--with-environments writes it)" in svcq.ok("schedule", "export").out
    assert "TOKEN=hush" in svcq.ok("schedule", "export", "--with-environments").out


def test_an_export_is_a_new_file_of_its_owner(svcq: Svcq, tmp_path: Path) -> None:
    file = tmp_path / "out"
    svcq.ok("schedule", "export", file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "exists already" in svcq.refuses("schedule", "export", file)


def test_through_a_pipe(svcq: Svcq, shell_environment: Mapping[str, str]) -> None:
    imported(svcq, CRONTAB)
    me = f"{sys.executable} -m svcq schedule"
    ran = subprocess.run(
        f"{me} export | {me} import -", shell=True, env=dict(shell_environment),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "3 unchanged." in ran.stdout
