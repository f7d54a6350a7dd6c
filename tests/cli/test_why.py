"""`svcq why`; the sentences themselves are tested in tests/test_why.py."""

from __future__ import annotations

from svcq.client import Client
from tests.cli.conftest import Svcq


def test_one_job(svcq: Svcq) -> None:
    svcq.add("--queue", "video")
    svcq.ok("pause", "video")
    assert svcq.ok("why", 1).out == "pending: queue video is paused: svcq resume video\n"


def test_several_jobs_by_id_and_name(svcq: Svcq) -> None:
    svcq.add("--name", "film", "--hold")
    svcq.add("--after", "film")
    lines = svcq.ok("why", "film", 2).out.splitlines()
    assert lines[0].startswith("1 held: ")
    assert lines[1] == "2 blocked: it waits for job 1 (held) to complete."


def test_as_json(svcq: Svcq) -> None:
    svcq.add("--hold")
    one = svcq.ok("why", 1, "--json").json
    assert (one["job"], one["state"], one["cause"]) == (1, "held", "held")
    assert one["why"].startswith("held: ")
    assert [why["job"] for why in svcq.ok("why", 1, 1, "--json").json] == [1, 1]


def test_an_error_of_others_is_escaped(svcq: Svcq, client: Client) -> None:
    svcq.add("--max-attempts", "1")
    client.fail(client.fetch()[0], "bang \x1b]0;owned\x07")
    assert "(bang \\x1b]0;owned\\x07)" in svcq.ok("why", 1).out


def test_no_such_job(svcq: Svcq) -> None:
    assert svcq.refuses("why", 7, code=3).startswith("There is no job 7")
    assert svcq.refuses("why", "film", code=3).startswith("There is no job named 'film'")
    svcq.refuses("why")
