"""The client's two doors: the same verbs with the same answers, by the store and by the service."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from svcq import Options
from svcq.client import Client
from svcq.client.connection import LocalConnection
from svcq.client.remote import RemoteClient
from svcq.client.verbs import VERBS
from svcq.config import load
from svcq.errors import (
    InvalidInput,
    NameTaken,
    NotFound,
    NotPermitted,
    Unreachable,
    WaitTimeout,
    WrongState,
)
from svcq.policy import NewJob, make_plan, read_options
from svcq.words import new_job, words_of
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.lifecycle.sample import add as task
from tests.web.served import Served


@pytest.fixture
def near(served: Served) -> Client:
    return served.client


@pytest.fixture
def far(served: Served) -> Iterator[Client]:
    with RemoteClient(connection=LocalConnection(served.path / "service.sock")) as client:
        yield client


# For the owner's own hands: no program of another user may do these.
REFUSED = {"using", "backup", "export", "import_lines", "acting_for"}
BY_HAND = {"fetch", "heartbeat", "progress", "complete", "fail", "reject", "snooze"}


def test_every_verb_of_the_client_is_asked_or_refused() -> None:
    public = {
        name
        for name, _ in inspect.getmembers(Client, inspect.isfunction)
        if not name.startswith("_")
    }
    own = {name for name in RemoteClient.__dict__ if not name.startswith("_")}
    inherited = {
        # Made of others.
        "command", "enqueue", "enqueue_many", "why", "new_command", "new_task",
    }  # fmt: skip
    assert public - own - BY_HAND == inherited
    assert own >= REFUSED
    assert {verb.name for verb in VERBS} <= own


@pytest.mark.parametrize("verb", sorted(BY_HAND))
def test_running_by_hand_is_refused(far: Client, verb: str) -> None:
    arguments: dict[str, tuple[Any, ...]] = {
        "fetch": (),
        "heartbeat": (),
        "progress": (_claim(), 1),
    }
    with pytest.raises(NotPermitted, match="owner"):
        getattr(far, verb)(*arguments.get(verb, (_claim(), "1")))


def _claim() -> Any:
    from svcq.jobs import Claim

    return Claim(1, 1, 1, "default", "t", None, None, "{}", "{}", None, None, None, 0, 0)


def test_looks_are_the_same(near: Client, far: Client, served: Served) -> None:
    served.run("echo out; exit 2", queue="same", tags=["t"], name="same")
    held = near.command("exit 0", hold=True, queue="same", delay="1h", max_attempts=4)
    near.schedule("same", ["echo", "x"], cron="0 3 * * *", tz="Europe/Paris", priority=2)
    near.schedule("calls", task, args=[1, 2], every="1h", jitter="1m")
    near.fire_schedule("same")
    near.queue("same", rate="10/1m", aging="never", success=[0, 3], timeout="90s")
    looks = (
        lambda client: client.get(held),
        lambda client: client.get("same"),
        lambda client: client.list(queue="same"),
        lambda client: client.list(queue="same", state="dead"),
        lambda client: client.list(tag="t", since=datetime.now(UTC) - timedelta(hours=1)),
        lambda client: client.runs("same"),
        lambda client: client.explain(held),
        lambda client: client.why(held),
        lambda client: client.first_in_line(10),
        lambda client: client.counts(),
        lambda client: client.counts("same"),
        lambda client: client.queue("same"),
        lambda client: client.queues(),
        lambda client: client.activity("same"),
        lambda client: client.changes(0),
        lambda client: client.follow().cursor,
        lambda client: client.schedules(),
        lambda client: client.get_schedule("same"),
        lambda client: client.get_schedule("calls").explain(),
        lambda client: client.next_runs("same", 3),
        lambda client: client.next_runs(cron="*/5 * * * *", tz="UTC", after="2031-01-01T00:00:00Z"),
        lambda client: client.firings("same"),
        lambda client: client.firings(),
        lambda client: client.firing_of(client.firings("same")[0].job),
        lambda client: client.firing_of(held.id),
        lambda client: b"".join(client.output("same", 1).read()),
        lambda client: client.output("same", 1).size(),
        lambda client: client.output("same", 1).start_of_tail(1),
        lambda client: client.output(held, 0).size(),
        lambda client: [
            one._replace(boot=None, born=None, program=0, beat=0) for one in client.workers()
        ],
    )
    for number, look in enumerate(looks):
        mine, theirs = look(near), look(far)
        if mine != theirs:  # something has happened between the two
            mine = look(near)
        assert theirs == mine, number
    (stats,) = far.stats("same", minutes=5)
    assert stats._replace(oldest=None) == near.stats("same", minutes=5)[0]._replace(oldest=None)
    near.remove_schedule("same")
    near.remove_schedule("calls")


def test_what_is_done_is_the_same(near: Client, far: Client) -> None:
    job = far.command(["sleep", "60"], hold=True, queue="done", name="done", env={"A": "b"})
    assert job == near.get(job)
    assert far.release(job).state == "pending" or far.get(job).state == "processing"
    eventually(lambda: far.get(job).state == "processing", PATIENCE)
    assert far.suspend(job).paused
    assert not far.suspend(job, paused=False).paused
    far.cancel("done")
    assert far.wait(job, PATIENCE).state == "cancelled"
    far.queue("done", paused=True, weight=3)
    assert near.queue("done").weight == 3
    again = far.retry(job)
    assert again.state == "pending"
    other = far.retry(far.cancel(job), copy=True)
    assert other.id > job.id
    assert far.edit(other, priority=3, timeout=timedelta(minutes=2)).options["timeout"] == 120.0
    assert far.move(other).priority == 3
    assert far.move(other, to_front=False).id == other.id
    assert far.hold(other).state == "held"
    far.resume("done")
    assert not near.queue("done").paused
    far.pause("done")
    assert near.queue("done").paused
    assert (far.environment(other) or {}).get("A") == "b"
    assert far.purge(["held", "cancelled"], "done") == 2
    far.delete_queue("done")
    with pytest.raises(NotFound):
        near.queue("done")
    assert far.cleanup() == 0


def test_schedules_are_said_the_same(near: Client, far: Client) -> None:
    for client, name in ((near, "by-near"), (far, "by-far")):
        client.schedule(
            name, task, args=[1], kwargs={"b": 2}, every=timedelta(hours=2), missed="skip",
            options=Options(queue="s", tags=["x"]), priority=1,
        )  # fmt: skip
    mine, theirs = near.get_schedule("by-near"), near.get_schedule("by-far")
    for field in ("every_ms", "missed", "task", "args_json", "options", "owner"):
        assert getattr(mine, field) == getattr(theirs, field), field
    line = far.schedule("line", "echo hi", at=datetime.now(UTC) + timedelta(days=1))
    assert line == near.get_schedule("line")
    assert far.edit_schedule("line", priority=5).options["priority"] == 5
    assert far.edit_schedule("line", priority=None).options.get("priority") is None
    assert far.pause_schedule("line").paused
    assert not far.resume_schedule("line").paused
    assert far.hand_off("line", "systemd").fired_by == "systemd"
    assert far.take_back("line").fired_by == "svcq"
    for name in ("by-near", "by-far", "line"):
        far.remove_schedule(name)


def test_tasks_are_queued(near: Client, far: Client) -> None:
    job = far.enqueue(task.options(queue="t", hold=True), 1, b=2)
    assert job == near.get(job)
    assert (job.task, job.args, job.kwargs) == (task.name, [1], {"b": 2})
    ids = far.enqueue_many(task.options(queue="t", hold=True), [{"a": n, "b": 1} for n in range(3)])
    assert [near.get(one).kwargs["a"] for one in ids] == [0, 1, 2]
    existing = far.command("true", unique_key="k", hold=True)
    assert far.command("true", unique_key="k") == existing


def test_errors_are_the_same(near: Client, far: Client) -> None:
    near.command("true", name="there", hold=True)
    for act in (
        lambda client: client.get(99_999),
        lambda client: client.get("no-such"),
        lambda client: client.get(""),
        lambda client: client.cancel(99_999),
        lambda client: client.release(near.cancel(near.command("true", hold=True)).id),
        lambda client: client.command(""),
        lambda client: client.command("true", priority="high"),
        lambda client: client.command("true", colour="blue"),
        lambda client: client.command("true", name="there"),
        lambda client: client.command("true", cwd="/no/such/place"),
        lambda client: client.command("true", after=99_999),
        lambda client: client.queue("x", nonsense=1),
        lambda client: client.queue("no-such"),
        lambda client: client.queue("a b"),
        lambda client: client.list(state="sleeping"),
        lambda client: client.purge("processing"),
        lambda client: client.schedule("x", "true", cron="nonsense"),
        lambda client: client.get_schedule("no-such"),
        lambda client: client.stop_worker(99_999),
    ):
        said = []
        for client in (near, far):
            with pytest.raises((InvalidInput, NotFound, NameTaken, WrongState)) as caught:
                act(client)
            said.append((type(caught.value), _numbers_aside(str(caught.value))))
        assert said[0][0] is said[1][0], said
    with pytest.raises(WaitTimeout):
        far.wait("there", 0.2)


def _numbers_aside(text: str) -> str:
    return "".join(letter for letter in text if not letter.isdigit())


def test_many_pages_are_one_list(near: Client, far: Client) -> None:
    near.add([near.new_command("true", queue="long", hold=True)] * 2500)
    ids = [job.id for job in far.list(queue="long", limit=2200)]
    assert ids == [job.id for job in near.list(queue="long", limit=2200)]
    assert [job.id for job in far.list(queue="long", state="held", limit=1500)] == ids[:1500]
    near.purge("held", "long")


def test_changes_are_followed(near: Client, far: Client) -> None:
    follower = far.follow()
    assert follower.next(0) == []
    jobs = [near.command("true", hold=True).id for _ in range(3)]
    seen: list[int] = []
    while len(seen) < 3:
        seen += [change.job for change in follower.next(PATIENCE)]
    assert seen == jobs
    mark = far.mark()
    near.cancel(jobs[0])
    assert far.mark() != mark


def test_output_is_read_as_it_grows(far: Client, served: Served) -> None:
    go = served.work / "go-on"
    job = served.add(f"echo one; until [ -e {go} ]; do sleep 0.05; done; echo two")
    served.wait_until_running(job)
    reader = far.output(job, 1).reader()
    eventually(lambda: b"".join(reader.read()) == b"one\n", PATIENCE)
    assert list(reader.read()) == []
    go.touch()
    served.ended(job)
    assert b"".join(reader.read()) == b"two\n"


def test_a_lost_connection_is_made_anew(far: Client, served: Served) -> None:
    before = far.counts()
    served.stop()
    with pytest.raises(Unreachable, match="svcq start"):
        far.counts()
    served.serve()
    assert far.counts() == before
    assert far.command("true", hold=True).state == "held"


def test_its_settings_are_the_services(far: Client, near: Client) -> None:
    assert far.config.jobs == near.config.jobs
    assert far.config.queue == near.config.queue


SAID: list[dict[str, Any]] = [
    {},
    {"queue": "q", "name": "n", "tags": ["a", "b"], "priority": -3, "delay": "1h30m"},
    {"run_at": "2031-05-01T03:00:00Z", "expires": 0, "hold": True, "cwd": "/", "env": {}},
    {"max_attempts": 2, "backoff": "linear", "backoff_base": 1.5, "backoff_cap": "1m"},
    {"timeout": 0.5, "grace": "2s", "success": [0, 3], "retry_on": [75], "reject": [64]},
    {"unique_key": "k", "unique_for": 0, "on_duplicate": "replace"},
    {"after": [1, 2], "after_any": 3, "if_parent_fails": "wait"},
    {"when": "ac-power", "host": "here", "concurrency_key": "gpu", "concurrency": 1},
    {"notify": False, "tty": True, "max_output": "10M", "when_over": "end", "memory": "1G"},
    {"nice": -5, "cpus": 2, "jitter": 0, "on_lost": "dead", "env": {"A": "é"}},
]


@pytest.mark.parametrize("said", SAID, ids=str)
def test_a_job_is_the_same_after_the_words_for_it(client: Client, said: dict[str, Any]) -> None:
    options = {"cwd": "/", **said}
    plan = make_plan(read_options(options), default_queue="d", owner=client._owner)
    for new in (
        NewJob(plan, command='["echo","x"]'),
        NewJob(plan, command='"echo x"'),
        NewJob(plan._replace(cwd=None, env=None), "mod.task", '[[1],{"a":[2]}]'),
    ):
        assert new_job(words_of(new), client, None) == new


def test_the_client_chooses_its_door(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    socket = served.path / "service.sock"
    assert isinstance(Client(socket=socket), RemoteClient)
    assert type(Client(config=load(served.path, {}))) is Client
    monkeypatch.setenv("SVCQ_SOCKET", str(socket))
    assert isinstance(Client(), RemoteClient)
    assert type(Client(home=served.path)) is Client
