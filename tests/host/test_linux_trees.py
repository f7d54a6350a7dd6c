"""Processes on the real system: told apart, found by their signs, signalled."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

from svcq.host import linux_trees as trees
from svcq.host.linux_processes import hold_lock
from svcq.host.linux_trees import Seen
from tests.helpers import eventually
from tests.host.conftest import Start

MARKER = f"7.1.{os.getpid()}"


def test_a_process_is_known_by_when_it_was_started(start: Start) -> None:
    child = start("sleep", "600")
    born = trees.process_born(child.pid)
    assert born is not None
    assert born == trees.process_born(child.pid)
    assert int(born) >= int(trees.process_born(os.getpid()) or 0)


def test_one_that_is_gone_or_a_zombie_has_no_start() -> None:
    child = subprocess.Popen(["true"])
    eventually(lambda: trees.process_born(child.pid) is None)  # dead, and not yet waited for
    child.wait()
    assert trees.process_born(child.pid) is None


def test_a_name_full_of_parentheses_is_read(tmp_path: Path, start: Start) -> None:
    program = tmp_path / ") Z 1 (("
    program.symlink_to("/bin/sleep")
    child = start(str(program), "600")
    assert trees.process_born(child.pid) is not None


# Found


def pids(seen: list[Seen]) -> set[int]:
    return {one.pid for one in seen}


def test_a_tree_is_found_by_each_of_its_signs(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "lock"
    lock = hold_lock(path)
    assert lock is not None
    marked = start("sleep", "600", env={"SVCQ_RUN": MARKER})
    leader = start("sleep", "600", start_new_session=True, env={})
    holder = start("sleep", "600", pass_fds=(lock,), env={})
    stranger = start("sleep", "600", env={"SVCQ_RUN": f"1{MARKER}"})
    os.close(lock)
    found = pids(trees.tree_of(MARKER, session=leader.pid, lock=path))
    assert found == {marked.pid, leader.pid, holder.pid}
    assert stranger.pid not in found


def test_children_belong_to_their_parents_tree(start: Start) -> None:
    code = "setsid env -i sleep 600 & wait"
    parent = start("sh", "-c", code, env={"SVCQ_RUN": MARKER, "PATH": os.environ["PATH"]})

    def both() -> list[Seen]:
        found = trees.tree_of(MARKER)
        return found if len(found) == 2 and _without_environment(found) else []

    found = eventually(both)
    # Its parent is gone, and nothing but an earlier look knows whose it was.
    parent.kill()
    parent.wait()
    assert trees.tree_of(MARKER) == []
    left = trees.tree_of(MARKER, known=found)
    assert len(left) == 1
    trees.signal_tree(left, signal.SIGKILL)
    eventually(lambda: trees.tree_of(MARKER, known=found) == [])


def _without_environment(found: list[Seen]) -> bool:
    return any(Path(f"/proc/{one.pid}/environ").read_bytes() == b"" for one in found)


def test_a_marker_fits_those_that_begin_with_it(start: Start) -> None:
    first = start("sleep", "600", env={"SVCQ_RUN": f"{MARKER}.1."})
    second = start("sleep", "600", env={"SVCQ_RUN": f"{MARKER}.11."})
    assert pids(trees.tree_of(f"{MARKER}.")) == {first.pid, second.pid}
    assert pids(trees.tree_of(f"{MARKER}.1.")) == {first.pid}


def test_a_signal_reaches_only_the_process_that_was_seen(start: Start) -> None:
    child = start("sleep", "600", env={"SVCQ_RUN": MARKER})
    (seen,) = trees.tree_of(MARKER)
    trees.signal_tree([seen._replace(born="1")], signal.SIGKILL)
    assert child.poll() is None
    trees.signal_tree([seen], signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    trees.signal_tree([seen], signal.SIGKILL)  # gone: nothing to do, and no error


def test_memory_in_use(start: Start) -> None:
    code = "x = bytearray(b'x') * (32 << 20); import time; time.sleep(600)"
    start(sys.executable, "-S", "-c", code, env={"SVCQ_RUN": MARKER})
    eventually(lambda: trees.resident_bytes(trees.tree_of(MARKER)) > 32 << 20)


# Branded

TELL = "import os, resource; print(resource.getrlimit(10)[0], flush=True)"


def test_a_brand_is_for_what_is_started_meanwhile_and_for_all_that_it_starts() -> None:
    brand = trees.brand_of(MARKER)
    before = resource.getrlimit(10)
    argv = ["sh", "-c", f"setsid env -i {sys.executable} -S -c '{TELL}'; true"]
    with trees.branding(brand):
        branded = subprocess.run(argv, capture_output=True, check=True)
    after = subprocess.run(argv, capture_output=True, check=True)
    assert int(branded.stdout) == brand
    assert resource.getrlimit(10) == before
    assert int(after.stdout) == before[0]


def test_a_brand_finds_what_has_lost_all_else(start: Start) -> None:
    with trees.branding(trees.brand_of(MARKER)):
        lost = start("sleep", "600", env={}, start_new_session=True)
    other = start("sleep", "600", env={}, start_new_session=True)
    assert pids(trees.tree_of(MARKER)) == {lost.pid}
    assert trees.tree_of(MARKER, spared={lost.pid}) == []
    assert not trees.has_brand(other.pid, trees.brand_of(MARKER))
    assert not trees.has_brand(2**22 - 1, trees.brand_of(MARKER))


def test_no_two_runs_share_a_brand() -> None:
    brands = {trees.brand_of(f"{job}.{run}.store") for job in range(1000) for run in range(3)}
    assert len(brands) == 3000
    assert all(1 << 61 <= brand < 1 << 62 for brand in brands)


def test_where_a_lower_limit_was_set_it_does_without() -> None:
    code = (
        "import resource; from svcq.host import linux_trees as trees; brand = trees.brand_of('x')\n"
        "resource.setrlimit(10, (5, 5))\n"
        "import os; os.getuid() or (os.setgid(65534), os.setuid(65534))\n"
        "with trees.branding(brand): print(resource.getrlimit(10))\n"
        "print(resource.getrlimit(10))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "(5, 5)\n(5, 5)\n"
