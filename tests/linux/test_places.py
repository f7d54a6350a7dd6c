"""A home on a network file system, or on one that is read-only: sentences, and nothing lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.config import load
from svcq.host.filesystems import place_of
from svcq.worker.places import Places
from tests.clients import ROOT

SCRIPT = Path(__file__).with_name("elsewhere.py")


def svcq(kind: str, folder: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    apart = ["unshare", "--mount", "--propagation", "private", sys.executable, str(SCRIPT)]
    ran = subprocess.run(
        [*apart, kind, str(folder), sys.executable, "-m", "svcq", *words],
        cwd=ROOT, env={**os.environ, "SVCQ_HOME": str(home), "HOME": str(folder.parent)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in ran.stderr
    return ran


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere"
    place.mkdir(mode=0o700)
    return place


@pytest.mark.parametrize("name", [".", "home"])
def test_a_service_is_not_installed_on_the_network(folder: Path, name: str) -> None:
    ran = svcq("network", folder, folder / name, "install")
    assert ran.returncode == 1
    assert f"is on a network file system (fuse.sshfs, mounted on {folder})" in ran.stderr
    assert "set SVCQ_HOME to a folder on a disk" in ran.stderr


def test_doctor_sees_a_home_on_the_network(folder: Path) -> None:
    ran = svcq("network", folder, folder, "doctor")
    assert ran.returncode == 1
    (line,) = [line for line in ran.stdout.splitlines() if " place: " in line]
    assert line.startswith("problem")
    assert "is on a network file system (fuse.sshfs" in line


def test_a_home_that_cannot_be_written(folder: Path) -> None:
    home = folder / "home"
    with Client(config=load(home, {})) as client:
        job = client.command("true").id
    for command, code in (("install", 1), ("service", 5), ("add true", 4)):
        ran = svcq("read-only", folder, home, *command.split())
        assert ran.returncode == code, ran
        assert "read-only" in ran.stderr.lower() or "may not be written" in ran.stderr
        assert ran.stderr.count("\n") == 1
    Places(home).prepare()
    ran = svcq("read-only", folder, home, "service")
    assert ran.returncode == 5
    assert "service.lock cannot be written (Read-only file system)" in ran.stderr
    ran = svcq("read-only", folder, home, "doctor")
    assert ran.returncode == 1
    assert "is on a file system that is read-only" in ran.stdout
    with Client(config=load(home, {})) as client:
        assert client.get(job).state == "pending"


def test_a_home_that_cannot_be_made(folder: Path) -> None:
    ran = svcq("read-only", folder, folder / "home", "install")
    assert ran.returncode == 1
    assert "is read-only" in ran.stderr
    assert not (folder / "home").exists()


def test_a_disk_is_no_network(tmp_path: Path) -> None:
    place = place_of(tmp_path / "not" / "made" / "yet")
    assert not place.is_network
    assert not place.read_only
    assert str(tmp_path).startswith(place.mounted_on)
