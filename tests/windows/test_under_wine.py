"""The Windows part of the suite, run by a Windows Python under Wine and told here.

A group is one process in there; it counts only what has run, and nothing may be left out but tests
of what POSIX alone has, which are marked so.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.windows.wine import ROOT, Wine, prepared

PATIENCE = 600.0  # seconds for a group
INSIDE = "tests/windows/inside"

# What runs on Windows, and the least number of tests that it has: none may be lost unseen.
GROUPS = {
    "store": (480, [
        "tests/store/test_claim.py", "tests/store/test_enqueue.py", "tests/store/test_finish.py",
        "tests/store/test_files.py", "tests/store/test_moves.py", "tests/store/test_unique.py",
        "tests/store/test_dependencies.py", "tests/store/test_workers.py",
        "tests/store/test_schedules.py", "tests/store/test_sqlite.py", "tests/store/test_tidy.py",
        "tests/store/test_read.py", "tests/store/test_edit.py", "tests/store/test_queues.py",
    ]),
    "client": (200, [
        "tests/test_client.py", "tests/test_changes.py", "tests/test_hands.py",
        "tests/test_config.py", "tests/test_tasks.py", "tests/worker/test_spool.py",
        "tests/host/test_clocks.py",
    ]),
    "command line": (200, [
        "tests/cli/test_add.py", "tests/cli/test_look.py", "tests/cli/test_wait.py",
        "tests/cli/test_steer.py", "tests/cli/test_queues.py",
        "tests/cli/test_why.py", "tests/cli/test_usage.py",
    ]),
    "host": (30, [f"{INSIDE}/test_files.py", f"{INSIDE}/test_words.py"]),
    "worker": (20, [f"{INSIDE}/test_worker.py"]),
    "tasks and API": (5, [f"{INSIDE}/test_tasks.py"]),
    "service": (9, [f"{INSIDE}/test_service.py"]),
}  # fmt: skip
# Wine's scheduler keeps a registration waiting for good now and then.
BY_HAND = {f"{INSIDE}/test_handoff.py"}


@pytest.fixture(scope="module")
def wine() -> Wine:
    return prepared()


@pytest.mark.early
@pytest.mark.timeout(1200)  # with the making of that Python, for which the others wait
@pytest.mark.parametrize("group", GROUPS)
def test_on_windows(group: str, wine: Wine, tmp_path: Path) -> None:
    least, files = GROUPS[group]
    report = tmp_path / "report.xml"
    ran = wine.run(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=150",
         f"--basetemp=C:\\svcq-{tmp_path.parent.name}-{group.replace(' ', '-')}",
         f"--junitxml=Z:{report}", *files],
        timeout=PATIENCE + 60,
    )  # fmt: skip
    assert ran.returncode == 0, last_words(ran.stdout)
    assert number_of_tests(report) >= least


def test_all_files_of_windows_are_in_a_group() -> None:
    named = {file for _, files in GROUPS.values() for file in files}
    there = {str(file.relative_to(ROOT)) for file in (ROOT / INSIDE).glob("test_*.py")}
    assert there - BY_HAND <= named


def number_of_tests(report: Path) -> int:
    found = ET.parse(report).getroot().iter("testcase")
    return sum(1 for _ in found)


def last_words(said: str) -> str:
    """From the first failure on, as far as somebody reads."""
    _, begin, rest = said.partition("= FAILURES =")
    text = begin + rest if begin else said
    return text if len(text) < 20_000 else f"{text[:10_000]}\n[...]\n{text[-10_000:]}"
