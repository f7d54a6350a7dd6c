"""Machines that vanish, are cut off, stand still: jobs run elsewhere, and never twice at once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.machines.network import LEASE, SETTINGS, Lab, beats, silent_for


def test_the_jobs_of_a_machine_that_vanishes_run_elsewhere(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "beats"
    first = lab.machine("render1")
    first.worker()
    job = lab.beating(file)
    eventually(lambda: beats(file), PATIENCE)
    second = lab.machine("render2")
    second.worker()
    first.vanish()
    gone = time.monotonic()
    eventually(lambda: 2 in beats(file), PATIENCE)
    assert time.monotonic() - gone > LEASE * 0.8
    Path(f"{file}.end").touch()
    ended = lab.ended(job)
    assert (ended.state, ended.run, ended.losses, ended.failures) == ("completed", 2, 1, 0)
    lost, done = lab.client.runs(job)
    assert lost.how == "lost"
    assert "on render1 was not heard of for 4s" in (lost.error or "")
    assert (lost.host, done.host) == ("render1", "render2")
    assert [worker.host for worker in lab.client.workers()] == ["render2"]


def test_a_machine_that_is_cut_off_has_ended_its_jobs_before_others_run_them(
    lab: Lab, tmp_path: Path
) -> None:
    file = tmp_path / "beats"
    first = lab.machine("render1")
    worker = first.worker()
    job = lab.beating(file)
    eventually(lambda: beats(file), PATIENCE)
    lab.machine("render2").worker()
    first.cut()
    eventually(lambda: 2 in beats(file), PATIENCE)
    first.join()
    # It hears that it was given up, and ends; what it has to say of its run comes too late.
    assert worker.ended() == 0
    Path(f"{file}.end").touch()
    ended = lab.ended(job)
    assert (ended.state, ended.run, ended.losses) == ("completed", 2, 1)
    assert [run.how for run in lab.client.runs(job)] == ["lost", "completed"]
    alive = beats(file)
    assert max(alive[1]) + LEASE / 12 < min(alive[2])
    assert "Jobs are ended and given back: its worker could not reach the store" in first.said()


def test_a_machine_that_is_back_before_anyone_took_its_jobs_gives_them_back(
    lab: Lab, tmp_path: Path
) -> None:
    file = tmp_path / "beats"
    only = lab.machine("render1")
    worker = only.worker()
    job = lab.beating(file)
    eventually(lambda: beats(file), PATIENCE)
    only.cut()
    eventually(lambda: "Jobs are ended and given back" in only.said(), PATIENCE)
    eventually(lambda: silent_for(file, 1), PATIENCE)
    assert lab.run_of(job) == 1
    only.join()
    # Not before it is heard: what it took now it would have to give back at once.
    eventually(lambda: 2 in beats(file), PATIENCE)
    Path(f"{file}.end").touch()
    ended = lab.ended(job)
    assert (ended.state, ended.interruptions, ended.losses, ended.failures) == (
        "completed",
        1,
        0,
        0,
    )
    assert worker.process.poll() is None
    assert only.said().count("Jobs are ended and given back") == 1
    assert only.said().count("The store hears this worker again") == 1


def test_on_cut_keep_goes_on_with_its_jobs(lab: Lab, tmp_path: Path) -> None:
    only = lab.machine("render1", f'{SETTINGS}on_cut = "keep"\n')
    only.worker()
    file = tmp_path / "beats"
    job = lab.beating(file)
    eventually(lambda: beats(file), PATIENCE)
    only.cut()
    cut = time.time()
    eventually(lambda: max(beats(file)[1]) > cut + LEASE * 1.5, PATIENCE)
    only.join()
    Path(f"{file}.end").touch()
    assert lab.ended(job).run == 1


def test_a_worker_that_stands_still_ends_its_jobs_when_it_wakes(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "beats"
    first = lab.machine("render1")
    worker = first.worker()
    job = lab.beating(file)
    eventually(lambda: beats(file), PATIENCE)
    lab.machine("render2").worker()
    os.kill(worker.pid, signal.SIGSTOP)
    eventually(lambda: 2 in beats(file), PATIENCE)
    os.kill(worker.pid, signal.SIGCONT)
    woken = time.time()
    assert worker.ended() == 0
    Path(f"{file}.end").touch()
    ended = lab.ended(job)
    assert (ended.state, ended.run) == ("completed", 2)
    assert max(beats(file)[1]) < woken + 1
    assert [run.how for run in lab.client.runs(job)] == ["lost", "completed"]


def test_a_worker_that_stands_still_beside_another_one_loses_its_jobs_in_time(
    lab: Lab, tmp_path: Path
) -> None:
    file = tmp_path / "beats"
    here = lab.machine("render1")
    frozen = here.worker("--slots", 1)
    job = lab.beating(file)
    eventually(lambda: beats(file), PATIENCE)
    here.worker("--slots", 1)
    lab.machine("render2").worker()
    os.kill(frozen.pid, signal.SIGSTOP)
    eventually(lambda: 2 in beats(file), PATIENCE)
    alive = beats(file)
    assert max(alive[1]) < min(alive[2])
    Path(f"{file}.end").touch()
    assert lab.ended(job).losses == 1
    assert "it stood still for" in here.said()
