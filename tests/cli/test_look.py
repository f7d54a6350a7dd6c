"""`svcq list`, `show`, `status`, `stats` and `activity`."""

from __future__ import annotations

import pytest

from svcq.client import Client
from svcq.jobs import State
from tests.cli.conftest import Svcq

JOB_KEYS = {
    "id", "name", "queue", "state", "reason", "priority", "run", "attempts", "max_attempts",
    "failures", "created_at", "run_at", "started_at", "finished_at", "exit_code", "error",
    "progress", "result", "tags", "owner", "command",
}  # fmt: skip


def ids(svcq: Svcq, *filters: object) -> list[int]:
    return [job["id"] for job in svcq.ok("list", "--json", *filters).json]


def test_a_job_in_json_has_the_names_that_scripts_rely_on(svcq: Svcq) -> None:
    added = svcq.ok("add", "--json", "--", "true").json
    (listed,) = svcq.ok("list", "--json").json
    shown = svcq.ok("show", added["id"], "--json").json
    for job in (added, listed, shown):
        assert job.keys() >= JOB_KEYS
        assert job["created_at"].endswith("Z")
    assert shown["runs"] == []


def test_an_empty_list(svcq: Svcq) -> None:
    assert svcq.ok("list").out == ""
    assert svcq.ok("list", "--json").json == []


def test_filters(svcq: Svcq) -> None:
    first = svcq.add("--queue", "mail", "--tag", "a", "--name", "Letter")
    second = svcq.add("--hold", command=("echo", "needle"))
    third = int(svcq.ok("add", "--task", "mail.send", "--args", '["hay"]').out)
    assert ids(svcq) == [third, second, first]
    assert ids(svcq, "--queue", "mail") == [first]
    assert ids(svcq, "--tag", "a") == [first]
    assert ids(svcq, "--task", "mail.send") == [third]
    assert ids(svcq, "--state", "held") == [second]
    assert ids(svcq, "--state", "held,pending", "--state", "dead") == [third, second, first]
    assert ids(svcq, "--grep", "NEEDLE") == [second]
    assert ids(svcq, "--grep", "letter") == [first]
    assert ids(svcq, "--grep", "hay") == [third]
    assert ids(svcq, "--since", "1h") == [third, second, first]
    assert ids(svcq, "--since", "2099-01-01") == []
    assert ids(svcq, "--owner", "nobody-of-that-name") == []
    assert ids(svcq, "--limit", 2) == [third, second]


def test_all_goes_past_every_page(svcq: Svcq, client: Client) -> None:
    client.add([client.new_command("true")] * 2500)
    assert len(ids(svcq)) == 100
    assert len(ids(svcq, "--limit", 1500)) == 1500
    assert ids(svcq, "--all") == list(range(2500, 0, -1))


def test_plain_lines_in_a_pipe(svcq: Svcq) -> None:
    svcq.add("--name", "n" * 200, command=("echo", "x" * 300))
    said = svcq.ok("list")
    head, line = said.out.splitlines()
    assert head.split() == ["ID", "STATE", "QUEUE", "TRIES", "WHEN", "NAME", "WHAT"]
    assert "x" * 300 in line
    assert "n" * 200 in line
    assert "\t" not in said.out
    assert "\x1b" not in said.out
    assert (
        svcq.ok("list", "--columns", "state,id,tags").out == "STATE    ID  TAGS\npending   1  -\n"
    )


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\nb", "bell\x07", "\u202eevil", "tab\there"])
def test_control_characters_are_escaped(svcq: Svcq, client: Client, text: str) -> None:
    job = client.command(["echo", text], name=f"n{text}").id
    (claim,) = client.fetch()
    client.fail(claim, f"error {text}")
    for said in (svcq.ok("list"), svcq.ok("show", job), svcq.ok("list", "--json")):
        assert not set(said.out) & {"\x1b", "\x07", "\u202e"}
        assert "red" in said.out or "\x1b" not in text
    assert len(svcq.ok("list").out.splitlines()) == 2


def test_show_tells_of_runs(svcq: Svcq, client: Client) -> None:
    job = svcq.add("--max-attempts", 2, "--name", "thing", "--backoff-base", 0)
    (claim,) = client.fetch()
    client.fail(claim, "no such luck", delay=0)
    (claim,) = client.fetch()
    client.fail(claim, "again")
    said = svcq.ok("show", "thing").out
    assert "out of attempts" in said
    assert "no such luck" in said
    assert "2 of 2" in said
    shown = svcq.job(job)
    assert [(run["run"], run["how"]) for run in shown["runs"]] == [(1, "failed"), (2, "failed")]
    assert shown["runs"][0]["started_at"].endswith("Z")
    assert (shown["state"], shown["error"]) == ("dead", "again")


def test_show_several(svcq: Svcq) -> None:
    svcq.add()
    svcq.add()
    assert [job["id"] for job in svcq.ok("show", 1, 2, "--json").json] == [1, 2]
    assert svcq.ok("show", 1, 2).out.count("state") == 2


def test_status(svcq: Svcq, client: Client) -> None:
    svcq.add()
    svcq.add("--queue", "mail")
    client.fetch("mail")
    svcq.ok("pause", "mail")
    status = svcq.ok("status", "--json").json
    assert status.keys() >= {"counts", "workers", "service", "clock"}
    assert set(status["counts"]) == set(State)
    assert (status["counts"]["pending"], status["counts"]["processing"]) == (1, 1)
    (worker,) = status["workers"]
    assert worker.keys() == {
        "id", "host", "pid", "started_at", "slots", "running", "version", "state",
        "heard_at",
    }  # fmt: skip
    assert worker["running"] == 1
    assert svcq.ok("status", "--queue", "mail", "--json").json["counts"]["pending"] == 0
    said = svcq.ok("status").out
    assert "1 pending" in said
    assert "1 worker with 1 slot, 1 in use." in said
    assert "Paused: mail." in said


def test_an_empty_store(svcq: Svcq) -> None:
    assert "There are no jobs." in svcq.ok("status").out
    assert svcq.ok("stats").out == "There are no numbers yet.\n"
    assert svcq.ok("activity", "--last", "2h").out == "Nothing happened in the last 2h.\n"
    assert svcq.ok("stats", "--json").json == []
    assert svcq.ok("activity", "--json").json == []


def test_stats_and_activity(svcq: Svcq, client: Client) -> None:
    svcq.add("--queue", "mail")
    svcq.add()
    (claim,) = client.fetch("mail")
    client.complete(claim)
    (stats,) = svcq.ok("stats", "--queue", "mail", "--json").json
    assert (stats["queue"], stats["added"], stats["completed"]) == ("mail", 1, 1)
    assert stats["run"]["n"] == 1
    assert "mail" in svcq.ok("stats").out
    minutes = svcq.ok("activity", "--queue", "mail", "--json").json
    assert sum(minute["counts"].get("completed", 0) for minute in minutes) == 1
    assert minutes[0]["minute"].endswith("Z")
    assert "COMPLETED" in svcq.ok("activity").out
