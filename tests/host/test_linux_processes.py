"""Processes on the real system: told apart, found, and ended for certain."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svcq.host import linux_processes as processes
from svcq.host.linux_bell import Bell, ring
from svcq.host.linux_children import Child, Exit, own_peak
from tests.helpers import eventually
from tests.host.conftest import Start


def run_child(*argv: str, output: Path, **options: object) -> Exit:
    async def run() -> Exit:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            given = {"cwd": None, "env": dict(os.environ), **options}
            child = processes.start_child(argv, output=descriptor, **given)  # type: ignore[arg-type]
        finally:
            os.close(descriptor)
        return await child.ended

    return asyncio.run(run())


# One process


@pytest.mark.parametrize(("line", "code"), [("exit 0", 0), ("exit 255", 255), ("kill -9 $$", -9)])
def test_the_end_of_a_child(tmp_path: Path, line: str, code: int) -> None:
    assert run_child("sh", "-c", line, output=tmp_path / "log").code == code


def test_what_a_child_used(tmp_path: Path) -> None:
    # More than we have ever used ourselves.
    code = "x = bytearray(b'x') * (600 << 20); sum(range(3_000_000))"
    used = run_child(sys.executable, "-S", "-c", code, output=tmp_path / "log")
    assert used.cpu_ms > 10
    assert (used.peak_bytes or 0) > 600 << 20


def test_our_own_memory_is_not_taken_for_that_of_a_child(tmp_path: Path) -> None:
    assert run_child("true", output=tmp_path / "log").peak_bytes is None
    # Not even what we have grown by just now.
    grown = bytearray(b"x") * (1_024 * own_peak() + (32 << 20))
    assert run_child("true", output=tmp_path / "log").peak_bytes is None
    assert len(grown) < 1_024 * own_peak()


def test_limits_hold_from_the_first_instruction_and_for_us_not_at_all(tmp_path: Path) -> None:
    look = "import os; print(os.nice(0), len(os.sched_getaffinity(0)))"
    before = os.nice(0), os.sched_getaffinity(0)
    wanted = min(before[0] + 5, 19)
    run_child(sys.executable, "-S", "-c", look, output=tmp_path / "log", nice=wanted, cpus=1)
    assert (tmp_path / "log").read_text().split() == [str(wanted), "1"]
    assert (os.nice(0), os.sched_getaffinity(0)) == before


def test_a_program_that_is_missing_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        run_child("no-such-program", output=tmp_path / "log", nice=1)
    assert caught.value.filename == "no-such-program"


def test_a_detached_process_has_a_session_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    pid = processes.spawn_detached(
        ["sh", "-c", "pwd; exec sleep 600"], log=log, env=dict(os.environ), cwd=str(tmp_path)
    )
    try:
        eventually(lambda: log.exists() and log.read_text() == f"{tmp_path}\n")
        assert os.getsid(pid) == pid
        assert log.stat().st_mode & 0o777 == 0o600
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# Locks


def test_a_lock_is_held_as_long_as_anyone_has_it_open(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "lock"
    assert not processes.lock_is_held(path)
    lock = processes.hold_lock(path)
    assert lock is not None
    child = start("sleep", "600", pass_fds=(lock,))
    os.close(lock)
    assert processes.lock_is_held(path)
    assert processes.hold_lock(path) is None
    child.kill()
    child.wait()
    assert not processes.lock_is_held(path)


def test_who_asks_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "lock"
    path.touch()
    asking = os.open(path, os.O_RDWR)
    fcntl.flock(asking, fcntl.LOCK_SH)  # as lock_is_held does, in another process
    assert not processes.lock_is_held(path)
    os.close(asking)


# Holes


def test_the_middle_of_a_file_is_given_back_in_whole_blocks(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 1_000_000)
    descriptor = os.open(file, os.O_RDWR)
    assert processes.punch_hole(descriptor, 1000, 900_000)
    assert not processes.punch_hole(descriptor, 950_000, 100)
    parts = list(processes.parts_with_data(descriptor, 0, 1_000_000))
    os.close(descriptor)
    assert file.stat().st_size == 1_000_000
    assert file.stat().st_blocks * 512 < 200_000
    assert parts[0][0] == 0
    text = file.read_bytes()
    assert all(set(text[begin:end]) == {ord("x")} for begin, end in parts)


# The doorbell


def test_a_bell_is_heard(tmp_path: Path) -> None:
    bell = Bell(tmp_path, "1")
    ring(tmp_path)
    ring(tmp_path)
    assert os.read(bell.fileno(), 1) == b"."
    bell.heard()
    with pytest.raises(BlockingIOError):
        os.read(bell.fileno(), 1)
    bell.close()
    assert os.listdir(tmp_path) == []


def test_ringing_never_fails(tmp_path: Path) -> None:
    ring(tmp_path / "missing")
    ring(tmp_path)
    (tmp_path / "1.bell").touch()  # no pipe at all
    (tmp_path / "3.bell").symlink_to(tmp_path)
    ring(tmp_path)
    bell = Bell(tmp_path, "2")
    for _ in range(70_000):  # more than it can hold
        ring(tmp_path)
    bell.close()


def test_the_bell_of_a_dead_worker_is_removed(tmp_path: Path) -> None:
    bell = Bell(tmp_path, "1")
    os.close(bell.fileno())
    ring(tmp_path)
    assert os.listdir(tmp_path) == []


# What is handed down


def open_files_of_a_child(folder: Path, **options: object) -> set[str]:
    look = "for fd in /proc/self/fd/*; do readlink $fd; done"
    run_child("sh", "-c", look, output=folder / "log", **options)
    files = set((folder / "log").read_text().split()) - {"/dev/null", str(folder / "log")}
    return {file for file in files if not file.startswith("/proc/")}


def test_a_child_has_the_files_that_are_meant_for_it_and_no_others(tmp_path: Path) -> None:
    """Those too that whoever started us had left open."""
    for name in ("ours", "meant"):
        (tmp_path / name).touch()
    ours = os.open(tmp_path / "ours", os.O_RDONLY)
    meant = os.open(tmp_path / "meant", os.O_RDONLY)
    os.set_inheritable(ours, True)
    processes._close_what_we_were_given.cache_clear()  # as in a program that begins with it
    try:
        assert open_files_of_a_child(tmp_path, inherit=(meant,)) == {str(tmp_path / "meant")}
        assert not os.get_inheritable(meant)
    finally:
        os.close(ours)
        os.close(meant)


def test_the_first_files_of_a_child_are_its_own_even_if_ours_are_closed(tmp_path: Path) -> None:
    """What we open next has their numbers."""
    code = """
