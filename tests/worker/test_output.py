"""A log that is held open: its tail, its limit, and its copy when it was deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from svcq.logs import read_log
from svcq.worker.output import Output


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "0" / "1.1.log"


@pytest.fixture
def output(path: Path) -> Iterator[Output]:
    with closing(Output(path)) as output:
        yield output


def write(output: Output, data: bytes) -> None:
    """As its processes do: by a descriptor of their own that appends."""
    assert os.write(output.descriptor, data) == len(data)


def test_a_log_that_is_there_is_left_alone(output: Output, path: Path) -> None:
    write(output, b"one\n")
    assert not output.deleted
    assert output.tail() == "one"
    assert path.read_bytes() == b"one\n"


def test_what_was_written_before_and_after_a_deletion_comes_back(
    output: Output, path: Path
) -> None:
    write(output, b"one\n")
    shutil.rmtree(path.parents[1])
    assert output.deleted
    write(output, b"two\n")
    output.put_back()
    assert path.read_bytes() == b"one\ntwo\n"
    write(output, b"three\n")
    assert output.tail() == "one\ntwo\nthree"
    output.put_back()
    output.put_back()
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_it_comes_back_a_part_at_a_time(output: Output, path: Path) -> None:
    write(output, b"0123456789")
    path.unlink()
    seen = []
    for _ in range(4):
        output.put_back(4)
        seen.append(path.read_bytes())
    assert seen == [b"0123", b"01234567", b"0123456789", b"0123456789"]


def test_a_copy_that_is_deleted_too_is_made_anew(output: Output, path: Path) -> None:
    write(output, b"one\n")
    path.unlink()
    output.put_back()
    path.unlink()
    write(output, b"two\n")
    output.put_back()
    assert path.read_bytes() == b"one\ntwo\n"


def test_what_was_dropped_from_the_middle_is_not_copied(output: Output, path: Path) -> None:
    limit = 64 << 10
    for letter in b"abcdefgh":
        write(output, bytes([letter]) * 100_000)
        assert output.limit(limit) >= 100_000
    path.unlink()
    output.put_back()
    write(output, b"i" * 100_000)
    assert output.limit(limit) == 900_000
    output.put_back()
    output.limit(limit)
    assert path.stat().st_size == 900_000
    assert path.stat().st_blocks * 512 <= limit + 16_384
    text = b"".join(read_log(path))
    assert text.startswith(b"a" * 32_768)
    assert text.endswith(b"i" * 32_768)
    assert b"\0" not in text


def test_where_nothing_can_be_put_the_error_says_so(output: Output, path: Path) -> None:
    write(output, b"one\n")
    shutil.rmtree(path.parents[1])
    path.parents[1].touch()
    with pytest.raises(NotADirectoryError):
        output.put_back()
    assert output.tail() == "one"
    path.parents[1].unlink()
    output.put_back()
    assert path.read_bytes() == b"one\n"
