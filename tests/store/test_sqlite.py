"""SQLite as an engine: threads, forks, locks, durability."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from svcq.config import Config, load
from svcq.errors import StoreBusy, StoreError
from svcq.jobs import State
from svcq.policy import NewJob, Plan
from svcq.store import Store, open_store
from svcq.store.engine import Transaction
from svcq.store.sqlite import SqliteEngine
from tests.helpers import eventually
from tests.store.conftest import Desk
from tests.store.faults import in_child, start_child

JOB = NewJob(Plan("default"), "work")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Of a file: its subject is one."""
    return load(tmp_path / "home", {})


def synchronous(store: Store) -> int:
    """2 is FULL, 1 is NORMAL."""
    return store.engine.connection().execute("PRAGMA synchronous").fetchone()[0]


@contextmanager
def another(store: Store) -> Iterator[sqlite3.Connection]:
    """A connection of another program."""
    with closing(sqlite3.connect(store.config.store, isolation_level=None, timeout=0)) as opened:
        yield opened


def fail_in(
    transaction: AbstractContextManager[Transaction], name: str, /, **values: object
) -> None:
    """Run a statement, and meet an error before the transaction ends."""
    with transaction as tx:
        tx.run(name, **values)
        raise ZeroDivisionError


def in_new_process(store: Store, code: str) -> str:
    """Run code that finds the store's path in `path`, in a process that shares nothing with us."""
    program = f"import sqlite3, sys\npath = sys.argv[1]\n{code}"
    run = subprocess.run(
        [sys.executable, "-c", program, store.config.store],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout.strip()


def test_the_file_has_a_write_ahead_log_and_can_shrink(store: Store) -> None:
    connection = store.engine.connection()
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)


def test_what_people_are_told_is_written_through(desk: Desk) -> None:
    job = desk.add()
    assert synchronous(desk.store) == 2
    (claim,) = desk.claim()
    assert synchronous(desk.store) == 1
    desk.end(claim)
    assert synchronous(desk.store) == 2
    desk.store.heartbeat(desk.worker)
    assert synchronous(desk.store) == 1
    desk.store.retry(job)
    assert synchronous(desk.store) == 2
    (claim,) = desk.claim()
    desk.store.progress(claim, 0.5)
    assert synchronous(desk.store) == 1
    desk.store.cancel(job)
    assert synchronous(desk.store) == 2


def test_threads_share_a_store(desk: Desk) -> None:
    def work(_: int) -> list[int]:
        desk.add()
        return desk.claimed(1)

    with ThreadPoolExecutor(8) as pool:
        taken = [job for jobs in pool.map(work, range(200)) for job in jobs]
    assert sorted(taken) == list(range(1, 201))
    assert desk.store.counts()["processing"] == 200


@pytest.mark.posix
def test_a_child_process_uses_the_store_after_a_fork(desk: Desk) -> None:
    desk.add()
    in_child(lambda: desk.add(name="from the child"))
    desk.add()
    assert desk.store.counts()["pending"] == 3
    assert desk.store.find_named("from the child") == 2


@pytest.mark.posix
def test_a_daemon_that_forked_away_from_its_parent_loses_nothing(desk: Desk) -> None:
    """Its parent closes, others come and go; what the child is told stays true."""
    desk.add()
    ready, is_ready = os.pipe()
    go, let_go = os.pipe()

    def daemon() -> None:
        desk.store.counts()
        os.write(is_ready, b"1")
        os.read(go, 1)
        desk.add(name="after the parent")

    wait = start_child(daemon)
    os.read(ready, 1)
    desk.store.close()
    in_new_process(
        desk.store, "c = sqlite3.connect(path); c.execute('SELECT * FROM meta'); c.close()"
    )
    os.write(let_go, b"1")
    wait()
    for end in (ready, is_ready, go, let_go):
        os.close(end)
    assert desk.store.find_named("after the parent") == 2


@pytest.mark.posix
def test_a_fork_while_a_thread_writes_leaves_the_child_a_usable_store(desk: Desk) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            desk.add()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            in_child(desk.store.counts)
    finally:
        stop.set()
        writer.join()


FORKING = """
import os, threading
from svcq.store.sqlite import SqliteEngine

engines = [SqliteEngine(path) for _ in range(3)]

def fork():
    for _ in range(30):
        for engine in engines:
            engine.write_mark()
        child = os.fork()
        if child == 0:
            os._exit(0 if engines[0].write_mark() else 1)
        assert os.waitpid(child, 0)[1] == 0

threads = [threading.Thread(target=fork, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
print(sum(thread.is_alive() for thread in threads), "wait", flush=True)
os._exit(0)
"""


@pytest.mark.posix
def test_threads_that_fork_at_once_do_not_wait_for_each_other(store: Store) -> None:
    assert in_new_process(store, FORKING) == "0 wait"


def test_a_store_that_is_locked_for_a_while_is_a_delay(desk: Desk) -> None:
    entered = threading.Event()

    def hold() -> None:
        with another(desk.store) as other:
            other.execute("BEGIN EXCLUSIVE")
            entered.set()
            eventually(blocked.is_set)
            other.execute("ROLLBACK")

    blocked = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait()
    asked = threading.Thread(target=desk.add)
    asked.start()
    blocked.set()
    asked.join()
    holder.join()
    assert desk.store.counts()["pending"] == 1


