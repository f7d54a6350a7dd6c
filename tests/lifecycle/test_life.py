"""Workers come, go and die; their jobs do not feel it, or run again, and never twice at once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svcq.host import processes
from svcq.jobs import lost
from svcq.store import open_store
from tests.clients import run_python
from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, Home, lives

IGNORED = (signal.SIGHUP, signal.SIGQUIT)
TELL_AND_WAIT = "echo $$ >> {0}/pids; until [ -e {0}/go ]; do sleep 0.02; done"


def pids(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def test_a_killed_workers_job_runs_again_elsewhere(home: Home, tmp_path: Path) -> None:
    first = home.worker()
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: len(pids(tmp_path)) == 1, PATIENCE)
    home.worker()
    first.kill()
    eventually(lambda: len(pids(tmp_path)) == 2, PATIENCE)
    assert not lives(pids(tmp_path)[0])
    (tmp_path / "go").touch()
    ended = home.ended(job)
    assert (ended.state, ended.failures, ended.losses, ended.run) == ("completed", 0, 1, 2)
    assert home.client.runs(job)[0].how == "lost"
    assert [worker.id for worker in home.client.workers()] != [first.id]


def test_a_killed_workers_task_runs_again_elsewhere(home: Home, tmp_path: Path) -> None:
    first = home.worker_with_tasks()
    job = home.client.enqueue(sample.until_file, str(tmp_path / "go")).id
    home.wait_until_running(job)
    first.kill()
    home.worker_with_tasks()
    eventually(lambda: home.client.get(job).run == 2, PATIENCE)
    (tmp_path / "go").touch()
    ended = home.ended(job)
    assert (ended.state, ended.losses) == ("completed", 1)


def test_a_job_that_is_killed_has_failed(home: Home, tmp_path: Path) -> None:
    home.worker()
    job = home.add(TELL_AND_WAIT.format(tmp_path), max_attempts=2)
    eventually(lambda: len(pids(tmp_path)) == 1, PATIENCE)
    os.kill(pids(tmp_path)[0], signal.SIGKILL)
    eventually(lambda: len(pids(tmp_path)) == 2, PATIENCE)
    (tmp_path / "go").touch()
    ended = home.ended(job)
    assert (ended.state, ended.failures) == ("completed", 1)
    assert str(home.client.runs(job)[0].error).startswith("ended by signal 9")


def test_a_job_lost_too_often_is_dead(home: Home, tmp_path: Path) -> None:
    job = home.add(TELL_AND_WAIT.format(tmp_path), max_losses=1)
    for count in (1, 2):
        worker = home.worker()
        eventually(lambda count=count: len(pids(tmp_path)) == count, PATIENCE)
        worker.kill()
    home.worker()
    ended = home.ended(job)
    assert (ended.state, ended.reason) == ("dead", "lost too often")


CLAIM_AND_DIE = """
import os, sys
from pathlib import Path
from svcq.config import load
from svcq.store import open_store
from svcq.worker.membership import Membership
from svcq.worker.places import Places
home = Path(sys.argv[1])
store = open_store(load(home, {}))
member = Membership(store, Places(home), 1)
assert len(store.claim(member.claimer(["*"], ["command"]), 1)) == 1
os._exit(9)
"""


def test_a_worker_that_dies_between_the_claim_and_the_start(home: Home, tmp_path: Path) -> None:
    job = home.add(f"echo x >> {tmp_path}/runs")
    assert run_python(CLAIM_AND_DIE, home.path).returncode == 9
    assert home.is_running(job)
    home.worker()
    ended = home.ended(job)
    assert (ended.state, ended.run, ended.losses) == ("completed", 2, 1)
    assert (tmp_path / "runs").read_text() == "x\n"


def test_a_worker_that_dies_between_the_end_and_the_report(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    job = home.add(f"{TELL_AND_WAIT.format(tmp_path)}; echo x >> {tmp_path}/runs")
    eventually(lambda: pids(tmp_path), PATIENCE)
    worker.signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    eventually(lambda: not lives(pids(tmp_path)[0]), PATIENCE)
    worker.kill()
    home.worker()
    ended = home.ended(job)
    assert (ended.state, ended.run, ended.losses) == ("completed", 2, 1)
    assert (tmp_path / "runs").read_text() == "x\nx\n"  # at least once


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_gives_jobs_back_unharmed(home: Home, tmp_path: Path, number: int) -> None:
    worker = home.worker_with_tasks("--slots", 2)
    command = home.add(TELL_AND_WAIT.format(tmp_path))
    task = home.client.enqueue(sample.until_file, str(tmp_path / "go")).id
    for job in (command, task):
        home.wait_until_running(job)
    eventually(lambda: pids(tmp_path), PATIENCE)
    worker.signal(number)
    assert worker.ended() == 0
    assert not lives(pids(tmp_path)[0])
    for job in (command, task):
        found = home.client.get(job)
        assert (found.state, found.failures, found.interruptions) == ("pending", 0, 1)
        assert home.last_run(job).error == f"the worker got signal {number}"
    assert home.client.workers() == []
    home.worker_with_tasks("--slots", 2)
    (tmp_path / "go").touch()
    assert {home.ended(job).state for job in (command, task)} == {"completed"}


def test_drain_finishes_what_runs_and_takes_nothing_new(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    running = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    assert home.svcq("worker", "stop").returncode == 0
    eventually(lambda: home.client.workers()[0].state == "draining")
    waiting = home.add("exit 0")
    (tmp_path / "go").touch()
    assert worker.ended() == 0
    assert home.client.get(running).state == "completed"
    assert home.client.get(waiting).state == "pending"


def test_stop_now_gives_jobs_back_even_after_a_drain(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    assert home.svcq("worker", "stop", worker.id).returncode == 0
    assert home.svcq("worker", "stop", "--now", worker.id).returncode == 0
    assert worker.ended() == 0
    found = home.client.get(job)
    assert (found.state, found.failures, found.interruptions) == ("pending", 0, 1)


def test_two_workers_share(home: Home, tmp_path: Path) -> None:
    workers = {home.worker("--slots", 1).id for _ in range(2)}
    jobs = [home.add(TELL_AND_WAIT.format(tmp_path)) for _ in range(2)]
    for job in jobs:
        home.wait_until_running(job)
    assert {home.client.get(job).worker for job in jobs} == workers
    (tmp_path / "go").touch()
    for job in jobs:
        home.ended(job)


def test_a_worker_serves_the_queues_it_is_told_to(home: Home) -> None:
    home.worker("--queue", "video-*")
    other = home.add("exit 0", queue="mail")
    assert home.run("exit 0", queue="video-4k").state == "completed"
    assert home.client.get(other).state == "pending"


def test_a_busy_worker_rescues_too(home: Home, tmp_path: Path) -> None:
    lost_worker = home.worker("--slots", 1)
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    home.worker_with_tasks("--slots", 1)
    # Never a second without something that ended.
    home.client.enqueue_many(sample.short, [{"file": str(tmp_path / "record")}] * 20_000)
    eventually((tmp_path / "record").exists, PATIENCE)
    lost_worker.kill()
    eventually(lambda: home.client.get(job).losses == 1, PATIENCE)
    assert home.client.counts()["pending"] > 0


def test_a_worker_given_up_as_lost_stops_its_jobs(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    store = open_store(home.client.config)
    store.rescue(worker.id, lost("given up by a test"))
    store.close()
    assert worker.ended() == 0
    assert not lives(pids(tmp_path)[0])
    found = home.client.get(job)
    assert (found.state, found.losses, found.interruptions) == ("pending", 1, 0)


def test_nothing_is_rescued_from_a_worker_that_only_stands_still(
    home: Home, tmp_path: Path
) -> None:
    worker = home.worker("--slots", 1)
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    worker.signal(signal.SIGSTOP)
    home.worker("--slots", 1)
    # Longer than any look at others takes.
    assert home.run("sleep 2.5; exit 0").state == "completed"
    assert (home.client.get(job).run, home.client.get(job).losses) == (1, 0)
    worker.signal(signal.SIGCONT)
    (tmp_path / "go").touch()
    assert home.ended(job).state == "completed"
    assert len(pids(tmp_path)) == 1


def test_the_worker_leaves_nothing_behind(home: Home) -> None:
    worker = home.worker_with_tasks()
    home.run("echo x")
    home.call(sample.add, 1, 2)
    worker.signal(signal.SIGTERM)
    worker.ended()
    eventually(lambda: home.processes() == [], PATIENCE)
    for folder in ("workers", "runs", "spool"):
        assert os.listdir(home.path / folder) == []
    assert os.listdir(f"{home.client.config.store}-bells") == []


def test_a_worker_older_than_the_store_finishes_what_it_holds_and_ends(
    home: Home, tmp_path: Path
) -> None:
    worker = home.worker()
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    with sqlite3.connect(home.client.config.store) as store:
        store.execute("UPDATE meta SET value = value + 1 WHERE key = 'version'")
    store.close()
    left = home.add("exit 0")
    (tmp_path / "go").touch()
    assert home.ended(job).state == "completed"
    worker.ended()
    assert home.client.get(left).state == "pending"


def test_jobs_hear_the_signals_that_their_worker_was_told_to_ignore(home: Home) -> None:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED}
    try:
        home.worker()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert home.run("grep -q 'SigIgn:.*0000000000000000' /proc/self/status").exit_code == 0


def test_jobs_expire_while_every_slot_is_taken(home: Home, tmp_path: Path) -> None:
    home.worker("--slots", 1)
    home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    late = home.ended(home.add("exit 0", expires="200ms"))
    assert (late.state, late.reason) == ("dead", "expired")


# Paused and resumed


def test_a_running_command_stands_still_until_it_is_resumed(home: Home, tmp_path: Path) -> None:
    home.worker()
    line = f"echo $$ >> {tmp_path}/pids; while :; do date +%s%N > {tmp_path}/beat; sleep 0.01; done"
    job = home.add(line)
    eventually(lambda: pids(tmp_path), PATIENCE)
    home.client.suspend(job)
    eventually(lambda: stands_still(pids(tmp_path)[0]), PATIENCE)
    assert home.client.get(job).paused
    stopped_at = (tmp_path / "beat").read_text()
    home.client.suspend(job, paused=False)
    eventually(lambda: (tmp_path / "beat").read_text() not in ("", stopped_at), PATIENCE)
    home.client.cancel(job)
    assert home.ended(job).state == "cancelled"


def stands_still(session: int) -> bool:
    """A shell whose child was stopped between vfork and exec waits for it in state D."""
    tree = processes.tree_of("no marker", session=session)
    states = {state_of(one.pid) for one in tree}
    return "T" in states and states <= {"T", "D"}


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


def test_no_time_passes_for_a_paused_command(home: Home, tmp_path: Path) -> None:
    home.worker()
    job = home.add(TELL_AND_WAIT.format(tmp_path), timeout=1.5)
    eventually(lambda: pids(tmp_path), PATIENCE)
    home.client.suspend(job)
    assert home.run("sleep 3; exit 0").state == "completed"
    assert home.is_running(job)
    (tmp_path / "go").touch()
    home.client.suspend(job, paused=False)
    assert home.ended(job).state == "completed"


def test_a_paused_command_can_be_cancelled(home: Home, tmp_path: Path) -> None:
    home.worker()
    job = home.add(TELL_AND_WAIT.format(tmp_path), grace=30)
    eventually(lambda: pids(tmp_path), PATIENCE)
    home.client.suspend(job)
    eventually(lambda: stands_still(pids(tmp_path)[0]), PATIENCE)
    home.client.cancel(job)
    ended = home.ended(job)
    assert (ended.state, ended.exit_code) == ("cancelled", -signal.SIGTERM)


# The doorbell


def test_an_idle_worker_starts_a_job_when_it_is_rung_for(home: Home) -> None:
    home.worker()
    assert home.run("exit 0").state == "completed"
    waits = []
    for _ in range(10):
        ended = home.run("exit 0")
        assert ended.started_at is not None
        waits.append((ended.started_at - ended.created_at).total_seconds())
    # A look a second would take half of one on average; a machine may be busy, but not each time.
    assert min(waits) < 0.1


def test_a_writer_that_cannot_ring_is_noticed(home: Home) -> None:
    home.worker()
    home.run("exit 0")
    connection = sqlite3.connect(home.client.config.store, timeout=10)
    job = home.client.using(connection).command("exit 0", cwd=str(home.work)).id
    connection.commit()
    connection.close()
    assert home.ended(job).state == "completed"


def test_a_job_that_falls_due_starts(home: Home) -> None:
    home.worker()
    ended = home.run("exit 0", delay=0.3)
    assert ended.state == "completed"
    assert ended.started_at is not None
    assert ended.run_at is not None
    assert ended.started_at >= ended.run_at


# Started in the background, and kept running


def test_a_detached_worker_survives_the_shell_that_started_it(home: Home) -> None:
    shell = subprocess.Popen(
        ["sh", "-c", f"{sys.executable} -m svcq worker start --count 2; exec sleep 600"],
        env=home.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    eventually(lambda: len(home.client.workers()) == 2, PATIENCE)
    os.killpg(shell.pid, signal.SIGHUP)
    shell.wait()
    assert home.run("echo still here").state == "completed"
    assert {os.getsid(worker.pid) for worker in home.client.workers()} != {shell.pid}
    assert home.svcq("worker", "stop").returncode == 0
    eventually(lambda: home.client.workers() == [], PATIENCE)


def test_up_replaces_a_killed_worker(home: Home, tmp_path: Path) -> None:
    home.start("up", "--count", 1, "--slots", 1)
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    (worker,) = home.client.workers()
    os.kill(worker.pid, signal.SIGKILL)
    eventually(lambda: len(pids(tmp_path)) == 2, PATIENCE)
    assert not lives(pids(tmp_path)[0])
    (tmp_path / "go").touch()
    ended = home.ended(job)
    assert (ended.state, ended.losses) == ("completed", 1)
    said = home.said()
    assert f"A worker (pid {worker.pid}) ended with signal 9." in said
    assert f"Worker {worker.id} (pid {worker.pid}) died; it held {job}." in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_gives_jobs_back_when_it_ends(home: Home, tmp_path: Path, number: int) -> None:
    up = home.start("up", "--count", 2)
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    up.send_signal(number)
    assert up.wait(PATIENCE) == 0
    found = home.client.get(job)
    assert (found.state, found.failures, found.interruptions) == ("pending", 0, 1)
    eventually(lambda: home.processes() == [], PATIENCE)
    assert "Traceback" not in home.said()
    assert "Stopped. What was running goes on at the next start." in home.said()


def test_a_second_ctrl_c_does_not_wait_for_the_grace(home: Home, tmp_path: Path) -> None:
    up = home.start("up", "--count", 1)
    asked = tmp_path / "asked"
    job = home.add(f"trap 'touch {asked}' TERM; {TELL_AND_WAIT.format(tmp_path)}", grace=3600)
    eventually(lambda: pids(tmp_path), PATIENCE)
    up.send_signal(signal.SIGINT)
    eventually(asked.exists, PATIENCE)
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE) == 0
    assert not lives(pids(tmp_path)[0])
    found = home.client.get(job)
    assert (found.state, found.failures, found.losses, found.interruptions) == ("pending", 0, 0, 1)
    assert "Traceback" not in home.said()


MOMENTS: dict[str, Callable[[Home], Any]] = {
    "it has begun": lambda home: (home.path / "workers").exists(),
    "it has said how it is": lambda home: "Ctrl-C" in home.said(),
    "a worker is there": lambda home: list(home.path.glob("workers/*")),
    "the worker is known": lambda home: home.client.workers(),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_at_any_moment_ends_it(home: Home, moment: str) -> None:
    up = home.start("up", "--count", 1)
    eventually(lambda: MOMENTS[moment](home), PATIENCE, interval=0.001)
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE) in (0, 130)
    assert "Traceback" not in home.said()
    eventually(lambda: home.processes() == [], PATIENCE)
    assert home.client.workers() == []


def test_up_keeps_the_store_that_it_began_with(home: Home) -> None:
    """Its workers would otherwise work on one that it does not look at, and more of them come."""
    home.start("up", "--count", 1)
    assert home.run("echo one").state == "completed"
    first = home.client.workers()
    said = home.svcq("config", "set", "store", "other.db").stdout
    assert said.startswith("store is set. What runs keeps the store it has")
    eventually(lambda: "They name another store: this one is kept" in home.said(), PATIENCE)
    eventually(lambda: [w.id for w in home.client.workers()] not in ([], [first[0].id]), PATIENCE)
    assert home.run("echo two").state == "completed"
    assert home.svcq("config", "unset", "store").returncode == 0
    assert home.run("echo three").state == "completed"
    eventually(lambda: len(home.client.workers()) == 1, PATIENCE)
    assert "did not come up" not in home.said()


def test_up_follows_the_settings(home: Home, tmp_path: Path) -> None:
    home.configure("[workers]\nslots = 2\n")
    home.start("up")
    eventually(lambda: slots_of(home) == [2], PATIENCE)
    job = home.add(TELL_AND_WAIT.format(tmp_path))
    eventually(lambda: pids(tmp_path), PATIENCE)
    home.configure("[workers]\nslots = 1\ncount = 2\n")
    # The old one finishes what it holds, which takes the place of one of the new.
    eventually(lambda: slots_of(home) == [1], PATIENCE)
    (tmp_path / "go").touch()
    ended = home.ended(job)
    assert (ended.state, ended.run) == ("completed", 1)
    eventually(lambda: slots_of(home) == [1, 1], PATIENCE)
    home.configure("[workers]\nslots = -1\n")
    eventually(lambda: "is -1" in home.said(), PATIENCE)
    assert home.run("exit 0").state == "completed"
    assert home.said().count("is -1") == 1
    assert "ended with" not in home.said()


def slots_of(home: Home) -> list[int]:
    return [worker.slots for worker in home.client.workers() if worker.state == "running"]


def test_up_keeps_the_numbers_it_was_given(home: Home) -> None:
    home.start("up", "--count", 1, "--slots", 3)
    eventually(lambda: slots_of(home) == [3], PATIENCE)
    (first,) = home.client.workers()
    home.configure("[workers]\nslots = 1\ncount = 2\n")
    eventually(lambda: first.id not in [one.id for one in home.client.workers()], PATIENCE)
    eventually(lambda: slots_of(home) == [3], PATIENCE)


def test_a_project_added_while_up_runs_is_served(home: Home) -> None:
    home.start("up", "--count", 1)
    eventually(lambda: slots_of(home), PATIENCE)
    (home.work / "shop.py").write_text("import svcq\n@svcq.task\ndef sell(n): return n + 1\n")
    said = home.svcq("project", "add", home.work, "--import", "shop", "--python", sys.executable)
    assert said.returncode == 0, said.stderr
    ended = home.call_by_name("shop.sell", 41)
    assert (ended.state, ended.result) == ("completed", 42)
