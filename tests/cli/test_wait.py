"""`svcq wait` exits as the job did."""

from __future__ import annotations

import threading

import pytest

from svcq.cli.wait import exit_code
from svcq.client import Client
from svcq.jobs import completed, failed
from svcq.store import Report
from svcq.times import MINUTE, now_ms
from tests.cli.conftest import Svcq


def end(client: Client, *, code: int | None = None, fails: bool = False, **options: object) -> int:
    """A job that has ended."""
    job = client.command("x", max_attempts=1, **options)
    (claim,) = client.fetch()
    outcome = failed("no", exit_code=code) if fails else completed(exit_code=code)
    client.store.finish([Report(claim.id, claim.run, claim.worker, outcome)])
    return job.id


@pytest.mark.parametrize(
    ("code", "fails", "answer"),
    [
        (None, False, 0),
        (None, True, 1),
        (0, False, 0),
        (3, False, 3),
        (7, True, 7),
        (-9, True, 137),
        (256, True, 1),
        (259, True, 3),
    ],
)
def test_the_code_of_the_job(
    svcq: Svcq, client: Client, code: int | None, fails: bool, answer: int
) -> None:
    job = end(client, code=code, fails=fails)
    assert exit_code(client.get(job)) == answer
    assert svcq("wait", job).code == answer


def test_a_cancelled_job_is_one(svcq: Svcq) -> None:
    svcq.add()
    svcq.ok("cancel", 1)
    said = svcq("wait", 1)
    assert said.code == 1
    assert said.out == "Job 1 is cancelled: cancelled by request.\n"


def test_of_several_the_first_that_failed_decides(svcq: Svcq, client: Client) -> None:
    good, bad, worse = end(client, code=0), end(client, code=5, fails=True), end(client, code=6)
    assert svcq("wait", good, bad, worse).code == 5
    assert svcq("wait", good, worse, bad).code == 6
    assert svcq("wait", good, "--quiet").out == ""


def test_any(svcq: Svcq, client: Client) -> None:
    bad = end(client, code=5, fails=True)
    waiting = svcq.add()
    said = svcq("wait", waiting, bad, "--any", "--json")
    assert said.code == 5
    assert [job["id"] for job in said.json] == [bad]


def test_errors_of_the_wait_itself(svcq: Svcq) -> None:
    waiting = svcq.add()
    assert "no job 99" in svcq.refuses("wait", 99, code=125)
    svcq.refuses("wait", code=125)
    svcq.refuses("wait", waiting, "--timeout", "soon", code=125)
    svcq.refuses("wait", waiting, "--tmeout", "1s", code=125)
    said = svcq.refuses("wait", waiting, "--timeout", "10ms", code=124)
    assert said == f"Still not ended after 10ms: {waiting} (pending)."
    svcq.refuses("wait", waiting, "--timeout", "0", code=124)


def test_it_wakes_when_the_job_ends(svcq: Svcq, client: Client) -> None:
    first, second = svcq.add(), svcq.add()

    def work() -> None:
        with Client() as worker:
            for claim in worker.fetch(n=2):
                worker.complete(claim, result=claim.id)

    thread = threading.Thread(target=work)
    thread.start()
    said = svcq("wait", first, second, "--timeout", "30s", "--json")
    thread.join()
    assert said.code == 0
    assert [job["result"] for job in said.json] == [first, second]


def test_any_is_the_one_that_ended_first(svcq: Svcq, client: Client) -> None:
    with Client(clock=lambda: now_ms() - MINUTE) as earlier:
        early = end(earlier, code=5, fails=True)
    late = end(client, code=6, fails=True)
    assert svcq("wait", "--any", late, early).code == 5


def test_a_signal_is_called_one(svcq: Svcq, client: Client) -> None:
    assert "is dead, ended by signal 9: " in svcq("wait", end(client, code=-9, fails=True)).out