import asyncio, os, sys
from svcq.host.linux_processes import start_child

async def run():
    os.closerange(0, 3)
    output = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
    env = {"PATH": os.environ["PATH"]}
    return await start_child(["sh", "-c", "cat; echo said"], cwd=None, env=env, output=output).ended

sys.exit(asyncio.run(run()).code)
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "log"], check=True, timeout=60)
    assert (tmp_path / "log").read_text() == "said\n"


def test_what_no_program_can_be_told_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null byte"):
        run_child("echo", "a\0b", output=tmp_path / "log")
    with pytest.raises(ValueError, match="null byte"):
        run_child("echo", output=tmp_path / "log", env={**os.environ, "A": "a\0b"})


def test_a_child_minds_signals_that_python_ignores(tmp_path: Path) -> None:
    run_child("sh", "-c", "kill -PIPE $$; echo survived", output=tmp_path / "log")
    assert (tmp_path / "log").read_text() == ""


def test_each_event_loop_hears_of_its_children(tmp_path: Path) -> None:
    """Several at a time, and one loop after the other."""
    for _ in range(2):

        async def several() -> list[int]:
            with (tmp_path / "log").open("ab") as log:
                children = [
                    processes.start_child(
                        ["sh", "-c", f"exit {n}"], cwd=None, env={}, output=log.fileno()
                    )
                    for n in range(5)
                ]
            return [(await child.ended).code for child in children]

        assert asyncio.run(several()) == [0, 1, 2, 3, 4]
        assert not Child.known


def test_a_program_is_looked_for_where_its_environment_says(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "greet").write_text(f"#!/bin/sh\necho {folder}\n")
    (tmp_path / "second" / "greet").chmod(0o700)
    path = f"{tmp_path}/first:{tmp_path}/second:/bin"
    said = tmp_path / "log"
    run_child("greet", output=said, env={"PATH": path})  # the first may not be run
    (tmp_path / "second" / "greet").unlink()
    (tmp_path / "first" / "greet").chmod(0o700)
    run_child("greet", output=said, env={"PATH": path})  # what was found is gone
    run_child("greet", output=said, env={"PATH": "first:/bin"}, cwd=str(tmp_path))
    assert said.read_text().split() == ["second", "first", "first"]
    with pytest.raises(FileNotFoundError) as caught:
        run_child("greet", output=said, env={"PATH": "/nowhere"})
    assert caught.value.filename == "greet"
