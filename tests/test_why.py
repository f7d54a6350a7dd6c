"""Every state explains itself, with its numbers and a remedy."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from svcq.client import Client
from svcq.conditions import Verdict
from svcq.config import load
from svcq.errors import NotFound
from svcq.host import processes
from svcq.jobs import (
    Claim,
    Outcome,
    State,
    completed,
    failed,
    interrupted,
    lost,
    rejected,
    snoozed,
)
from svcq.store import Claimer, Report, WorkerInfo
from svcq.why import explain, time_left

HERE = socket.gethostname()


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(tmp_path: Path, clock: Clock) -> Iterator[Client]:
    with Client(config=load(tmp_path / "home", {}), clock=clock) as client:
        yield client


def add_worker(client: Client, host: str = HERE, slots: int = 2) -> int:
    """A worker whose process is this one, so that it lives."""
    pid = os.getpid()
    born = f"{processes.process_born(pid)}-1"
    return client.store.register(WorkerInfo(host, pid, processes.boot_id(), born, slots, "1"))


def claim(client: Client, worker: int, n: int = 1) -> list[Claim]:
    return client.store.claim(Claimer(worker, HERE), n)


def end(client: Client, run: Claim, outcome: Outcome) -> State | None:
    return client.store.finish([Report(run.id, run.run, run.worker, outcome)])[0]


def run_one(client: Client, outcome: Outcome) -> State | None:
    (run,) = claim(client, add_worker(client))
    return end(client, run, outcome)


def clock_face(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}"


# Pending


def test_a_paused_queue(client: Client) -> None:
    job = client.command("true", queue="video")
    client.pause("video")
    assert client.why(job) == "pending: queue video is paused: svcq resume video"


def test_nobody_is_there(client: Client) -> None:
    job = client.command("true")
    assert client.why(job) == "pending: no worker is alive; start one: svcq worker start."


def test_all_workers_died(client: Client) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    client.store.register(WorkerInfo(HERE, gone.pid, processes.boot_id(), "1-1"))
    job = client.command("true")
    assert client.why(job) == (
        "pending: no worker is alive (1 worker died); start one: svcq worker start."
    )


def test_a_worker_of_an_earlier_boot_is_dead(client: Client) -> None:
    pid = os.getpid()
    born = f"{processes.process_born(pid)}-1"
    client.store.register(WorkerInfo(HERE, pid, "another-boot", born))
    assert client.explain(client.command("true")).cause == "no_worker"


def test_every_worker_drains(client: Client) -> None:
    client.store.drain(add_worker(client))
    assert client.why(client.command("true")) == (
        "pending: every worker is ending and takes nothing new; start one: svcq worker start."
    )


def test_a_host_without_a_worker(client: Client) -> None:
    add_worker(client)
    job = client.command("true", host="render1")
    assert client.why(job) == (
        "pending: no worker is alive on render1, where alone it may run; "
        "start one: svcq worker start there."
    )


def test_a_queue_at_its_limit_with_progress(client: Client, clock: Clock) -> None:
    worker = add_worker(client, slots=5)
    client.queue("video", concurrency=2)
    jobs = [client.command("true", queue="video") for _ in range(3)]
    first, _ = claim(client, worker, 3)
    clock.advance(60)
    client.store.progress(first, 0.2)
    why = client.explain(jobs[2])
    assert why.text == (
        "pending: queue video is at its limit of 2; jobs 1 and 2 are running, "
        "1 ends in about 4 min."
    )
    assert (why.cause, why.jobs, why.at) == ("queue_limit", (1, 2), clock.now + 240_000)


def test_a_queue_at_its_limit_by_what_others_took(client: Client, clock: Clock) -> None:
    worker = add_worker(client)
    client.queue("video", concurrency=1)
    jobs = [client.command("true", queue="video") for _ in range(4)]
    (run,) = claim(client, worker)
    clock.advance(30)
    end(client, run, completed())
    claim(client, worker)
    clock.advance(10)
    assert client.why(jobs[3]) == (
        "pending: queue video is at its limit of 1; job 2 is running, it ends in about 20 s. "
        "1 job is in front of it."
    )
    clock.advance(60)  # longer than usual: nobody can tell any more
    assert "job 2 is running. 1 job" in client.why(jobs[3])


def test_many_running_jobs_are_not_all_named(client: Client) -> None:
    worker = add_worker(client, slots=9)
    client.queue("video", concurrency=6)
    jobs = [client.command("true", queue="video") for _ in range(7)]
    claim(client, worker, 9)
    assert "jobs 1, 2, 3 and 3 more are running." in client.why(jobs[6])


def test_a_limit_of_zero(client: Client) -> None:
    add_worker(client)
    client.queue("video", concurrency=0)
    assert client.why(client.command("true", queue="video")).startswith(
        "pending: queue video has a limit of 0, so nothing in it starts: "
        "svcq queue set video concurrency="
    )


def test_a_key_at_its_limit(client: Client) -> None:
    worker = add_worker(client, slots=5)
    jobs = [client.command("true", concurrency_key="gpu") for _ in range(3)]
    claim(client, worker, 5)
    why = client.explain(jobs[2])
    assert why.text.startswith("pending: key gpu is at its limit of 1; job 1 is running.")
    assert why.cause == "key_limit"


def test_a_rate(client: Client, clock: Clock) -> None:
    worker = add_worker(client, slots=5)
    client.queue("mail", rate="2/1m")
    jobs = [client.command("true", queue="mail") for _ in range(3)]
    assert len(claim(client, worker, 5)) == 2
    why = client.explain(jobs[2])
    assert why.text == (
        "pending: queue mail starts at most 2 in 60 s, and the next may start in 30 s."
    )
    assert why.at == clock.now + 30_000
    clock.advance(29.9)
    assert claim(client, worker) == []
    clock.advance(0.1)
    assert len(claim(client, worker)) == 1, "`at` is when it can be claimed, to the moment"


def test_a_condition(client: Client) -> None:
    add_worker(client)
    job = client.command("true", when="load<0")
    why = client.explain(job)
    assert why.cause == "condition"
    assert re.fullmatch(
        r"pending: it waits for load<0: the load is [\d.]+, and it waits for less than 0\.",
        why.text,
    )


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (
            Verdict(False, "this machine runs on battery, 43 %"),
            "pending: it waits for ac-power: this machine runs on battery, 43 %.",
        ),
        (
            Verdict(None, "nobody says"),
            "pending: it waits for ac-power, and whether that holds is unknown: nobody says.",
        ),
        (
            Verdict(True, "it is"),
            "pending: it starts as soon as its turn comes; 1 worker with 2 of 2 slots free.",
        ),
    ],
)
def test_a_condition_as_the_machine_says(
    client: Client, clock: Clock, verdict: Verdict, text: str
) -> None:
    add_worker(client, slots=2)
    job = client.command("true", when="ac-power")
    clock.advance(3600)
    facts = client.store.facts(job.id)
    assert explain(facts, lambda _: True, judged=lambda _: verdict).text == text


def test_the_condition_of_a_queue(client: Client) -> None:
    add_worker(client)
    client.queue("video", when="load < 0")
    assert client.why(client.command("true", queue="video")).startswith(
        "pending: queue video waits for load<0: the load is "
    )


def test_the_condition_of_another_machine(client: Client) -> None:
    client.store.register(WorkerInfo("elsewhere", 1))
    job = client.command("true", when="load<0", host="elsewhere")
    assert client.why(job) == (
        "pending: it waits for load<0, and whether that holds is unknown: "
        "that is for elsewhere to tell."
    )


def test_all_slots_in_use(client: Client) -> None:
    worker = add_worker(client, slots=2)
    jobs = [client.command("true") for _ in range(6)]
    claim(client, worker, 2)
    assert client.why(jobs[5]) == (
        "pending: all 2 slots of 1 worker are in use. 3 jobs are in front of it."
    )


def test_it_starts_soon(client: Client) -> None:
    add_worker(client)
    assert client.explain(client.command("true")).cause == "soon"


def test_workers_that_do_not_serve_it(client: Client, clock: Clock) -> None:
    add_worker(client)
    job = client.command("true", queue="video")
    clock.advance(6)
    assert client.why(job) == (
        "pending: 1 worker has a free slot, but it does not take it; "
        "start one that serves queue video."
    )


def test_a_task_that_nobody_runs(client: Client, clock: Clock) -> None:
    add_worker(client)
    add_worker(client)
    (added,) = client.add([client.new_task("shop.send", [], {})])
    clock.advance(6)
    assert client.why(added.id) == (
        "pending: 2 workers have free slots, but none takes it; start one that serves queue "
        "default and the task shop.send (svcq project add tells where tasks are to workers "
        "started after it)."
    )


def test_a_task_behind_others_that_nobody_runs(client: Client, clock: Clock) -> None:
    worker = add_worker(client)
    _, second = client.add([client.new_task("shop.send", [], {}) for _ in range(2)])
    client.command("true", queue="other")
    clock.advance(6)
    why = client.explain(second.id)
    assert why.cause == "not_served"
    assert why.text.endswith(" 1 job is in front of it.")
    client.store.claim(Claimer(worker, HERE, serves=lambda queue: queue == "other"), 1)
    assert client.explain(second.id).cause == "soon"  # what is in front may be moving


def test_a_place_in_line_is_counted_up_to_a_bound(client: Client) -> None:
    add_worker(client)
    client.add([client.new_command("true") for _ in range(1001)])
    job = client.command("true")
    why = client.explain(job)
    assert why.text.endswith(" More than 1,000 jobs are in front of it.")
    assert why.in_front == 1001
    client.move(job)
    assert client.explain(job).in_front == 0


def test_a_place_in_line_counts_keyed_jobs_that_have_room(client: Client) -> None:
    worker = add_worker(client, slots=1)
    client.command("true", concurrency_key="a")
    claim(client, worker)
    client.command("true", concurrency_key="a")  # no room: not in front of anyone
    client.command("true", concurrency_key="b")
    client.command("true", queue="other")
    client.command("true", host="elsewhere")
    client.command("true", priority=1)
    assert client.explain(client.command("true")).in_front == 2


# Waiting for something else


def test_scheduled(client: Client, clock: Clock) -> None:
    job = client.command("true", delay="90m")
    at = clock.now + 5_400_000
    assert client.why(job) == f"scheduled: its time is in 1 h 30 min, at {clock_face(at)}."
    assert client.explain(job).at == at


def test_put_off_because_it_could_not_start(client: Client, clock: Clock) -> None:
    job = client.command("true")
    run_one(client, snoozed(10_000, error="could not start: the disk under /x is full"))
    assert client.why(job) == (
        "scheduled: it could not start: the disk under /x is full; "
        f"its time is in 10 s, at {clock_face(clock.now + 10_000)}."
    )


def test_scheduled_and_overdue(client: Client, clock: Clock) -> None:
    job = client.command("true", delay=60)
    clock.advance(180)
    assert client.why(job) == (
        "scheduled: its time came 2 min ago, but no worker is alive; start one: svcq worker start."
    )
    add_worker(client)
    assert client.why(job).endswith("it starts as soon as its turn comes.")
    client.pause("default")
    assert client.why(job).endswith("but queue default is paused: svcq resume default")


def test_blocked(client: Client) -> None:
    first, second = client.command("true"), client.command("true", hold=True)
    job = client.command("true", after=[first.id, second.id])
    assert client.why(job) == "blocked: it waits for jobs 1 (pending) and 2 (held) to complete."
    any_end = client.command("true", after_any=[first.id])
    assert client.why(any_end) == "blocked: it waits for job 1 (pending) to end."


def test_blocked_by_a_dead_parent(client: Client) -> None:
    parent = client.command("true")
    job = client.command("true", after=[parent.id], if_parent_fails="wait")
    run_one(client, rejected("no"))
    assert client.why(job) == (
        "blocked: job 1, which must complete first, is dead, and this one was told to wait all "
        "the same: svcq retry 1, or svcq cancel 2"
    )


def test_held(client: Client) -> None:
    job = client.command("true", hold=True)
    assert client.why(job) == ("held: it is parked until someone lets it go: svcq release 1.")


def test_retrying(client: Client, clock: Clock) -> None:
    job = client.command("true", backoff="fixed", backoff_base=4, jitter=0, max_attempts=3)
    run_one(client, failed("ended with exit code 75", exit_code=75))
    assert client.why(job) == (
        "retrying: attempt 1 of 3 failed (ended with exit code 75); "
        f"the next is in 4 s, at {clock_face(clock.now + 4000)}."
    )
    clock.advance(10)
    assert "its time came 6 s ago; it starts as soon as" in client.why(job)


def test_due_while_all_slots_are_in_use(client: Client, clock: Clock) -> None:
    """Nobody claims with no slot free, so nobody lets a due job go either."""
    job = client.command("true", backoff="fixed", backoff_base=4, jitter=0, max_attempts=3)
    worker = add_worker(client, slots=1)
    (run,) = claim(client, worker)
    end(client, run, failed("ended with exit code 75", exit_code=75))
    later = client.command("true", delay=5)
    client.command("true")
    claim(client, worker)
    clock.advance(10)
    assert client.why(job) == (
        "retrying: attempt 1 of 3 failed (ended with exit code 75); its time came 6 s ago, "
        "but the only slot of 1 worker is in use."
    )
    assert client.explain(job).cause == "busy"
    assert client.why(later) == (
        "scheduled: its time came 5 s ago, but the only slot of 1 worker is in use."
    )


# Running


def test_processing(client: Client, clock: Clock) -> None:
    worker = add_worker(client)
    job = client.command("true", timeout="10m")
    (run,) = claim(client, worker)
    clock.advance(120)
    client.store.progress(run, 0.4, "encoding")
    assert client.why(job) == (
        f"processing: worker {worker} on {HERE} (pid {os.getpid()}) has run it for 2 min; "
        "40% done (encoding); it ends in about 3 min; its timeout is in 8 min."
    )


def test_processing_and_asked_to_stop(client: Client) -> None:
    worker = add_worker(client)
    job = client.command("true", grace=30)
    claim(client, worker)
    client.cancel(job)
    assert client.why(job).endswith(
        "it was asked to stop, and ends when its processes have: they have 30 s to do so, "
        "then they are killed."
    )


def test_processing_by_a_dead_worker(client: Client) -> None:
    worker = client.store.register(WorkerInfo(HERE, 1, "another-boot", "7-1"))
    job = client.command("true")
    claim(client, worker)
    assert client.why(job) == (
        f"processing: worker 1 (pid 1 on {HERE}) died; the next worker on its machine gives it "
        "back: svcq worker start"
    )


def test_processes_that_a_dead_worker_left_are_named(client: Client) -> None:
    worker = client.store.register(WorkerInfo(HERE, 1, "another-boot", "7-1"))
    job = client.command("true")
    claim(client, worker)
    marker = f"1.1.{client.store.id()}"
    left = subprocess.Popen(["sleep", "60"], env={**os.environ, processes.MARKER: marker})
    try:
        assert f"when its process {left.pid} is gone" in client.why(job)
    finally:
        left.kill()
        left.wait()


def test_a_lapsed_lease_is_a_dead_worker(client: Client, clock: Clock) -> None:
    job = client.command("true")
    client.fetch(lease=60)
    assert client.explain(job).cause == "running"
    clock.advance(61)
    assert client.explain(job).cause == "lost"


# Ended


def test_processing_past_its_timeout(client: Client, clock: Clock) -> None:
    worker = add_worker(client)
    job = client.command("true", timeout="10m", grace="30s")
    claim(client, worker)
    clock.advance(605)
    assert client.why(job).endswith(
        "has run it for 10 min; its timeout of 10 min has passed: unless it stood still meanwhile, "
        "it has 30 s to end, then it is killed."
    )


def test_completed(client: Client, clock: Clock) -> None:
    job = client.command("true", backoff_base=0, jitter=0)
    run_one(client, failed("no"))
    clock.advance(2)
    (run,) = claim(client, add_worker(client))
    clock.advance(90)
    end(client, run, completed(exit_code=0))
    assert client.why(job) == (
        "completed: it took 2 min and ended well with exit code 0, "
        f"at {clock_face(clock.now)}. It failed once before."
    )


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (
            failed("command not found: 'frob'", exit_code=127),
            "(command not found: 'frob'). Exit code 127 says that the command was not found:",
        ),
        (failed("not executable: './x'", exit_code=126), "check its permissions."),
        (failed("ended by signal 9", exit_code=-9), "SIGKILL ended it; often that is the system"),
        (failed("ended with exit code 143", exit_code=143), "SIGTERM ended it."),
        (failed("ended with exit code 200", exit_code=200), "failed (ended with exit code 200). s"),
        (
            failed("Traceback (most recent call last):\n  File x\nValueError: bang"),
            "failed (ValueError: bang)",
        ),
        (failed("x" * 5000), f"({'x' * 200}...)"),
        (rejected("bad address"), "it was given up at once (bad address)."),
    ],
)
def test_dead(client: Client, outcome: Outcome, says: str) -> None:
    job = client.command("true", max_attempts=1)
    assert run_one(client, outcome) is State.DEAD
    told = client.why(job)
    assert told.startswith("dead: ")
    assert says in told
    assert told.endswith(" svcq retry 1 runs it again.")


def test_dead_of_losses_and_interruptions(client: Client) -> None:
    job = client.command("true", max_losses=1)
    run_one(client, lost("worker 1 died"))
    run_one(client, lost("worker 2 died"))
    assert client.why(job).startswith("dead: it lost its worker 2 times (worker 2 died).")
    job = client.command("true", max_interruptions=0)
    run_one(client, interrupted("shutdown"))
    assert client.why(job).startswith("dead: it was interrupted once (shutdown).")


def test_expired(client: Client, clock: Clock) -> None:
    job = client.command("true", expires=60)
    clock.advance(61)
    client.store.expire()
    assert client.why(job).startswith("dead: it had not started by the time it was to.")


def test_cancelled(client: Client, clock: Clock) -> None:
    parent = client.command("true")
    child = client.command("true", after=[parent.id])
    client.cancel(parent)
    at = clock_face(clock.now)
    assert client.why(parent) == (
        f"cancelled: cancelled by request, at {at}. svcq retry 1 runs it again."
    )
    why = client.explain(child)
    assert why.text == (
        f"cancelled: job 1, which it comes after, is cancelled, at {at}. "
        "svcq retry 1 brings both back."
    )
    assert why.jobs == (1,)


# As such


def test_every_state_is_explained_as_json(client: Client) -> None:
    job = client.command("true")
    assert client.explain(job).as_json() == {
        "job": 1,
        "state": "pending",
        "cause": "no_worker",
        "why": "pending: no worker is alive; start one: svcq worker start.",
        "at": None,
        "jobs": [],
        "in_front": 0,
    }


def test_an_unknown_job(client: Client) -> None:
    with pytest.raises(NotFound, match="There is no job 7"):
        client.why(7)


def test_asking_changes_nothing(client: Client) -> None:
    job = client.command("true")
    before = client.follow().cursor, client.store.write_mark()
    client.why(job)
    assert (client.follow().cursor, client.store.write_mark()) == before


@pytest.mark.parametrize(
    ("elapsed", "progress", "usual", "left"),
    [
        (60, 0.5, None, 60),
        (60, 0.5, 1000, 60),
        (60, 0.0, None, None),
        (60, None, 100, 40),
        (60, None, 60, None),
        (60, 1.0, None, 0),
    ],
)
def test_time_left(elapsed: int, progress: float | None, usual: int | None, left: int) -> None:
    assert time_left(elapsed, progress, usual) == left
