"""Disks that are full or read-only, and files one may not write: real ones."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

import pytest

from svcq.config import load
from svcq.errors import NotPermitted, StoreError, StoreFull, StoreReadOnly, SvcqError
from svcq.policy import NewJob, Plan
from svcq.store import Filter, Store, open_store
from tests.store.faults import (
    become_ordinary_user,
    directory_of_ordinary_user,
    in_child,
    mount_disk,
    remount_disk,
)

JOB = NewJob(Plan("default"), "work", "[[],{}]")
BIG = NewJob(Plan("default"), "work", f'[["{"x" * 10_000}"],{{}}]')


def open_at(home: Path) -> Store:
    return open_store(load(home, {}))


def fill(store: Store) -> int:
    """Add jobs until there is no space; return how many were acknowledged."""
    added = 0
    while True:
        try:
            store.enqueue([BIG])
        except StoreFull:
            break
        added += 1
    with pytest.raises(StoreFull, match="is full; nothing was written: free some space"):
        store.enqueue([BIG])
    return added


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"

    def body() -> None:
        real = mount_disk(disk, "1m")
        home = disk / "home"
        with closing(open_at(home)) as store:
            if not real:
                store.engine.connection().execute("PRAGMA max_page_count = 100")
            added = fill(store)
            assert added > 5
            assert fill(store) < added
            total = store.counts()["pending"]
            assert len(store.list(Filter(limit=1000))) == total
            if real:
                remount_disk(disk, "size=8m")
            else:
                store.engine.connection().execute("PRAGMA max_page_count = 10000")
            store.enqueue([BIG] * 20)
            assert store.counts()["pending"] == total + 20
        with closing(open_at(home)) as store:
            assert len(store.list(Filter(limit=1000))) == total + 20

    in_child(body)


def test_a_disk_that_is_full_when_the_store_is_opened_is_a_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"

    def body() -> None:
        with closing(open_at(home)) as store:
            store.enqueue([JOB] * 3)
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
        with pytest.raises(StoreError, match=r"svcq\.db .*: .*\."):
            _add_one(home)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        assert _add_one(home) == 4

    in_child(body)


def test_a_store_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: the write fails all the same."""
    home = tmp_path / "home"

    def body() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        for size in (0, 4096, 20_000, 60_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
            with pytest.raises(SvcqError, match=r"svcq\.db"):
                open_at(home)
            assert list(home.iterdir()) == []
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        with closing(open_at(home)) as store:
            store.enqueue([JOB])

    in_child(body)


def test_a_write_that_fails_half_way_is_undone(tmp_path: Path) -> None:
    home = tmp_path / "home"

    def body() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        with closing(open_at(home)) as store:
            store.enqueue([JOB] * 3)
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, most))
            with pytest.raises(StoreError, match=r"svcq\.db could not be used.*check the disk"):
                store.enqueue([BIG] * 200)
            assert store.counts()["pending"] == 3
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            store.enqueue([BIG] * 200)
            assert store.counts()["pending"] == 203

    in_child(body)


def test_a_read_only_disk_is_a_sentence(tmp_path: Path) -> None:
    disk = tmp_path / "disk"

    def body() -> None:
        real = mount_disk(disk, "4m")
        home = disk / "home"
        with closing(open_at(home)) as store:
            store.enqueue([JOB] * 3)
        if not real:
            home.chmod(0o500)
        else:
            remount_disk(disk, "ro")
        with pytest.raises(StoreReadOnly, match=r"svcq\.db may not be written.*file system"):
            _add_one(home)
        if real:
            with pytest.raises(SvcqError, match="ead-only"):
                open_at(disk / "other")
            remount_disk(disk, "rw")
        home.chmod(0o700)
        assert _add_one(home) == 4

    in_child(body)


def _add_one(home: Path) -> int:
    with closing(open_at(home)) as store:
        store.enqueue([JOB])
        return store.counts()["pending"]


@pytest.mark.parametrize(
    ("place", "closed_to", "error", "says"),
    [
        ("home/svcq.db", 0o400, StoreReadOnly, "may not be written"),
        ("home", 0o500, StoreReadOnly, "may not be written"),
        ("home/svcq.db", 0o000, NotPermitted, "may not be read"),
        ("home", 0o000, NotPermitted, "Permission denied"),
    ],
    ids=["file read-only", "directory read-only", "file closed", "directory closed"],
)
def test_a_store_one_may_not_use_is_a_sentence_and_works_afterwards(
    place: str, closed_to: int, error: type[SvcqError], says: str
) -> None:
    with directory_of_ordinary_user() as directory:

        def body() -> None:
            become_ordinary_user()
            home = directory / "home"
            _add_one(home)
            usual = (directory / place).stat().st_mode
            (directory / place).chmod(closed_to)
            with pytest.raises(error, match=rf"svcq\.db.*{says}"):
                _add_one(home)
            (directory / place).chmod(usual)
            assert _add_one(home) == 2

        in_child(body)


def test_a_store_of_someone_else_is_refused(tmp_path: Path) -> None:
    """Whoever we are, root's own files are not an ordinary user's."""
    with directory_of_ordinary_user():

        def body() -> None:
            become_ordinary_user()
            with pytest.raises(SvcqError, match=r"belongs to root|cannot be made"):
                open_at(Path("/etc"))

        in_child(body)
