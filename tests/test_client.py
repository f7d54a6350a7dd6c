"""The client: every verb, as a program calls it."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import svcq
from svcq.client import Client, set_default_client
from svcq.config import load
from svcq.errors import InvalidInput, NotFound, UniqueTaken, WaitTimeout, WrongState
from svcq.jobs import FINISHED, Job, State
from svcq.policy import OPTION_NAMES
from tests.clients import assert_sentence, open_client

FUTURE = datetime(2040, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


EVERY_ENGINE = True


@svcq.task(queue="mail", max_attempts=5, timeout=60)
def send(to: str, subject: str) -> None: ...


@svcq.task
def note(*args: Any, **kwargs: Any) -> None: ...


@pytest.fixture
def default(tmp_path: Path) -> Iterator[Client]:
    client = svcq.configure(config=load(tmp_path / "home", {}))
    yield client
    set_default_client(None)
    client.close()


def run_next(client: Client, result: object = None) -> int:
    (claim,) = client.fetch()
    client.complete(claim, result)
    return claim.id


def kill_next(client: Client) -> int:
    (claim,) = client.fetch()
    client.reject(claim, "cannot work")
    return claim.id


# Queueing


def test_all_dead_jobs_run_again_but_one_whose_key_is_taken(client: Client) -> None:
    client.queue("default", max_attempts=1)
    free, taken = client.command("true"), client.command("true", unique_key="k")
    for claim in client.fetch("default", 2):
        client.reject(claim, "no")
    assert client.counts()["dead"] == 2
    client.command("true", unique_key="k", queue="default")
    assert client.retry_dead("other") == 0
    assert client.retry_dead() == 1
    assert client.get(free.id).state == "pending"
    assert client.get(taken.id).state == "dead"


def test_the_example_of_the_front_page(default: Client) -> None:
    @svcq.task(queue="mail", max_attempts=5, timeout=60)
    def send(to: str, subject: str): ...  # type: ignore[no-untyped-def]

    client = default
    first = send.enqueue("a@example.org", subject="hi")
    later = send.options(delay=30, unique_key="a", priority=5).enqueue(
        "a@example.org", subject="hi"
    )
    video = client.command(["ffmpeg", "-i", "a.mov", "a.mp4"], queue="video", notify=True)

    assert (first.queue, first.state, first.max_attempts) == ("mail", "pending", 5)
    assert (first.args, first.kwargs) == (["a@example.org"], {"subject": "hi"})
    assert (later.state, later.unique_key, later.priority) == ("scheduled", "a", 5)
    assert later.run_at == later.created_at + timedelta(seconds=30)
    assert (later.max_attempts, later.options["timeout"]) == (5, 60)
    assert video.command == ["ffmpeg", "-i", "a.mov", "a.mp4"]
    assert (video.queue, video.options) == ("video", {"notify": True})
    assert [job.id for job in client.list()] == [video.id, later.id, first.id]


EVERY_OPTION: list[dict[str, Any]] = [
    {},
    {"queue": "mail"},
    {"name": "the-one"},
    {"tags": ["b", "a", "b"]},
    {"priority": -7},
    {"delay": 0},
    {"delay": "1h30m"},
    {"run_at": FUTURE},
    {"run_at": FUTURE.replace(tzinfo=None)},
    {"run_at": 1.5},
    {"run_at": "2040-01-01T00:00:00.1234+02:00"},
    {"expires": timedelta(minutes=1)},
    {"hold": True},
    {"hold": True, "delay": 60},
    {"max_attempts": 9},
    {"backoff": "linear"},
    {"backoff_base": 1},
    {"backoff_cap": "10m"},
    {"jitter": 0},
    {"timeout": 1.5},
    {"grace": 0},
    {"on_lost": "dead"},
    {"max_losses": 0},
    {"max_interruptions": 2},
    {"success": [0, 3]},
    {"retry_on": (75,)},
    {"reject": [64]},
    {"unique_key": "k"},
    {"unique_key": "k", "unique_for": 60, "on_duplicate": "refuse"},
    {"after": [1]},
    {"after": [2, 1], "after_any": [3, 1]},
    {"after_any": 3},
    {"after": 1, "if_parent_fails": "wait"},
    {"when": "battery>30"},
    {"host": "render-1"},
    {"concurrency_key": "user 5"},
    {"concurrency_key": "user 5", "concurrency": 2},
    {"notify": True},
    {"tty": True},
    {"max_output": "64K"},
    {"when_over": "end"},
    {"keep_awake": "never"},
    {"nice": 5},
    {"cpus": 2},
    {"memory": "1G"},
    {"cwd": "/"},
    {"env": {"A": "1", "B": ""}},
]


@pytest.mark.parametrize("options", EVERY_OPTION, ids=str)
def test_the_job_that_is_returned_is_the_job_in_the_store(
    client: Client, options: dict[str, Any]
) -> None:
    for _ in range(3):
        client.command("true", queue="parents")
    command = client.command(["echo", "ü"], **options)
    assert client.get(command) == command
    assert client.get(command).as_json() == command.as_json()
    client.cancel(command)
    task = client.enqueue(send.options(**options), "a", subject="b")
    assert client.get(task) == task
    assert client.get(task).as_json() == task.as_json()


def test_every_option_is_tried_above() -> None:
    assert {name for options in EVERY_OPTION for name in options} == set(OPTION_NAMES)


@pytest.mark.parametrize(
    "argument", [(1, (2, 3)), {"a": (1,)}, {1: 2}, None, 1.0, "", "🦀", [], {}, -(2**70)], ids=repr
)
def test_arguments_come_back_as_json_keeps_them(client: Client, argument: object) -> None:
    job = client.enqueue(note, argument, named=argument)
    assert client.get(job) == job


def test_a_returned_job_does_not_change_with_the_callers_list(client: Client) -> None:
    given = [1]
    job = client.enqueue(note, given)
    given.append(2)
    assert job.args == [[1]]


def test_settings_of_the_queue_show_in_the_returned_job(client: Client) -> None:
    client.queue("mail", max_attempts=2)
    job = client.command("true", queue="mail")
    assert job.max_attempts == 2
    assert client.get(job) == job


def test_a_command_line_and_a_list_of_words_stay_what_they_are(client: Client) -> None:
    assert client.command("a | b").command == "a | b"
    assert client.command(("a", "b")).command == ["a", "b"]


def test_a_command_runs_where_it_was_queued(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    assert client.command("true").cwd == str(tmp_path)
    job = client.command("true", cwd="inner", hold=True)
    assert job.cwd == str(tmp_path / "inner")
    assert client.edit(job, cwd=".").cwd == str(tmp_path)


def test_the_nearest_word_about_attempts_holds(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[jobs]\nmax_attempts = 11\n")
    with open_client(home) as client:
        client.queue("set", max_attempts=7)
        assert client.command("true").max_attempts == 11
        assert client.command("true", queue="set").max_attempts == 7
        assert client.enqueue(send.options(queue="set"), "a", "b").max_attempts == 5
        assert client.enqueue(send.options(queue="set", max_attempts=2), "a", "b").max_attempts == 2


def test_many_are_queued_in_order(client: Client) -> None:
    ids = client.enqueue_many(send, [{"to": str(i), "subject": "s"} for i in range(250)])
    assert ids == sorted(ids)
    assert [client.get(i).kwargs["to"] for i in ids[::50]] == ["0", "50", "100", "150", "200"]
    assert client.counts("mail")["pending"] == 250
    assert [claim.id for claim in client.fetch("mail", 250)] == ids


def test_many_are_queued_all_or_none(client: Client) -> None:
    good = {"to": "a", "subject": "b"}
    before = client.counts()
    for bad in ({"to": "a"}, {"to": "a", "subject": object()}, ["a", "b"], {1: 2}, None):
        with pytest.raises(InvalidInput) as caught:
            client.enqueue_many(send, [good, good, bad])  # type: ignore[list-item]
        assert_sentence(caught.value, "send")
    assert client.counts() == before
    assert client.enqueue_many(send, []) == []


def test_many_may_be_any_mappings_and_come_from_anywhere(client: Client) -> None:
    from types import MappingProxyType

    calls = (MappingProxyType({"to": str(i), "subject": ""}) for i in range(3))
    ids = client.enqueue_many(send, calls)  # type: ignore[arg-type]
    assert [client.get(i).kwargs["to"] for i in ids] == ["0", "1", "2"]


def test_a_taken_unique_key_gives_the_existing_job(client: Client) -> None:
    first = client.command("true", unique_key="k")
    assert client.command("false", unique_key="k") == first
    assert client.command("false", unique_key="k", queue="other") != first
    replaced = client.command("false", unique_key="k", on_duplicate="replace")
    assert client.get(first).state is State.CANCELLED
    with pytest.raises(UniqueTaken) as caught:
        client.command("true", unique_key="k", on_duplicate="refuse")
    assert caught.value.job == replaced.id


# Watching


def test_a_job_is_found_by_itself_its_id_and_its_name(client: Client) -> None:
    old = client.command("true", name="daily")
    client.cancel("daily")
    job = client.command("true", name="daily")
    for said in (job, job.id, str(job.id), "daily"):
        assert client.get(said) == job
    assert client.get(old.id).id == old.id


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("nobody", NotFound),
        ("", NotFound),
        ("²", NotFound),
        ("nul\0", NotFound),
        ("\ud800", NotFound),
        (404, NotFound),
        ("404", NotFound),
        ("9" * 30, InvalidInput),
        ("9" * 5000, InvalidInput),
        (0, InvalidInput),
        ("0", InvalidInput),
        (-1, InvalidInput),
        (1 << 70, InvalidInput),
        (True, InvalidInput),
        (1.0, InvalidInput),
        (None, InvalidInput),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_no_such_job_is_a_sentence(client: Client, said: Any, kind: type[Exception]) -> None:
    client.command("true")
    verbs = (
        client.get, client.runs, client.wait, client.cancel, client.retry, client.hold,
        client.release, client.move, client.edit,
    )  # fmt: skip
    for verb in verbs:
        with pytest.raises(kind) as caught:
            verb(said)
        assert_sentence(caught.value)


def test_waiting_for_a_job_that_has_ended(client: Client) -> None:
    job = client.command("true")
    run_next(client, {"size": 3})
    assert client.wait(job).result == {"size": 3}
    assert client.wait(job, timeout=0).state is State.COMPLETED


def test_waiting_runs_out(client: Client) -> None:
    job = client.command("true")
    for timeout in (0, 0.02, "30ms"):
        with pytest.raises(WaitTimeout) as caught:
            client.wait(job, timeout=timeout)
        assert_sentence(caught.value, job.id, timeout)
    with pytest.raises(InvalidInput):
        client.wait(job, timeout=-1)


@pytest.mark.parametrize("same", [True, False], ids=["same client", "another client"])
def test_waiting_until_another_thread_ends_the_job(client: Client, same: bool) -> None:
    job = client.command("true")
    other = client if same else Client(config=client.config)
    thread = threading.Thread(target=run_next, args=(other, "done"))
    thread.start()
    assert client.wait(job, timeout=30).result == "done"
    thread.join()
    other.close()


def test_waiting_for_a_job_that_is_removed(client: Client) -> None:
    job = client.command("true")
    thread = threading.Thread(target=client.purge, args=("pending",))
    thread.start()
    with pytest.raises(NotFound) as caught:
        client.wait(job, timeout=30)
    thread.join()
    assert_sentence(caught.value, job.id)


def test_jobs_are_listed_newest_first_by_every_filter(client: Client) -> None:
    a = client.command("grep needle", queue="a", tags=["red", "big"])
    b = client.enqueue(send, "needle", subject="x")
    c = client.command("true", hold=True, tags=["red"])
    d = client.command("true", name="Needle")

    def listed(**filters: Any) -> list[int]:
        return [job.id for job in client.list(**filters)]

    assert listed() == [d.id, c.id, b.id, a.id]
    assert listed(limit=2) == [d.id, c.id]
    assert listed(limit=2, before=c.id) == [b.id, a.id]
    assert listed(state="held") == [c.id]
    assert listed(state=State.HELD) == [c.id]
    assert listed(state=["held", State.PENDING], queue="default") == [d.id, c.id]
    assert listed(state=[]) == []
    assert listed(queue="a") == [a.id]
    assert listed(task=send.name) == [b.id]
    assert listed(tag="red") == [c.id, a.id]
    assert listed(owner=d.owner) == [d.id, c.id, b.id, a.id]
    assert listed(owner="nobody") == []
    assert listed(grep="needle") == [d.id, b.id, a.id]
    assert listed(since=0) == listed()
    assert listed(since=FUTURE) == []


@pytest.mark.parametrize("state", [None, "completed", "scheduled", "held", ["completed", "held"]])
def test_pages_hold_every_job_once(client: Client, state: Any) -> None:
    """Whatever the order: jobs end, and fall due, in another order than they were added."""
    for priority in (0, 5, 3, 9, 1):
        client.command("true", priority=priority)
        client.command("true", delay=3600 * (10 - priority))
        client.command("true", hold=True)
    for _ in range(5):
        run_next(client)
    whole = client.list(state=state)
    paged: list[Job] = []
    while page := client.list(state=state, limit=2, before=paged[-1].id if paged else None):
        paged += page
    assert paged == whole


def test_listing_refuses_what_it_does_not_know(client: Client) -> None:
    for filters, named in [
        ({"state": "finished"}, "finished"),
        ({"state": ["held", 5]}, 5),
        ({"limit": 0}, 0),
        ({"limit": "all"}, "all"),
        ({"since": "yesterday"}, "yesterday"),
        ({"before": "x"}, "x"),
        ({"queue": 5}, 5),
        ({"grep": "\ud800"}, "\ud800"),
        ({"tag": ["red"]}, ["red"]),
    ]:
        with pytest.raises(InvalidInput) as caught:
            client.list(**filters)  # type: ignore[arg-type]
        assert_sentence(caught.value, named)


def test_the_history_of_a_job(client: Client) -> None:
    job = client.command("true", max_attempts=2, backoff="fixed", backoff_base=0)
    (claim,) = client.fetch()
    client.fail(claim, "no luck")
    (claim,) = client.fetch()
    client.complete(claim, [1])
    first, second = client.runs(job)
    assert (first.run, first.how, first.error) == (1, "failed", "no luck")
    assert (second.run, second.how, second.result) == (2, "completed", [1])
    assert client.get(job).attempts == 2


def test_numbers_about_the_store(client: Client) -> None:
    client.command("true", queue="a")
    run_next(client)
    client.enqueue(send, "a", subject="b")
    assert client.counts() == dict.fromkeys(State, 0) | {"completed": 1, "pending": 1}
    assert client.counts("a")["completed"] == 1
    assert client.counts("nowhere") == dict.fromkeys(State, 0)
    a, mail = client.stats()
    assert (a.queue, a.completed, a.run.n) == ("a", 1, 1)
    assert mail.tasks == {send.name: {"pending": 1}}
    assert [stats.queue for stats in client.stats("a", minutes=5)] == ["a"]
    assert sum(minute.counts["added"] for minute in client.activity()) == 2
    assert [worker.pid for worker in client.workers()] == [os.getpid()]


def test_changes_and_their_cursor(client: Client) -> None:
    job = client.command("true")
    run_next(client)
    changes = client.changes()
    assert [(change.job, change.kind) for change in changes] == [
        (job.id, "pending"), (job.id, "processing"), (job.id, "completed"),
    ]  # fmt: skip
    assert client.changes(changes[0].seq, limit=1) == changes[1:2]
    assert client.changes(changes[-1].seq) == []


# Steering


def test_cancel_hold_release_and_move(client: Client) -> None:
    first, second = client.command("true"), client.command("true")
    assert client.move(second).state is State.PENDING
    assert client.hold(first).state is State.HELD
    assert client.release(first).state is State.PENDING
    third = client.command("true")
    client.move(second, to_front=False)
    assert [claim.id for claim in client.fetch(n=2)] == [first.id, third.id]
    assert client.cancel(second).state is State.CANCELLED
    running = client.cancel(first)
    assert (running.state, running.cancel_requested) == (State.PROCESSING, True)
    for verb in (client.cancel, client.hold, client.release, client.move):
        with pytest.raises(WrongState) as caught:
            verb(second)
        assert_sentence(caught.value, second.id, "cancelled")


def test_an_ended_job_runs_again(client: Client) -> None:
    job = client.command("true", name="again")
    kill_next(client)
    assert client.get(job).state is State.DEAD
    assert client.retry("again").state is State.PENDING
    assert run_next(client) == job.id
    assert (client.get(job).state, client.get(job).run) == (State.COMPLETED, 2)


def test_a_copy_is_a_new_job_like_the_old_one(client: Client, tmp_path: Path) -> None:
    parent = client.command("true")
    run_next(client)
    job = client.command(
        ["a", "b"], queue="q", name="n", tags=["t"], priority=3, max_attempts=4, after=parent.id,
        unique_key="u", host="h", when="load<2", concurrency_key="k", cwd=str(tmp_path), timeout=5,
    )  # fmt: skip
    copy = client.retry(job, copy=True)
    assert copy.id != job.id
    same = (
        "command", "queue", "tags", "priority", "max_attempts", "host", "condition",
        "concurrency_key", "cwd", "options", "owner", "state",
    )  # fmt: skip
    assert {k: getattr(copy, k) for k in same} == {k: getattr(job, k) for k in same}
    assert (copy.name, copy.unique_key, copy.after) == (None, None, ())
    assert client.get(job) == job


@pytest.mark.parametrize(
    "options",
    [o for o in EVERY_OPTION if o and "on_duplicate" not in o and "if_parent_fails" not in o],
    ids=str,
)
def test_an_edited_job_is_as_if_queued_so(client: Client, options: dict[str, Any]) -> None:
    parents = [client.command("true", queue="parents") for _ in range(3)]
    assert [job.id for job in parents] == [1, 2, 3]
    edited = client.edit(client.command("true", queue="first"), **{"queue": "second", **options})
    client.cancel(edited)
    fresh = client.command("true", **{"queue": "second", **options})
    own = ("id", "state", "reason", "created_at", "run_at", "expires_at", "finished_at")
    shown, wanted = edited.as_json(), fresh.as_json()
    assert {k: v for k, v in shown.items() if k not in own} == {
        k: v for k, v in wanted.items() if k not in own
    }
    assert edited.state == fresh.state
    assert (edited.expires_at is None) == (fresh.expires_at is None)
    if "run_at" in options:
        assert edited.run_at == fresh.run_at


def test_a_command_is_edited(client: Client) -> None:
    job = client.command("flase")
    assert client.edit(job, command="false").command == "false"
    assert client.edit(job, command=["a", "b"], priority=2).command == ["a", "b"]
    assert client.edit(job).priority == 2


def test_holding_and_releasing_by_edit(client: Client) -> None:
    job = client.command("true")
    assert client.edit(job, hold=True).state is State.HELD
    assert client.edit(job, hold=False).state is State.PENDING


def test_only_a_waiting_job_is_edited(client: Client) -> None:
    job = client.command("true")
    client.fetch()
    with pytest.raises(WrongState) as caught:
        client.edit(job, priority=1)
    assert_sentence(caught.value, job.id, "processing")


def test_purge_and_cleanup(client: Client) -> None:
    for _ in range(3):
        client.command("true")
    run_next(client)
    client.command("true", queue="other")
    assert client.cleanup() == 0
    assert client.purge(["completed", State.PENDING], queue="default") == 3
    assert client.purge("pending") == 1
    assert sum(client.counts().values()) == 0
    for states in ("processing", "gone", ["held", "gone"]):
        with pytest.raises(InvalidInput) as caught:
            client.purge(states)
        assert_sentence(caught.value)


# Queues


def test_queues_and_their_settings(client: Client) -> None:
    queue = client.queue("mail", concurrency=2, rate="10/1m", aging="never", weight=3, timeout=5)
    assert (queue.concurrency, queue.rate, queue.aging_ms, queue.weight) == (
        2,
        (10, 60000),
        None,
        3,
    )
    assert client.queue("mail") == queue
    assert client.queue("mail", concurrency=None).concurrency is None
    client.pause("mail")
    client.command("true", queue="mail")
    assert client.fetch() == []
    client.resume("mail")
    assert [claim.queue for claim in client.fetch()] == ["mail"]
    client.queue("empty", weight=2)
    client.delete_queue("empty")
    assert [queue.name for queue in client.queues()] == ["mail"]
    for verb in (client.queue, client.pause, client.resume, client.delete_queue):
        with pytest.raises(NotFound) as caught:
            verb("empty")
        assert_sentence(caught.value, "empty")


# The caller's own transaction


@pytest.fixture
def own(client: Client) -> Iterator[Any]:
    """A connection of the caller's own to the store's database."""
    address = client.config.store
    connect: Any = sqlite3.connect
    if "://" in address:
        from psycopg import connect  # Windows under Wine has none
    with closing(connect(address)) as connection:
        yield connection


def test_jobs_of_a_transaction_come_with_its_commit(client: Client, own: Any) -> None:
    mine = client.using(own)
    jobs = [mine.command("true"), mine.enqueue(send, "a", subject="b")]
    mine.enqueue_many(send, [{"to": "x", "subject": "y"}])
    assert sum(client.counts().values()) == 0
    own.commit()
    assert [client.get(job) for job in jobs] == jobs
    assert client.counts()["pending"] == 3


def test_jobs_of_a_transaction_go_with_its_rollback(client: Client, own: Any) -> None:
    client.using(own).command("true")
    own.rollback()
    assert sum(client.counts().values()) == 0
    assert client.changes() == []
    job = client.command("true")
    assert client.get(job) == job


def test_a_refused_job_leaves_the_callers_transaction_as_it_was(client: Client, own: Any) -> None:
    mine = client.using(own)
    mine.command("true", name="only")
    with pytest.raises(UniqueTaken):
        mine.command("true", name="only")
    mine.command("true")
    own.commit()
    assert client.counts()["pending"] == 2


def test_a_unique_job_is_found_in_the_callers_transaction(client: Client, own: Any) -> None:
    mine = client.using(own)
    job = mine.command("true", unique_key="k")
    assert mine.command("true", unique_key="k") == job
    own.rollback()


def test_a_connection_to_something_else_is_refused(
    client: Client, own: Any, tmp_path: Path, engine: str
) -> None:
    others = [sqlite3.connect(tmp_path / "else.db"), sqlite3.connect(":memory:")]
    for connection in others:
        with closing(connection), pytest.raises(InvalidInput) as caught:
            client.using(connection).command("true")
        assert_sentence(caught.value, client.store.engine.where)
    own.close()
    with pytest.raises(svcq.StoreError) as closed:
        client.using(own).command("true")
    assert_sentence(closed.value, "closed")


# Which store


def test_the_default_client_is_of_the_home_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVCQ_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SVCQ_STORE", raising=False)
    before = set_default_client(None)
    try:
        job = send.enqueue("a", subject="b")
        client = svcq.default_client()
        assert client is svcq.default_client()
        assert client.get(job) == job
        assert Path(client.config.store) == tmp_path / "home" / "svcq.db"
        client.close()
    finally:
        set_default_client(before)


def test_the_store_in_the_environment_and_the_one_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVCQ_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SVCQ_STORE", str(tmp_path / "a" / "named.db"))
    with Client() as client:
        client.command("true")
        assert Path(client.config.store) == tmp_path / "a" / "named.db"
    with Client(store=tmp_path / "b" / "given.db") as client:
        assert sum(client.counts().values()) == 0
        assert Path(client.config.store) == tmp_path / "b" / "given.db"


@pytest.mark.parametrize("store", ["", "mysql://host/db", "postgresql://host/db", "a\0b", 5, b"a"])
def test_a_store_that_cannot_be_is_a_sentence(tmp_path: Path, store: Any) -> None:
    with pytest.raises(svcq.SvcqError) as caught:
        Client(home=tmp_path / "home", store=store)
    assert_sentence(caught.value)


def test_two_clients_share_a_store(client: Client) -> None:
    with Client(config=client.config) as other:
        job = client.command("true", name="shared")
        assert other.get("shared") == job
        (claim,) = other.fetch()
        assert client.get(job).state is State.PROCESSING
        other.complete(claim)
        assert client.get(job).state in FINISHED


def test_a_client_closes_more_than_once(tmp_path: Path) -> None:
    with open_client(tmp_path / "home") as client:
        job = client.command("true")
    client.close()
    with open_client(tmp_path / "home") as client:
        assert client.get(job) == job
