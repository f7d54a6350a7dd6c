"""Outcomes that wait on the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.errors import StoreBusy
from svcq.jobs import completed, failed
from svcq.store import Claimer, Report, Store, WorkerInfo, open_store
from svcq.worker import spool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spool").mkdir(mode=0o700)
    return tmp_path / "spool"


@pytest.fixture
def reports(client: Client) -> list[Report]:
    """Three runs that are held, and how they ended."""
    for _ in range(3):
        client.command("true")
    worker = client.store.register(WorkerInfo("here", 1))
    claims = client.store.claim(Claimer(worker), 3)
    outcomes = [completed('{"a":1}', exit_code=0, tail="done"), failed("no", exit_code=1)] * 2
    return [
        Report(claim.id, claim.run, worker, outcome)
        for claim, outcome in zip(claims, outcomes, strict=False)
    ]


@pytest.mark.posix
def test_what_is_kept_is_delivered_whole(
    client: Client, folder: Path, reports: list[Report]
) -> None:
    path = spool.save(folder, reports)
    assert path.stat().st_mode & 0o777 == 0o600
    assert spool.deliver(folder, client.store) == 3
    assert list(folder.iterdir()) == []
    first = client.get(reports[0].job)
    assert (first.state, first.result) == ("completed", {"a": 1})
    assert client.runs(reports[0].job)[0].tail == "done"
    assert client.get(reports[1].job).error == "no"


def test_delivering_twice_changes_nothing(
    client: Client, folder: Path, reports: list[Report]
) -> None:
    kept = spool.save(folder, reports).read_text()
    spool.deliver(folder, client.store)
    before = client.counts(), client.follow().cursor
    (folder / "again.json").write_text(kept)
    spool.deliver(folder, client.store)
    assert (client.counts(), client.follow().cursor) == before
    assert list(folder.iterdir()) == []


class AwayStore(Store):
    """A store that cannot be written."""

    def finish(self, reports: object) -> list[object]:
        raise StoreBusy("It is away.")


def test_what_cannot_be_delivered_stays(
    client: Client, folder: Path, reports: list[Report]
) -> None:
    path = spool.save(folder, reports)
    away = AwayStore(client.store.engine, client.config)
    with pytest.raises(StoreBusy):
        spool.deliver(folder, away)
    assert path.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"svcq_spool": 2, "reports": []}',
        '{"svcq_spool": 1}',
        '{"svcq_spool": 1, "reports": [{"job": 1}]}',
        '{"svcq_spool": 1, "reports": [{"job": 1, "run": 1, "worker": 1, "outcome": {}}]}',
    ],
)
def test_what_is_not_understood_is_left_alone(client: Client, folder: Path, text: str) -> None:
    (folder / "other.json").write_text(text)
    assert spool.deliver(folder, client.store) == 0
    assert (folder / "other.json").exists()


def test_a_draft_is_not_taken_for_a_report(client: Client, folder: Path) -> None:
    (folder / ".1.1-ab.json.cd.tmp").write_text("{}")
    assert spool.deliver(folder, client.store) == 0


def test_fields_of_a_newer_program_are_left_out(
    client: Client, folder: Path, reports: list[Report]
) -> None:
    path = spool.save(folder, reports[:1])
    kept = json.loads(path.read_text())
    kept["reports"][0]["outcome"]["mood"] = "good"
    path.write_text(json.dumps(kept))
    assert spool.deliver(folder, client.store) == 1
    assert client.get(reports[0].job).state == "completed"


def test_no_folder_is_nothing_to_deliver(tmp_path: Path, client: Client) -> None:
    assert spool.deliver(tmp_path / "missing", client.store) == 0


def test_another_process_may_deliver(client: Client, folder: Path, reports: list[Report]) -> None:
    spool.save(folder, reports)
    other = open_store(client.config)
    assert spool.deliver(folder, other) == 3
    other.close()
    assert client.get(reports[0].job).state == "completed"
