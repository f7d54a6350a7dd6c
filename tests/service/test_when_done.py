"""What was planned for the end of all work: when that is, and that it happens once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.host import processes
from svcq.service.plans import Plan, Plans, left_to_do
from svcq.service.when_done import WhenDone
from svcq.times import now_ms
from tests.clients import open_client
from tests.helpers import eventually
from tests.host.test_power import program


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_client(tmp_path / "home") as client:
        yield client


@pytest.fixture
def plans(client: Client) -> Plans:
    return Plans(client.config.home)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What logind was asked for, a line each time."""
    program(tmp_path, "systemctl", 'echo "$@" >> {folder}/asked', monkeypatch)
    return tmp_path / "asked"


def a_plan(action: str = "sleep", wait: int = 0, **more: object) -> Plan:
    plan = Plan(action, now_ms(), wait, boot=processes.boot_id())
    return plan._replace(**more)  # type: ignore[arg-type]


# What is left to do


def test_what_counts_as_work(client: Client) -> None:
    def left() -> dict[str, int]:
        return left_to_do(client.store, ())

    assert left() == {}
    client.command("true", hold=True)
    client.cancel(client.command("true"))
    client.queue("parked", paused=True)
    parked = client.command("true", queue="parked")
    assert left() == {}, "held, ended, or in a paused queue"
    client.command("true", delay="1d")
    client.command("true", after=[parked.id])
    client.command("true", queue="mail")
    assert left() == {"scheduled": 1, "blocked": 1, "pending": 1}
    (claim,) = client.fetch("mail")
    assert left()["processing"] == 1
    client.fail(claim, "busy", delay="1h")
    assert left() == {"scheduled": 1, "blocked": 1, "retrying": 1}
    assert left_to_do(client.store, ("mail",)) == {"retrying": 1}
    assert left_to_do(client.store, ("parked",)) == {}
    assert left_to_do(client.store, ("parked", "default")) == {"scheduled": 1, "blocked": 1}
    client.resume("parked")
    assert left_to_do(client.store, ("parked",)) == {"pending": 1}


# Carrying it out


def test_it_happens_once_when_all_is_done(client: Client, plans: Plans, asked: Path) -> None:
    said: list[str] = []
    client.command("true")
    plans.write(a_plan())
    with WhenDone(client.config, said.append):
        eventually(plans.someone_will)
        (claim,) = client.fetch()
        assert not asked.exists()
        client.complete(claim)
        eventually(asked.exists)
        eventually(plans.last)
        assert plans.read() is None
    assert asked.read_text().splitlines() == ["--no-pager --no-ask-password suspend"]
    assert said == ["All work is done: svcq is to put the machine to sleep now."]
    last = plans.last()
    assert last is not None
    assert (last.done, last.says) == (
        True, "All work was done: svcq was to put the machine to sleep.",
    )  # fmt: skip
    assert not plans.someone_will()


def test_there_is_time_to_cancel(client: Client, plans: Plans, asked: Path) -> None:
    said: list[str] = []
    plans.write(a_plan("shutdown", wait=600_000))
    with WhenDone(client.config, said.append):
        due = eventually(plans.due)
        assert now_ms() < due <= now_ms() + 600_000
        assert plans.take() is not None
        assert plans.take() is None
        assert plans.due() is None
    assert not asked.exists()
    (says,) = said
    assert says.startswith("All work is done: svcq is to shut the machine down in 10m (")
    assert plans.last() is None


def test_work_that_comes_first_comes_first(client: Client, plans: Plans, asked: Path) -> None:
    said: list[str] = []
    plans.write(a_plan(wait=2_000))
    with WhenDone(client.config, said.append):
        eventually(plans.due)
        client.command("true")
        eventually(lambda: plans.due() is None)
        (claim,) = client.fetch()
        client.complete(claim)
        eventually(asked.exists)
    assert [line.partition(":")[0] for line in said] == [
        "All work is done", "There is work again", "All work is done", "All work is done",
    ]  # fmt: skip


def test_a_command_is_queued_as_a_job(client: Client, plans: Plans, tmp_path: Path) -> None:
    plan = a_plan("command", boot=None, command=["echo", "a b"], cwd=str(tmp_path), env={"A": "1"})
    plans.write(plan)
    said: list[str] = []
    with WhenDone(client.config, said.append):
        eventually(lambda: client.counts()["pending"])
    (job,) = client.list()
    assert (job.command, job.cwd, job.tags) == (["echo", "a b"], str(tmp_path), ("when-done",))
    assert client.environment(job) == {"A": "1"}
    assert said == ["All work is done: svcq is to queue echo 'a b' now."]
    last = plans.last()
    assert last is not None
    assert last.says == f"All work was done: job {job.id} was queued."


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (a_plan(), "svcq could not put the machine to sleep (Access denied)."),
        (a_plan("shutdown"), "svcq could not shut the machine down (Access denied)."),
        (a_plan("command", command=["true"], cwd="/no/such"), "There is no directory '/no/such'"),
    ],
)
def test_what_cannot_be_done_is_told(
    client: Client, plans: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan,
    says: str,
) -> None:  # fmt: skip
    program(tmp_path, "systemctl", "echo Access denied >&2; exit 1", monkeypatch)
    said: list[str] = []
    plans.write(plan)
    with WhenDone(client.config, said.append):
        eventually(lambda: len(said) == 2)
        last = eventually(lambda: (one := plans.last()) and not one.done and one)
    assert says in said[1]
    assert says in last.says
    assert plans.read() is None


def test_it_outlives_the_service_but_not_the_machine(
    client: Client, plans: Plans, asked: Path
) -> None:
    said: list[str] = []
    client.command("true")
    plans.write(a_plan(boot="another boot"))
    with WhenDone(client.config, said.append):
        eventually(lambda: plans.read() is None)
    assert "was started anew since it was planned to put the machine to sleep" in said[0]
    plans.write(a_plan())
    for _ in range(2):
        with WhenDone(client.config, said.append):
            eventually(plans.someone_will)
        assert plans.read() is not None
    with WhenDone(client.config, said.append):
        client.cancel(1)
        eventually(asked.exists)


def test_of_two_one_does_it(client: Client, plans: Plans, asked: Path) -> None:
    said: list[str] = []
    with WhenDone(client.config, said.append):
        eventually(plans.someone_will)
        with WhenDone(client.config, said.append):
            plans.write(a_plan())
            eventually(asked.exists)
            eventually(plans.last)
    assert len(asked.read_text().splitlines()) == 1
    assert len(said) == 1


def test_it_is_its_owners_alone(client: Client, plans: Plans) -> None:
    plans.write(a_plan("command", env={"TOKEN": "secret"}, command="true"))
    file = client.config.home / "when-done.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" not in str(a_plan("command", env={"TOKEN": "secret"}).as_json())


@pytest.mark.parametrize("text", ["", "{}", "[]", "x", '{"action": 5, "more": 1}'])
def test_a_file_that_says_nothing_sensible(client: Client, plans: Plans, text: str) -> None:
    file = client.config.home / "when-done.json"
    file.write_text(text)
    assert plans.read() is None
    assert plans.take() is None
    assert not os.path.exists(file)
