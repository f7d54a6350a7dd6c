"""The service's own log: in a file that does not grow for ever, and for whoever looks at it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svcq.service import log as logs
from svcq.service.log import Log, log_files, service_log, shorten


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LARGEST", 200)


def test_a_line_for_each_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path)
    log("It runs.")
    log("It ends.")
    lines = service_log(tmp_path).read_text().splitlines()
    assert [line[20:] for line in lines] == ["It runs.", "It ends."]
    assert capfd.readouterr().err.splitlines() == lines
    assert service_log(tmp_path).stat().st_mode & 0o777 == 0o600


def test_the_journal_has_a_clock_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    Log(tmp_path)("It runs.")
    assert capfd.readouterr().err == "It runs.\n"


@pytest.mark.usefixtures("small")
def test_it_does_not_grow_for_ever(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for n in range(100):
        log(f"line {n}")
    files = log_files(service_log(tmp_path))
    assert [file.name for file in files] == [
        "service.log.3", "service.log.2", "service.log.1", "service.log",
    ]  # fmt: skip
    assert all(file.stat().st_size < 300 for file in files)
    lines = [line for file in files for line in file.read_text().splitlines()]
    numbers = [int(line.split()[-1]) for line in lines]
    assert numbers == list(range(numbers[0], 100))


def test_what_cannot_be_written_is_still_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").write_text("not a folder")
    Log(tmp_path)("It runs.")
    assert "It runs." in capfd.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_file_that_others_write_to_is_emptied_under_them(tmp_path: Path) -> None:
    path = tmp_path / "workers.log"
    shorten(path)  # there is none yet
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, b"short\n")
    shorten(path)
    assert path.read_text() == "short\n"
    os.write(descriptor, b"x" * 300 + b"\n")
    shorten(path)
    os.write(descriptor, b"new\n")
    os.close(descriptor)
    assert path.read_text() == "new\n"
    assert (tmp_path / "workers.log.1").read_text() == "x" * 199 + "\n"
