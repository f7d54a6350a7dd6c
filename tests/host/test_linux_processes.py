"""Processes on the real system: told apart, found, and ended for certain."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svcq.host import linux_processes as processes
from svcq.host.linux_bell import Bell, ring
from svcq.host.linux_processes import Exit, Seen
from tests.helpers import eventually

MARKER = f"7.1.{os.getpid()}"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that are ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start_it(*argv: str, **options: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(argv, **options))  # type: ignore[call-overload]
        return started[-1]

    yield start_it
    for process in started:
        process.kill()
        process.wait()


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


def test_a_process_is_known_by_when_it_was_started(start: Start) -> None:
    child = start("sleep", "600")
    born = processes.process_born(child.pid)
    assert born is not None
    assert born == processes.process_born(child.pid)
    assert int(born) >= int(processes.process_born(os.getpid()) or 0)


def test_one_that_is_gone_or_a_zombie_has_no_start() -> None:
    child = subprocess.Popen(["true"])
    eventually(lambda: processes.process_born(child.pid) is None)  # dead, and not yet waited for
    child.wait()
    assert processes.process_born(child.pid) is None


def test_a_name_full_of_parentheses_is_read(tmp_path: Path, start: Start) -> None:
    program = tmp_path / ") Z 1 (("
    program.symlink_to("/bin/sleep")
    child = start(str(program), "600")
    assert processes.process_born(child.pid) is not None


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


def test_limits_hold_from_the_first_instruction_and_for_us_not_at_all(tmp_path: Path) -> None:
    look = "import os; print(os.nice(0), len(os.sched_getaffinity(0)))"
    before = os.nice(0), os.sched_getaffinity(0)
    run_child(sys.executable, "-S", "-c", look, output=tmp_path / "log", nice=5, cpus=1)
    assert (tmp_path / "log").read_text().split() == [str(before[0] + 5), "1"]
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


# Trees


def pids(seen: list[Seen]) -> set[int]:
    return {one.pid for one in seen}


def test_a_tree_is_found_by_each_of_its_signs(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "lock"
    lock = processes.hold_lock(path)
    assert lock is not None
    marked = start("sleep", "600", env={"SVCQ_RUN": MARKER})
    leader = start("sleep", "600", start_new_session=True, env={})
    holder = start("sleep", "600", pass_fds=(lock,), env={})
    stranger = start("sleep", "600", env={"SVCQ_RUN": f"1{MARKER}"})
    os.close(lock)
    found = pids(processes.tree_of(MARKER, session=leader.pid, lock=path))
    assert found == {marked.pid, leader.pid, holder.pid}
    assert stranger.pid not in found


def test_children_belong_to_their_parents_tree(start: Start) -> None:
    code = "setsid env -i sleep 600 & wait"
    parent = start("sh", "-c", code, env={"SVCQ_RUN": MARKER, "PATH": os.environ["PATH"]})

    def both() -> list[Seen]:
        found = processes.tree_of(MARKER)
        return found if len(found) == 2 and _without_environment(found) else []

    found = eventually(both)
    # Its parent is gone, and nothing but an earlier look knows whose it was.
    parent.kill()
    parent.wait()
    assert processes.tree_of(MARKER) == []
    left = processes.tree_of(MARKER, known=found)
    assert len(left) == 1
    processes.signal_tree(left, signal.SIGKILL)
    eventually(lambda: processes.tree_of(MARKER, known=found) == [])


def _without_environment(found: list[Seen]) -> bool:
    return any(Path(f"/proc/{one.pid}/environ").read_bytes() == b"" for one in found)


def test_a_marker_fits_those_that_begin_with_it(start: Start) -> None:
    first = start("sleep", "600", env={"SVCQ_RUN": f"{MARKER}.1."})
    second = start("sleep", "600", env={"SVCQ_RUN": f"{MARKER}.11."})
    assert pids(processes.tree_of(f"{MARKER}.")) == {first.pid, second.pid}
    assert pids(processes.tree_of(f"{MARKER}.1.")) == {first.pid}


def test_a_signal_reaches_only_the_process_that_was_seen(start: Start) -> None:
    child = start("sleep", "600", env={"SVCQ_RUN": MARKER})
    (seen,) = processes.tree_of(MARKER)
    processes.signal_tree([seen._replace(born="1")], signal.SIGKILL)
    assert child.poll() is None
    processes.signal_tree([seen], signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    processes.signal_tree([seen], signal.SIGKILL)  # gone: nothing to do, and no error


def test_memory_in_use(start: Start) -> None:
    code = "x = bytearray(b'x') * (32 << 20); import time; time.sleep(600)"
    start(sys.executable, "-S", "-c", code, env={"SVCQ_RUN": MARKER})
    eventually(lambda: processes.resident_bytes(processes.tree_of(MARKER)) > 32 << 20)


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
