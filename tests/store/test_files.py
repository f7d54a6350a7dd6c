"""The store's file: what is made, what is refused, and that a refusal leaves it untouched."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from svcq.config import Config, load
from svcq.errors import (
    InvalidInput,
    NotAStore,
    NotPermitted,
    StoreDamaged,
    StoreError,
    StoreVersion,
)
from svcq.policy import NewJob, Plan
from svcq.store import Filter, Store, open_store
from tests.store.faults import in_child

JOB = NewJob(Plan("default"), "work", "[[],{}]")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Of a file: its subject is one."""
    return load(tmp_path / "home", {})


@pytest.fixture
def file(config: Config) -> Path:
    """A store with three jobs, closed."""
    store = open_store(config)
    store.enqueue([JOB] * 3)
    store.close()
    return Path(config.store)


def jobs_in(config: Config) -> int:
    with closing(open_store(config)) as store:
        store.enqueue([JOB])
        return sum(store.counts().values()) - 1


def jobs_or_refusal(config: Config) -> int | str:
    try:
        return jobs_in(config)
    except StoreError as error:
        return "names the file" if "svcq.db" in str(error) else str(error)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def set_meta(file: Path, **facts: int) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for key, value in facts.items():
            connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
@pytest.mark.posix
def test_a_store_is_private_from_its_first_instant(config: Config, umask: int) -> None:
    before = os.umask(umask)
    try:
        with closing(open_store(config)) as store:
            store.enqueue([JOB])
            home = Path(config.store).parent
            assert mode(home) == 0o700
            assert {name.name for name in home.iterdir()} >= {"svcq.db", "svcq.db-wal"}
            assert {mode(name) for name in home.iterdir()} == {0o600}
    finally:
        os.umask(before)


def test_nothing_but_the_store_is_left_behind(file: Path) -> None:
    assert [name.name for name in file.parent.iterdir()] == ["svcq.db"]


@pytest.mark.posix
def test_processes_that_make_a_store_at_once_make_one(config: Config) -> None:
    start, gate = os.pipe()
    children = []
    for _ in range(6):
        pid = os.fork()
        if pid == 0:
            try:
                os.close(gate)
                os.read(start, 1)
                with closing(open_store(config)) as store:
                    store.enqueue([JOB] * 5)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    os.close(gate)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 6
    os.close(start)
    assert jobs_in(config) == 30
    left = {name.name for name in Path(config.store).parent.iterdir()}
    assert left - {"svcq.db-turn"} == {"svcq.db"}


@pytest.mark.posix
def test_what_was_told_survives_a_killed_program(config: Config) -> None:
    def add_and_die() -> None:
        store = open_store(config)
        store.enqueue([JOB] * 7)
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(AssertionError, match="status 9"):
        in_child(add_and_die)
    assert jobs_in(config) == 7


@pytest.mark.parametrize(
    "content",
    [b"", b"#!/bin/sh\necho hi\n", b"SQLite format 2\0" + bytes(4096), os.urandom(5000)],
    ids=["empty", "text", "almost", "noise"],
)
def test_a_file_that_is_no_database_is_refused(config: Config, content: bytes) -> None:
    file = Path(config.store)
    file.parent.mkdir(mode=0o700)
    file.touch(0o600)
    file.write_bytes(content)
    with pytest.raises(NotAStore, match=r"svcq\.db is not a svcq store: .*move it away"):
        open_store(config)
    assert file.read_bytes() == content
    file.unlink()
    assert jobs_in(config) == 0


def test_a_database_of_another_program_is_refused(config: Config) -> None:
    file = Path(config.store)
    file.parent.mkdir(mode=0o700)
    file.touch(0o600)
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("CREATE TABLE jobs (id INTEGER)")
    before = file.read_bytes()
    with pytest.raises(NotAStore, match="a database of another program: name another file"):
        open_store(config)
    assert file.read_bytes() == before


def test_a_directory_is_refused(config: Config) -> None:
    Path(config.store).mkdir(parents=True, mode=0o700)
    with pytest.raises(NotAStore, match=r"svcq\.db is a directory"):
        open_store(config)


def test_a_place_under_a_file_is_refused(file: Path) -> None:
    with pytest.raises(InvalidInput, match=r"svcq\.db"):
        open_store(load(file / "home", {}))


