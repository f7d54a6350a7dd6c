"""Stores and programs of different versions, with the real programs of the schemas before."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.config import Config, load
from svcq.errors import StoreVersion
from svcq.jobs import State, completed
from svcq.policy import NewJob, Plan
from svcq.store import Claimer, Report, Store, WorkerInfo, open_store, upgrade_store
from svcq.store.sqlite import SqliteEngine
from svcq.store.versions import migrate, newest, read_version, schema_folder
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE

PREVIOUS = Path(__file__).with_name("previous")
NOW = newest(schema_folder("sqlite"))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Of a file: its subject is one."""
    return load(tmp_path / "home", {})


@pytest.fixture(scope="module")
def unpack(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Where the source of a previous program is."""

    @cache
    def unpacked(schema: int) -> Path:
        folder = tmp_path_factory.mktemp("previous")
        with zipfile.ZipFile(PREVIOUS / f"svcq-schema{schema}.zip") as archive:
            archive.extractall(folder)
        return folder

    return unpacked


@pytest.fixture(params=range(1, NOW))
def old_program(
    request: pytest.FixtureRequest, unpack: Callable[[int], Path], config: Config
) -> OldProgram:
    """Every one that may still be at work on a store of this version."""
    return OldProgram(request.param, unpack(request.param), config.home)


class OldProgram:
    def __init__(self, schema: int, folder: Path, home: Path) -> None:
        self.schema = schema
        self.environment = {
            **os.environ, "PYTHONPATH": str(folder), "SVCQ_HOME": str(home), "PYTHONSAFEPATH": "1",
        }  # fmt: skip

    def run(self, code: str) -> object:
        """Run code with the old package; what it prints, as JSON."""
        prelude = (
            "import json, svcq\n"
            "from svcq.jobs import completed, failed\n"
            "from svcq.store import Claimer, Report, WorkerInfo\n"
            "client = svcq.Client(); store = client.store\n"
            f"assert store.program == {self.schema}, 'this is not the old program'\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", prelude + code], env=self.environment, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or "null")


def test_a_store_of_the_old_program_is_refused_until_it_is_upgraded(
    config: Config, old_program: OldProgram
) -> None:
    old_program.run("client.command('echo hi', name='greeting', priority=3, tags=['a'])")
    with pytest.raises(
        StoreVersion,
        match=rf"schema {old_program.schema}, older than .* {NOW}: run `svcq upgrade-store",
    ):
        open_store(config)
    assert upgrade_store(config) == (old_program.schema, NOW)
    with closing(open_store(config)) as store:
        job = store.get(store.find_named("greeting"))
        assert (job.command, job.priority, job.tags) == ("echo hi", 3, ("a",))
    assert upgrade_store(config) == (NOW, NOW)


def test_an_upgrade_leaves_a_backup_that_the_old_program_can_open(
    config: Config, old_program: OldProgram
) -> None:
    old_program.run("client.command('echo hi', env={'A': 'b'})")
    upgrade_store(config)
    (backup,) = config.home.glob(f"svcq-schema{old_program.schema}-*.db")
    assert backup.stat().st_mode & 0o777 == 0o600
    backup.rename(config.store)
    assert old_program.run("print(json.dumps(client.environment(1)))") == {"A": "b"}


def test_the_old_program_works_on_the_new_store(config: Config, old_program: OldProgram) -> None:
    """Queues, claims, fails, retries, finishes and looks, beside the new program."""
    with closing(open_store(config)) as store:
        store.enqueue([NewJob(Plan("default"), "work")] * 3)
        answer = old_program.run(
            "worker = store.register(WorkerInfo('old', 1))\n"
            "client.command('echo old', max_attempts=1)\n"
            "claims = store.claim(Claimer(worker), 4)\n"
            "ends = [completed('1'), failed('boom', delay_ms=0), completed(), failed('out')]\n"
            "store.finish([Report(c.id, c.run, c.worker, e) for c, e in zip(claims, ends)])\n"
            "(again,) = store.claim(Claimer(worker), 4)\n"
            "client.cleanup(); client.stats(); client.activity()\n"
            "print(json.dumps([again.id, [j.state for j in client.list()], client.counts()]))"
        )
        again, states, counts = answer  # type: ignore[misc]
        assert again == 2
        assert states == ["dead", "completed", "processing", "completed"]
        assert counts == store.counts()
        assert [store.get(job).state.value for job in (4, 3, 2, 1)] == states
        assert [run.error for run in store.runs(2)] == ["boom"]


def test_both_programs_share_the_work(config: Config, old_program: OldProgram) -> None:
    with closing(open_store(config)) as store:
        store.enqueue([NewJob(Plan("default"), "work")] * 40)
        worker = store.register(WorkerInfo("new", 1))
        mine = [claim.id for claim in run_some(store, worker, 20)]
        theirs = old_program.run(
            "worker = store.register(WorkerInfo('old', 1)); done = []\n"
            "while claims := store.claim(Claimer(worker), 7):\n"
            "    store.finish([Report(c.id, c.run, c.worker, completed()) for c in claims])\n"
            "    done += [c.id for c in claims]\n"
            "print(json.dumps(done))"
        )
        assert sorted(mine + theirs) == list(range(1, 41))  # type: ignore[operator]
        assert store.counts()["completed"] == 40


def test_schedules_outlive_the_work_of_the_old_program(
    config: Config, old_program: OldProgram
) -> None:
    """It does not know of them: it runs their jobs, and tidies up what it thinks is nobody's."""
    with Client(config=config) as client:
        client.schedule("s", "echo hi", every="1h", env={"TOKEN": "t"}, overlap="queue")
        job = client.fire_schedule("s")
        old_program.run(
            "worker = store.register(WorkerInfo('old', 1))\n"
            "(claim,) = store.claim(Claimer(worker), 4)\n"
            "store.finish([Report(claim.id, claim.run, claim.worker, completed())])\n"
            "client.purge('completed'); client.cleanup()\n"
            "client.changes(); client.list(); list(client.follow().next(0))\n"
        )
        assert client.list() == []
        assert client.schedule_environment("s") == {"TOKEN": "t"}
        again = client.fire_schedule("s")
        assert client.environment(again) == {"TOKEN": "t"}
        assert [one.job for one in client.firings("s")] == [again.id, job.id]


def test_a_worker_of_the_program_before_ends_what_it_holds_when_the_store_is_upgraded(
    config: Config, unpack: Callable[[int], Path], tmp_path: Path
) -> None:
    """The real one, as a process: its job ends as if nothing had happened, then it leaves."""
    previous = OldProgram(NOW - 1, unpack(NOW - 1), config.home)
    go = tmp_path / "go"
    previous.run(
        f"client.command('until test -e {go}; do sleep 0.02; done; echo done', name='long')"
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "svcq", "worker", "run"], env=previous.environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        with closing(SqliteEngine(config.store)) as engine:
            eventually(lambda: _running(engine), PATIENCE)
        assert upgrade_store(config) == (NOW - 1, NOW)
        with Client(config=config) as client:
            client.schedule("s", "true", every="1h")
            client.fire_schedule("s")
            go.touch()
            assert client.wait("long", PATIENCE).state is State.COMPLETED
            assert worker.wait(PATIENCE) == 0  # a newer one takes its place
            assert client.counts()["pending"] == 1
    finally:
        worker.kill()
        worker.communicate()


def _running(engine: SqliteEngine) -> bool:
    with engine.read() as tx:
        return bool(tx.rows("runs_of_worker", worker=1))


def run_some(store: Store, worker: int, n: int) -> list[Report]:
    claims = store.claim(Claimer(worker), n)
    store.finish([Report.of(claim, completed()) for claim in claims])
    return claims  # type: ignore[return-value]


def test_what_the_old_program_needs_is_removed_when_its_last_worker_has_ended(
    config: Config, tmp_path: Path, old_program: OldProgram
) -> None:
    old_program.run("store.register(WorkerInfo('old', 1))")
    folder = tmp_path / "schema"
    folder.mkdir()
    for script in Path(schema_folder("sqlite")).glob("*.sql"):
        (folder / script.name).write_text(script.read_text())
    (folder / f"{NOW + 1:04}.sql").write_text("CREATE TABLE newer (a INTEGER) STRICT;\n")
    removal = "ALTER TABLE jobs DROP COLUMN progress_note;\n"
    (folder / f"{NOW + 1:04}-remove.sql").write_text(removal)

    def upgrade() -> tuple[int, int]:
        with closing(SqliteEngine(config.store)) as engine, engine.write(durable=True) as tx:
            migrate(tx, folder)
            return read_version(tx)

    def columns() -> set[str]:
        with closing(sqlite3.connect(config.store)) as connection:
            return {row[1] for row in connection.execute("PRAGMA table_info(jobs)")}

    assert upgrade() == (NOW + 1, 1)
    assert "progress_note" in columns()
    old_program.run("client.command('echo still here')")
    with closing(SqliteEngine(config.store)) as engine, engine.write(durable=True) as tx:
        tx.run("end_worker", id=1, now=tx.now)
    assert upgrade() == (NOW + 1, NOW + 1)
    assert "progress_note" not in columns()
    with pytest.raises(StoreVersion, match=rf"needs a program made for {NOW + 1} or later"):
        open_store(config)


def test_a_failed_upgrade_changes_nothing(
    config: Config, old_program: OldProgram, tmp_path: Path
) -> None:
    old_program.run("client.command('echo hi')")
    folder = tmp_path / "schema"
    folder.mkdir()
    before = old_program.schema
    (folder / f"{before:04}.sql").write_text("SELECT 1;\n")
    (folder / f"{before + 1:04}.sql").write_text("CREATE TABLE half (a);\nCREATE TABLE half (a);\n")
    with closing(SqliteEngine(config.store)) as engine:
        with pytest.raises(Exception, match="half"), engine.write(durable=True) as tx:
            migrate(tx, folder)
        with engine.read() as tx:
            assert read_version(tx) == (before, 1)
    assert old_program.run("print(json.dumps(client.counts()['pending']))") == 1


def test_a_running_command_can_be_paused_and_shown_so(config: Config) -> None:
    with closing(open_store(config)) as store:
        worker = store.register(WorkerInfo("here", 1))
        store.enqueue([NewJob(Plan("default"), command='"sleep 9"')])
        (claim,) = store.claim(Claimer(worker))
        store.suspend(claim.id)
        assert store.orders(worker).pause == (claim.id,)
        assert store.get(claim.id).paused
        store.suspend(claim.id, paused=False)
        assert store.orders(worker).pause == ()
        store.suspend(claim.id)
        store.finish([Report.of(claim, completed(exit_code=0))])
        assert store.state(claim.id) is State.COMPLETED
        assert not store.get(claim.id).paused
