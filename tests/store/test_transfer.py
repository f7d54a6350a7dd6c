"""A whole store as lines of JSON, and as a copy of its file."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import svcq
from svcq.client import Client
from svcq.config import load
from svcq.errors import InvalidInput, NameTaken, UniqueTaken
from svcq.jobs import Job, State
from tests.clients import ROOT, assert_sentence
from tests.helpers import eventually
from tests.store.tables import look

SECRET = "s3cret-of-the-environment"


@svcq.task
def work(n: int, *, text: str = "") -> None: ...


EVERY_ENGINE = True


@pytest.fixture
def make_client(
    tmp_path: Path, stores: Callable[[], dict[str, str]]
) -> Iterator[Callable[[str], Client]]:
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(Client(config=load(tmp_path / name, stores())))


@pytest.fixture
def full(make_client: Callable[[str], Client]) -> Client:
    client = make_client("full")
    fill(client)
    return client


def fill(client: Client) -> None:
    """A job in every state, and everything a job can have."""
    client.queue("mail", weight=3, concurrency=5, rate="10/1m", aging="never", max_attempts=4)
    client.queue("parked", paused=True, dead_letter="letters", keep_dead="1d", timeout=5)
    client.command("true", queue="mail", tags=["one"], name="ended", unique_key="free")
    client.command("true", queue="mail", unique_key="window", unique_for="1h")
    client.enqueue(work.options(queue="mail", max_attempts=1), 3, text="ü \U0001f980")
    client.command("true", queue="mail", jitter=0)
    client.command(["sleep", "5"], queue="mail", concurrency_key="k", concurrency=2)
    first, second, third, fourth, _ = client.fetch("mail", 5)
    client.complete(first, {"size": [1, 2]})
    client.complete(second)
    client.fail(third, "no luck")
    client.fail(fourth, "busy", delay="1h")
    env = {"TOKEN": SECRET, "PATH": "/bin"}
    held = client.command(
        "true", hold=True, env=env, cwd="/", priority=5, host="h", when="idle>10m", notify=True,
        expires="1d", unique_key="taken", name="held", tags=["one", "two"],
        concurrency_key="k",
    )  # fmt: skip
    client.command("true", delay="1d", env=env)
    blocked = client.command("true", after=[held.id], after_any=[1], if_parent_fails="wait")
    client.cancel(client.command("true"))
    pending = client.command("true", max_attempts=9)
    client.edit(held, after=[pending.id])  # a parent that is younger than its child
    client.retry(blocked, copy=True)
    counts = client.counts()
    assert {state for state, n in counts.items() if n} == set(State)


def seen(job: Job) -> dict[str, Any]:
    """A job without who held it last: workers do not travel."""
    return {**job.as_json(), "worker": None}


def everything(client: Client) -> dict[str, Any]:
    jobs = client.list(limit=10_000)
    return {
        "counts": client.counts(),
        "by task": {stats.queue: stats.tasks for stats in client.stats()},
        "queues": client.queues(),
        "jobs": [seen(job) for job in jobs],
        "tagged": [[job.id for job in client.list(tag=tag)] for tag in ("one", "two")],
        "runs": [
            [run._replace(worker=None, host=None) for run in client.runs(job)] for job in jobs
        ],
    }


def test_an_export_makes_an_equal_store(full: Client, make_client: Callable[[str], Client]) -> None:
    (running,) = full.list(state="processing")
    new = make_client("new")
    assert new.import_lines(full.export()) == len(full.list())
    again = new.get(running.id)
    assert (again.state, again.interruptions) == (State.PENDING, 1)
    before, after = everything(full), everything(new)
    forget_that_it_ran(running, before, after)
    assert after == before


def forget_that_it_ran(running: Job, before: dict[str, Any], after: dict[str, Any]) -> None:
    """The job that was running is the one difference: afterwards it waits again."""
    for job in (before["jobs"], after["jobs"]):
        shown = next(one for one in job if one["id"] == running.id)
        shown.update(state="", interruptions=0, attempts=0, error=None)
    before["counts"]["processing"] -= 1
    before["counts"]["pending"] += 1
    before["by task"]["mail"]["command"].update(processing=0, pending=1)
    before["by task"]["mail"]["command"].pop("processing")


def test_what_was_moved_keeps_its_place(
    client: Client, make_client: Callable[[str], Client]
) -> None:
    client.queue("mail", aging="never")
    jobs = [client.command("true", queue="mail", priority=n).id for n in (1, 2, 3, 4, 5)]
    client.move(jobs[1])
    client.move(jobs[4], to_front=False)
    order = [jobs[1], jobs[3], jobs[2], jobs[0], jobs[4]]
    same, other = make_client("same"), make_client("other")
    other.queue("mail", aging="1h")  # as those there have it, which an import leaves alone
    for new in (same, other):
        new.import_lines(client.export())
    assert [claim.id for claim in same.fetch("mail", 5)] == order
    assert next(claim.id for claim in other.fetch("mail", 5)) == order[0]
    lines = [json.loads(line) for line in client.export()]
    assert ["moved" in line["job"] for line in lines if "job" in line] == [
        False, True, False, False, True,
    ]  # fmt: skip


def test_ended_jobs_leave_no_keys_behind_in_a_new_store(
    make_client: Callable[[str], Client],
) -> None:
    old, new = make_client("old"), make_client("new")
    ended = old.command("true", concurrency_key="k", concurrency=2)
    old.cancel(ended)
    new.import_lines(old.export())
    for table in ("lanes", "keys"):
        assert look(new.store, f"SELECT count(*) FROM {table} WHERE key = 'k'") == [(0,)]
    assert new.retry(ended.id).state is State.PENDING
    assert [claim.id for claim in new.fetch()] == [ended.id]


def test_an_import_goes_on_as_the_old_store_would(
    full: Client, make_client: Callable[[str], Client]
) -> None:
    new = make_client("new")
    new.import_lines(full.export())
    newest = max(job.id for job in full.list())
    for key in ("taken", "window"):
        with pytest.raises(UniqueTaken):
            new.command("true", unique_key=key, queue="default" if key == "taken" else "mail",
                        on_duplicate="refuse")  # fmt: skip
    with pytest.raises(NameTaken):
        new.command("true", name="held")
    fresh = new.command("true", unique_key="free", name="ended", queue="mail")
    assert fresh.id > newest
    parent = new.list(state="pending", queue="default")[-1]
    held = new.get("held")
    assert held.after == (parent.id,)
    new.release(held)
    assert new.get(held).state is State.BLOCKED
    while claims := new.fetch("default", 10):
        for claim in claims:
            new.complete(claim)
    assert new.get(held).state is State.PENDING  # its host and condition are not here
    assert everything(new)["counts"] == new.counts()


def test_into_a_store_with_jobs_come_new_ids(
    full: Client, make_client: Callable[[str], Client]
) -> None:
    new = make_client("new")
    own = [new.command("true").id for _ in range(3)]
    new.queue("mail", weight=7)
    count = new.import_lines(full.export())
    assert len(new.list(limit=1000)) == count + 3
    assert new.queue("mail").weight == 7
    assert new.queue("parked").dead_letter == "letters"
    old, imported = full.get("held"), new.get("held")
    assert imported.id not in own
    shift = imported.id - old.id
    assert shift > 0
    assert imported.after == tuple(parent + shift for parent in old.after)
    copies = [(job.id, job.copy_of) for job in full.list() if job.copy_of]
    assert copies == [
        (job.id - shift, job.copy_of - shift) for job in new.list(limit=1000) if job.copy_of
    ]
    assert [new.get(job).command for job in own] == ["true"] * 3


def test_what_is_imported_twice_collides_by_name_and_leaves_nothing(
    full: Client, make_client: Callable[[str], Client]
) -> None:
    new = make_client("new")
    new.import_lines(full.export())
    before = everything(new)
    with closing(full.export()) as lines, pytest.raises(UniqueTaken) as caught:
        new.import_lines(lines)
    assert_sentence(caught.value)
    assert everything(new) == before


@pytest.mark.parametrize("asked", [False, True])
def test_environments_travel_only_when_asked(
    full: Client, make_client: Callable[[str], Client], asked: bool
) -> None:
    lines = list(full.export(environments=asked))
    assert any(SECRET in line for line in lines) is asked
    new = make_client("new")
    new.import_lines(lines)
    ((found,),) = look(new.store, "SELECT count(*) FROM environments")
    ((used,),) = look(new.store, "SELECT count(env) FROM specs")
    assert (found, used) == ((1, 2) if asked else (0, 0))


def test_an_export_is_one_view_that_others_write_under(full: Client) -> None:
    lines = full.export()
    first = next(lines)
    full.command("true", name="added meanwhile")
    rest = list(lines)
    assert json.loads(first)["svcq"] == 1
    assert not any("added meanwhile" in line for line in rest)
    unfinished = full.export()
    next(unfinished)
    unfinished.close()
    full.command("true")


# Backups


def test_a_backup_is_a_store_with_everything(full: Client, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    full.backup(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("*copy*")] == ["copy.db"]
    (running,) = full.list(state="processing")
    with Client(config=full.config._replace(store=str(target))) as copy:
        before, after = everything(full), everything(copy)
        forget_that_it_ran(running, before, after)
        at = [job["id"] for job in after["jobs"]].index(running.id)
        (interrupted,) = after["runs"][at]
        assert interrupted.error == "it was running when the backup was made"
        after["runs"][at] = []
        assert after == before
        assert copy.command("true").id == max(job.id for job in full.list()) + 1


def test_nobody_works_on_a_backup(full: Client, tmp_path: Path) -> None:
    """Its workers are those of the original: here they are gone, and what they ran waits again."""
    target = tmp_path / "copy.db"
    full.backup(target)
    (running,) = full.list(state="processing")
    assert full.workers() != []
    with Client(config=full.config._replace(store=str(target))) as copy:
        assert copy.workers() == []
        assert copy.get(running).state is State.PENDING
        assert copy.store.id() != full.store.id()
        (claim,) = [one for one in copy.fetch("mail", 10) if one.id == running.id]
        assert claim.run == running.run + 1
    assert full.get(running).state is State.PROCESSING


@pytest.mark.parametrize("asked", [False, True])
def test_a_backup_holds_environments_only_when_asked(
    full: Client, tmp_path: Path, asked: bool
) -> None:
    target = tmp_path / "copy.db"
    full.backup(target, environments=asked)
    assert (SECRET.encode() in target.read_bytes()) is asked


def test_a_backup_never_replaces_a_file(full: Client, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep me")
    with pytest.raises(InvalidInput) as caught:
        full.backup(target)
    assert_sentence(caught.value, str(target))
    assert target.read_text() == "keep me"


@pytest.mark.parametrize("name", ["no/such/folder/copy.db", "x" * 300, "a\0b", ""])
def test_places_where_no_backup_can_be(full: Client, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(svcq.SvcqError) as caught:
        full.backup(f"{tmp_path}/{name}")
    assert_sentence(caught.value)
    assert sorted(tmp_path.iterdir()) == before


WRITER = """
import sys, svcq
with svcq.Client(store=sys.argv[1]) as client:
    for n in range(100_000):
        job = client.command("true", tags=["a"], env={"TOKEN": sys.argv[2]})
        client.cancel(job)
"""


def test_a_backup_while_others_write(client: Client, tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, client.config.store, SECRET], cwd=ROOT)
        for _ in range(2)
    ]
    try:
        eventually(lambda: sum(client.counts().values()) > 50, timeout=30)
        for n in range(3):
            before = sum(client.counts().values())
            target = tmp_path / f"copy{n}.db"
            client.backup(target)
            assert SECRET.encode() not in target.read_bytes()
            with Client(config=client.config._replace(store=str(target))) as copy:
                counts = copy.counts()
                assert before <= sum(counts.values()) <= sum(client.counts().values())
                assert sum(counts.values()) == len(copy.list(limit=100_000))
                assert len(copy.list(limit=100_000, tag="a")) == sum(counts.values())
        assert all(writer.poll() is None for writer in writers)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
