"""The whole tree of a job is dead when the job has ended, whatever its processes did to hide."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home, lives
from tests.lifecycle.test_kills import children_of

# Each starts a process that writes its pid to FILE and would live for ten minutes.
SLEEPER = f"{sys.executable} -S {Path(__file__).with_name('sleeper.py')} FILE"
HIDING = {
    "plain": f"{SLEEPER} &",
    "new session": f"setsid {SLEEPER} &",
    "ignores SIGTERM": f"{SLEEPER} ignore &",
    "double fork": f"(setsid {SLEEPER} fork &) &",
    "no environment": f"setsid env -i {SLEEPER} fork &",
    "no descriptors": f"setsid {SLEEPER} fork close &",
    "neither, but a parent": f"setsid env -i {SLEEPER} close &",
    "nothing at all": f"(setsid env -i {SLEEPER} fork close &) &",
    "always another process": f"setsid {SLEEPER} flee ignore &",
    "stopped": f"{SLEEPER} stop &",
}


@pytest.mark.parametrize("end", ["cancelled", "timed out", "rescued"])
def test_nothing_is_left(home: Home, tmp_path: Path, end: str) -> None:
    worker = home.worker("--slots", len(HIDING))
    timeout = 3 if end == "timed out" else None
    jobs = {}
    for how, line in HIDING.items():
        hidden = line.replace("FILE", str(tmp_path / how.replace(" ", "-")))
        jobs[how] = home.add(f"{hidden} sleep 600", timeout=timeout, grace=0.2, max_losses=0)
    eventually(lambda: all(pids_of(tmp_path, how) for how in HIDING), PATIENCE)
    if end == "cancelled":
        for job in jobs.values():
            home.client.cancel(job)
    elif end == "rescued":
        worker.kill()
        home.worker()
    for how, job in jobs.items():
        assert home.ended(job).state == ("cancelled" if end == "cancelled" else "dead")
        assert [pid for pid in pids_of(tmp_path, how) if lives(pid)] == [], how


def pids_of(folder: Path, how: str) -> list[int]:
    file = folder / how.replace(" ", "-")
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


@pytest.mark.parametrize("how", [how for how in HIDING if how != "always another process"])
@pytest.mark.parametrize("code", [0, 1])
def test_what_is_left_behind_by_a_job_that_ended_ends_with_it(
    shared: Home, tmp_path: Path, how: str, code: int
) -> None:
    pids = tmp_path / "pids"
    line = HIDING[how].replace("FILE", str(pids))
    ended = shared.run(f"{line} until [ -s {pids} ]; do sleep 0.01; done; exit {code}", grace=0.2)
    assert ended.exit_code == code
    assert ended.state == ("dead" if code else "completed")
    assert not lives(int(pids.read_text()))


def test_orphans_leave_no_zombies(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    assert home.run("(setsid sleep 0.2 &) & exec sleep 0.5").state == "completed"
    home.run("(setsid sh -c : &) &")
    eventually(lambda: children_of(worker.pid) == [], PATIENCE)


def test_it_may_end_cleanly_within_its_grace(shared: Home, tmp_path: Path) -> None:
    job = shared.add(
        f"trap 'echo tidied > {tmp_path}/tidy; exit 5' TERM; touch {tmp_path}/up; "
        "while :; do sleep 0.02; done",
        grace=20,
    )
    eventually((tmp_path / "up").exists, PATIENCE)
    shared.client.cancel(job)
    ended = shared.ended(job)
    assert (ended.state, ended.exit_code) == ("cancelled", 5)
    assert (tmp_path / "tidy").read_text() == "tidied\n"


def test_one_that_ignores_sigterm_is_killed_after_its_grace(shared: Home, tmp_path: Path) -> None:
    job = shared.add(f"trap '' TERM; touch {tmp_path}/up; while :; do sleep 0.05; done", grace=0.3)
    eventually((tmp_path / "up").exists, PATIENCE)
    shared.client.cancel(job)
    ended = shared.ended(job)
    assert (ended.state, ended.exit_code) == ("cancelled", -signal.SIGKILL)


def test_a_cancelled_job_does_not_run_again(shared: Home) -> None:
    job = shared.add(["sleep", "600"], max_attempts=5)
    shared.wait_until_running(job)
    shared.client.cancel(job)
    ended = shared.ended(job)
    assert (ended.state, ended.run, ended.failures) == ("cancelled", 1, 0)


def test_other_jobs_do_not_feel_it(shared: Home, tmp_path: Path) -> None:
    other = shared.add(f"until [ -e {tmp_path}/go ]; do sleep 0.02; done")
    job = shared.add(["sleep", "600"])
    shared.wait_until_running(other)
    shared.wait_until_running(job)
    shared.client.cancel(job)
    shared.ended(job)
    (tmp_path / "go").touch()
    assert shared.ended(other).state == "completed"
