"""Logs: their ends, their holes, and what a job may put in their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svcq.host.files import open_log
from svcq.logs import drop_middle, full_disk, log_file, read_log, read_start, tail


def test_a_log_is_made_with_its_folder_for_its_owner_alone(tmp_path: Path) -> None:
    path = log_file(tmp_path, 12_345, 2)
    assert path == tmp_path / "logs" / "12" / "12345.2.log"
    os.close(open_log(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_log_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        open_log(tmp_path / "1.log")


@pytest.mark.parametrize(
    ("written", "last"),
    [
        (b"", None),
        (b"\n", None),
        (b"one", "one"),
        (b"a\nb\nc\n", "b\nc"),
        (b"a\0b\n\xff\n", "ab\n\ufffd"),
        (b"x" * 100_000, "x" * 8192),
    ],
)
def test_the_tail(tmp_path: Path, written: bytes, last: str | None) -> None:
    (tmp_path / "log").write_bytes(written)
    assert tail(tmp_path / "log", 2) == last


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name in ("fifo", "endless", "folder", "missing"):
        assert tail(tmp_path / name) is None
        assert read_start(tmp_path / name, 10) is None


def test_the_start_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_start(tmp_path / "file", 4) == b"0123"


def test_the_middle_is_dropped_again_and_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    limit = 64 << 10
    with log.open("w+b", buffering=0) as file:
        for letter in b"abcdefgh":
            file.write(bytes([letter]) * 100_000)
            drop_middle(file.fileno(), limit)
        assert drop_middle(file.fileno(), limit) == 800_000
    assert log.stat().st_blocks * 512 <= limit + 16_384
    text = b"".join(read_log(log))
    assert text.startswith(b"a" * 32_768)
    assert text.endswith(b"h" * 32_768)
    assert text.count(b"bytes dropped: the output was over its limit") == 1
    assert b"\0" not in text


def test_a_log_within_its_limit_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 5000)
    with (tmp_path / "log").open("r+b") as file:
        assert drop_middle(file.fileno(), 8192) == 5000
    assert b"".join(read_log(tmp_path / "log")) == b"x" * 5000


def test_a_disk_with_room_is_not_full(tmp_path: Path) -> None:
    assert full_disk(log_file(tmp_path, 1, 1)) is None  # there is no folder yet
    os.close(open_log(log_file(tmp_path, 1, 1)))
    assert full_disk(log_file(tmp_path, 1, 1)) is None
