"""What people do with jobs: cancel, retry, hold, release, move, edit, dlq, purge, cleanup."""

from __future__ import annotations

import os

import pytest

from svcq.client import Client
from svcq.host.files import open_log
from svcq.logs import log_file
from tests.cli.conftest import Svcq


def states(svcq: Svcq) -> dict[int, str]:
    return {job["id"]: job["state"] for job in svcq.ok("list", "--json").json}


def kill(client: Client, queue: str = "default") -> int:
    """A dead job."""
    job = client.command("false", queue=queue, max_attempts=1)
    (claim,) = client.fetch(queue)
    client.fail(claim, "no")
    return job.id


def test_cancel_by_id_and_name(svcq: Svcq) -> None:
    svcq.add("--name", "a")
    svcq.add()
    said = svcq.ok("cancel", "a", 2)
    assert said.out == "Job 1 is cancelled.\nJob 2 is cancelled.\n"


def test_what_cannot_be_done_is_said_and_the_rest_done(svcq: Svcq) -> None:
    svcq.add()
    said = svcq("cancel", 9, 1, "nobody")
    assert said.code == 3
    assert said.out == "Job 1 is cancelled.\n"
    assert said.err.count("svcq: There is no job") == 2
    said = svcq("cancel", 1)
    assert said.code == 1
    assert "already cancelled" in said.err


def test_cancel_of_a_running_job_is_a_request(svcq: Svcq, client: Client) -> None:
    svcq.add()
    client.fetch()
    assert svcq.ok("cancel", 1).out == "Job 1 is processing and asked to stop.\n"


def test_bulk_needs_a_yes(svcq: Svcq) -> None:
    svcq.add("--queue", "mail")
    svcq.add("--tag", "t")
    svcq.add()
    assert "cancel 1 job." in svcq.refuses("cancel", "--queue", "mail")
    assert svcq.ok("hold", "--queue", "mail", "--yes").out == "Held 1 job.\n"
    assert svcq.ok("release", "--state", "held", "-y").out == "Released 1 job.\n"
    assert svcq.ok("cancel", "--tag", "t", "-y").out == "Cancelled 1 job.\n"
    assert states(svcq) == {1: "pending", 2: "cancelled", 3: "pending"}
    assert svcq.ok("cancel", "--tag", "none").out == "Cancelled 0 jobs.\n"
    assert [job["id"] for job in svcq.ok("cancel", "--state", "pending", "-y", "--json").json] == [
        3,
        1,
    ]


def test_retry_again_and_as_a_copy(svcq: Svcq, client: Client) -> None:
    dead = kill(client)
    assert svcq.ok("retry", dead, "--copy").out == "Job 2 is pending.\n"
    assert svcq.ok("retry", dead).out == f"Job {dead} is pending.\n"
    assert "only a job that has ended" in svcq("retry", dead).err


def test_hold_and_release(svcq: Svcq) -> None:
    svcq.add()
    assert svcq.ok("hold", 1).out == "Job 1 is held.\n"
    assert svcq("hold", 1).code == 1
    assert svcq.ok("release", 1).out == "Job 1 is pending.\n"
    assert svcq("release", 1).code == 1


def test_move(svcq: Svcq, client: Client) -> None:
    for _ in range(4):
        svcq.add()
    svcq.ok("move", 3, 4)
    svcq.ok("move", 1, "--last")
    assert [claim.id for claim in client.fetch(n=4)] == [3, 4, 2, 1]
    assert svcq("move", 1).code == 1


def test_edit_by_flags(svcq: Svcq, home) -> None:
    svcq.add("--name", "a", "--priority", 1)
    svcq.ok(
        "edit", "a", "--priority", 5, "--in", "1h", "--tag", "x", "--cwd", home, "--", "ls", "-l"
    )
    job = svcq.job("a")
    assert (job["priority"], job["state"], job["tags"]) == (5, "scheduled", ["x"])
    assert (job["command"], job["cwd"]) == (["ls", "-l"], str(home))
    assert svcq.ok("edit", "a", "--json", "--", "a | b").json["command"] == "a | b"
    assert svcq.ok("edit", "a", "--notify").out == "Job 1 is scheduled.\n"


def test_edit_refuses(svcq: Svcq, client: Client) -> None:
    svcq.add()
    assert "no terminal" in svcq.refuses("edit", 1)
    svcq.refuses("edit", 1, "--priority", "x")
    svcq.refuses("edit", 1, "--cwd", "/no/such/place")
    svcq.refuses("edit", 1, "--")
    client.fetch()
    assert "is processing" in svcq.refuses("edit", 1, "--priority", 1, code=1)


def test_dead_letters(svcq: Svcq, client: Client) -> None:
    first, second, third = kill(client), kill(client, "mail"), kill(client, "mail")
    svcq.add()
    assert {job["id"] for job in svcq.ok("dlq", "list", "--json").json} == {first, second, third}
    listed = svcq.ok("dlq", "list", "--queue", "mail", "--json").json
    assert {job["id"] for job in listed} == {second, third}
    assert "out of attempts" in svcq.ok("dlq", "list").out
    assert svcq.ok("dlq", "show", first, "--json").json["state"] == "dead"
    assert svcq.ok("dlq", "retry", second).out == f"Job {second} is pending.\n"
    assert "remove 1 dead job of queue mail" in svcq.refuses("dlq", "purge", "--queue", "mail")
    assert svcq.ok("dlq", "purge", "--queue", "mail", "--yes").out == "Removed 1 job.\n"
    assert svcq.ok("dlq", "retry", "--all", "--yes").out == "Retried 1 job.\n"
    assert svcq.ok("dlq", "list", "--json").json == []


def test_dead_letters_are_dead(svcq: Svcq, client: Client) -> None:
    waits = svcq.add()
    for verb in ("show", "retry"):
        assert "is pending, not dead" in svcq.refuses("dlq", verb, waits, code=1)
    svcq.refuses("dlq", "retry", "--state", "pending", "--yes")
    assert "nothing to retry" in svcq.refuses("dlq", "retry")


def test_purge(svcq: Svcq, client: Client) -> None:
    kill(client)
    svcq.add()
    svcq.add("--hold")
    assert svcq.ok("purge", "--state", "completed").out == "Removed 0 jobs.\n"
    assert "dead and held jobs" in svcq.refuses("purge", "--state", "dead,held")
    assert svcq.ok("purge", "--state", "dead,held", "-y").out == "Removed 2 jobs.\n"
    assert states(svcq) == {2: "pending"}
    client.fetch()
    assert "cancel them first" in svcq.refuses("purge", "--state", "processing", "-y")


def test_cleanup(svcq: Svcq) -> None:
    assert svcq.ok("cleanup").out == "Removed 0 jobs past retention.\n"


def test_cleanup_removes_the_output_of_purged_jobs(svcq: Svcq, client: Client) -> None:
    svcq.ok("add", "--", "true")
    log = log_file(client.config.home, 1, 1)
    os.close(open_log(log))
    client.complete(client.fetch()[0])
    svcq.ok("purge", "--state", "completed", "--yes")
    said = svcq.ok("cleanup").out
    assert said == (
        "Removed 0 jobs past retention, and 1 file of output that belonged to no job.\n"
    )
    assert not log.exists()


@pytest.mark.parametrize("verb", ["cancel", "retry", "hold", "release"])
def test_a_job_named_twice_is_meant_once(svcq: Svcq, verb: str) -> None:
    assert svcq(verb, 5, 5).err.count("There is no job 5") == 1