def test_reading_goes_on_while_another_program_writes(desk: Desk) -> None:
    job = desk.add()
    with another(desk.store) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert desk.state(job) is State.PENDING
        other.execute("ROLLBACK")


@pytest.fixture
def impatient(tmp_path: Path, desk: Desk) -> Iterator[Store]:
    """The same store, by a program that waits for locks only a moment."""
    engine = SqliteEngine(desk.store.config.store, busy_wait_ms=50, clock=desk.clock)
    store = Store(engine, desk.store.config)
    yield store
    store.close()


def test_a_store_locked_for_too_long_is_a_sentence_and_works_afterwards(
    desk: Desk, impatient: Store
) -> None:
    with another(desk.store) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match=r"locked by another program for 50ms.*busy_wait"):
            impatient.enqueue([desk.new()])
        other.execute("ROLLBACK")
    impatient.enqueue([desk.new()])
    assert impatient.counts()["pending"] == 1


def test_a_store_another_program_keeps_to_itself_is_waited_for(config: Config, desk: Desk) -> None:
    """Also by a first look: some programs lock out even readers, and so does the last to close."""
    desk.add()
    desk.store.close()
    with another(desk.store) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        other.execute("COMMIT")
        opened: list[Store] = []
        opening = threading.Thread(target=lambda: opened.append(open_store(config)))
        opening.start()
        opening.join(0.1)
        assert not opened
    opening.join()
    assert opened[0].counts()["pending"] == 1
    opened[0].close()


def test_an_error_inside_a_write_undoes_all_of_it(desk: Desk) -> None:
    desk.add()
    before = desk.told()
    with pytest.raises(ZeroDivisionError):
        fail_in(desk.store.engine.write(durable=True), "pause_queue", name="default", paused=1)
    assert desk.told() == before
    assert not desk.store.queue("default").paused
    assert desk.add() == 2


def test_an_error_inside_a_read_leaves_no_snapshot_open(
    desk: Desk, open_again: Callable[[], Store]
) -> None:
    job = desk.add()
    with pytest.raises(ZeroDivisionError):
        fail_in(desk.store.engine.read(), "state_of", id=job)
    open_again().cancel(job)
    assert desk.state(job) is State.CANCELLED


@pytest.mark.parametrize("use", [Store.counts, lambda store: store.enqueue([JOB])])
def test_an_interrupt_as_a_transaction_begins_leaves_none_open(
    config: Config, use: Callable[[Store], object]
) -> None:
    interrupts = [KeyboardInterrupt]

    def clock() -> int:
        if interrupts and opened:
            raise interrupts.pop()
        return 1_700_000_000_000

    opened: list[Store] = []
    with closing(open_store(config, clock=clock)) as store:
        opened.append(store)
        with pytest.raises(KeyboardInterrupt):
            use(store)
        assert not store.engine.connection().in_transaction
        with another(store) as other:
            other.execute("BEGIN IMMEDIATE")  # nobody holds the store
            other.execute("COMMIT")
        use(store)


@pytest.mark.parametrize("use", [Store.counts, lambda store: store.enqueue([JOB])])
def test_a_signal_handler_cannot_break_into_a_transaction(
    desk: Desk, use: Callable[[Store], object]
) -> None:
    with desk.store.engine.write(durable=True) as tx:
        tx.run("make_queue", name="outer", aging_ms=1000)
        with pytest.raises(StoreError, match=r"of this very thread: use it when that has ended"):
            use(desk.store)
    assert [queue.name for queue in desk.store.queues()] == ["outer"]
    use(desk.store)


def test_a_closed_store_opens_itself_again_when_it_is_used(desk: Desk) -> None:
    job = desk.add()
    desk.store.close()
    desk.store.close()
    assert desk.state(job) is State.PENDING


def test_an_error_of_sqlite_is_one_of_ours(desk: Desk) -> None:
    with another(desk.store) as other:
        other.execute("DROP TABLE unique_keys")
    with pytest.raises(StoreError, match=r"could not be used.*no such table: unique_keys"):
        desk.add(unique_key="a")
    assert desk.add() == 1


def test_another_connection_writes_and_the_mark_changes(
    desk: Desk, open_again: Callable[[], Store]
) -> None:
    other = open_again()
    mark = other.engine.write_mark()
    assert other.engine.write_mark() == mark
    desk.add()
    assert other.engine.write_mark() != mark


@pytest.mark.posix
def test_a_second_store_in_the_process_leaves_the_locks_of_the_first_alone(config: Config) -> None:
    """Or another process, closing as if it were the last, would take the log away under us."""
    count = "from svcq.config import load; from svcq.store import open_store; import pathlib, sys;"
    count += "s = open_store(load(pathlib.Path(sys.argv[1]), {}));"
    count += "print(sum(s.counts().values())); s.close()"
    program = [sys.executable, "-c", count, str(config.home)]
    with closing(open_store(config)) as first:
        first.enqueue([JOB])
        open_store(config).close()
        assert subprocess.run(program, capture_output=True, check=True).stdout == b"1\n"
        first.enqueue([JOB])
        assert subprocess.run(program, capture_output=True, check=True).stdout == b"2\n"