@pytest.mark.parametrize("keep", [1, 50, 99, 100, 511, 4095, 4096, 4097, -4096, -100, -1])
def test_a_truncated_store_is_refused_and_left_as_it_is(
    file: Path, config: Config, keep: int
) -> None:
    whole = file.read_bytes()
    short = whole[:keep]
    file.write_bytes(short)
    with pytest.raises((StoreDamaged, NotAStore), match=r"svcq\.db.*: .*(backup|move it away)"):
        jobs_in(config)
    assert file.read_bytes() == short
    file.write_bytes(whole)
    assert jobs_in(config) == 3


def test_a_store_cut_short_while_it_is_open_is_a_sentence(config: Config) -> None:
    with closing(open_store(config)) as store:
        store.enqueue([JOB] * 3000)
        store.engine.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        whole = Path(config.store).read_bytes()
        os.truncate(config.store, 8192)
        with pytest.raises(StoreDamaged, match="backup"):
            store.list(Filter(limit=3000))
    Path(config.store).write_bytes(whole)
    assert jobs_in(config) == 3000


@pytest.mark.parametrize("part", [range(i, i + 10) for i in range(0, 100, 10)], ids=str)
def test_a_header_with_a_wrong_byte_is_harmless_or_refused(
    file: Path, config: Config, part: range
) -> None:
    whole = file.read_bytes()
    for place in part:
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        file.write_bytes(broken)
        assert jobs_or_refusal(config) in (3, "names the file")
        for name in file.parent.glob("svcq.db-*"):
            name.unlink()
    file.write_bytes(whole)
    assert jobs_in(config) == 3


def test_a_store_that_needs_a_newer_program_is_refused(file: Path, config: Config) -> None:
    set_meta(file, version=999, oldest_program=998)
    with pytest.raises(StoreVersion, match=r"schema 999 .*made for 998 or later.*upgrade svcq"):
        open_store(config)


def test_a_newer_store_that_allows_this_program_is_used(file: Path, config: Config) -> None:
    set_meta(file, version=999)
    assert jobs_in(config) == 3


def test_an_older_store_is_refused_with_the_remedy(file: Path, config: Config) -> None:
    set_meta(file, version=0)
    with pytest.raises(StoreVersion, match=r"schema 0, older .*svcq upgrade-store"):
        open_store(config)


@pytest.mark.parametrize("open_to", [0o620, 0o602, 0o666])
@pytest.mark.posix
def test_a_store_that_others_may_write_is_refused(file: Path, config: Config, open_to: int) -> None:
    file.chmod(open_to)
    with pytest.raises(NotPermitted, match=rf"mode {open_to:04o}.*chmod go-w"):
        open_store(config)
    file.chmod(0o600)
    assert jobs_in(config) == 3


@pytest.mark.posix
def test_a_store_in_a_directory_that_others_may_write_is_refused(
    file: Path, config: Config
) -> None:
    file.parent.chmod(0o777)
    with pytest.raises(NotPermitted, match="chmod go-w"):
        open_store(config)
    file.parent.chmod(0o700)
    assert jobs_in(config) == 3


@pytest.mark.posix
def test_a_link_of_ours_to_a_store_of_ours_is_followed(
    file: Path, tmp_path: Path, config: Config
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(file)
    assert jobs_in(load(tmp_path / "home", {"SVCQ_STORE": str(link)})) == 3
    assert jobs_in(config) == 4


@pytest.mark.posix
def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "gone.db")
    with pytest.raises(InvalidInput, match=r"link to .*gone\.db, which is missing"):
        open_store(load(tmp_path / "home", {"SVCQ_STORE": str(link)}))
    assert not (tmp_path / "gone.db").exists()


def test_a_store_that_vanishes_is_not_made_anew_behind_its_users_back(
    file: Path, config: Config, open_again: Callable[[], Store]
) -> None:
    store = open_again()
    store.close()
    file.unlink()
    with pytest.raises(StoreError, match=r"svcq\.db cannot be opened"):
        store.counts()
    assert not file.exists()


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="is a directory: name a file"):
        open_store(load(tmp_path / "home", {"SVCQ_STORE": str(tmp_path)}))
