"""Output goes straight from the process to its file, however much it is and whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from svcq.logs import read_log
from tests.helpers import eventually
from tests.lifecycle import sample
from tests.lifecycle.homes import PATIENCE, Home

GIB = 1 << 30


def test_two_gigabytes_with_the_middle_dropped(shared: Home) -> None:
    job = shared.add(
        "echo first; head -c 2G /dev/zero | tr '\\0' x; echo; echo last", max_output="1M"
    )
    assert shared.ended(job).state == "completed"
    status = shared.log(job).stat()
    assert status.st_size > 2 * GIB
    assert status.st_blocks * 512 < 2 << 20
    text = b"".join(read_log(shared.log(job)))
    assert len(text) < 2 << 20
    assert text.startswith(b"first\nxxx")
    assert text.endswith(b"xxx\nlast\n")
    assert b"bytes dropped: the output was over its limit" in text
    assert b"\0" not in text
    assert str(shared.last_run(job).tail).endswith("\nlast")


def test_output_over_its_limit_ends_the_job(shared: Home) -> None:
    ended = shared.run(["yes"], max_output="1M", when_over="end")
    assert ended.state == "dead"
    assert str(ended.error).endswith("bytes of output, over its 1,048,576")
    assert shared.log(ended.id).stat().st_blocks * 512 < 2 << 20


def test_a_task_that_prints_over_its_limit(shared: Home) -> None:
    kept = shared.call(sample.print_much.options(max_output="100K"), 50_000)
    assert kept.state == "completed"
    ended = shared.call(sample.print_for_ever.options(max_output="1M", when_over="end"))
    assert ended.state == "dead"
    assert "bytes of output, over its 1,048,576" in str(ended.error)


HOSTILE = (
    b"\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m\r\n"
    b"\xff\xfe\xc3\x28 not utf-8\n\0\0 nul\n<script>alert(1)</script>\n\x9b31m\n"
    b"\xe2\x80\xae reversed \xe2\x80\x8b"
)


def test_hostile_output_is_kept_byte_by_byte(shared: Home, tmp_path: Path) -> None:
    (tmp_path / "hostile").write_bytes(HOSTILE)
    ended = shared.run(["cat", str(tmp_path / "hostile")])
    assert ended.state == "completed"
    assert shared.log(ended.id).read_bytes() == HOSTILE
    tail = str(shared.last_run(ended.id).tail)
    assert "\0" not in tail
    assert "<script>" in tail


def test_a_line_without_end(shared: Home) -> None:
    ended = shared.run("head -c 10000000 /dev/zero | tr '\\0' x; exit 1")
    assert set(str(shared.last_run(ended.id).tail)) == {"x"}
    assert len(str(shared.last_run(ended.id).tail)) <= 8192


def test_it_flows_while_the_worker_stands_still(home: Home, tmp_path: Path) -> None:
    worker = home.worker()
    job = home.add(f"echo one; until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo two")
    eventually(lambda: home.log(job).exists() and home.output(job) == "one\n", PATIENCE)
    worker.signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    eventually(lambda: home.output(job) == "one\ntwo\n", PATIENCE)
    assert home.is_running(job)
    worker.signal(signal.SIGCONT)
    assert home.ended(job).state == "completed"


def test_python_does_not_hold_it_back(shared: Home) -> None:
    code = "print('early'); import sys, time; time.sleep(600)"
    job = shared.add_python(code)
    eventually(lambda: shared.log(job).exists() and shared.output(job) == "early\n", PATIENCE)
    shared.client.cancel(job)
    shared.ended(job)


def test_the_log_is_its_owners_alone(shared: Home) -> None:
    ended = shared.run("echo secret")
    assert shared.log(ended.id).stat().st_mode & 0o777 == 0o600
    assert shared.log(ended.id).parent.stat().st_mode & 0o777 == 0o700


def test_each_run_has_a_log_of_its_own(shared: Home) -> None:
    ended = shared.run('echo "$SVCQ_RUN"; exit 1', max_attempts=2)
    assert shared.output(ended.id, 1) != shared.output(ended.id, 2)


def test_a_terminal(shared: Home) -> None:
    look = "import os, sys; print(os.isatty(0), os.isatty(1), os.isatty(2), os.environ['TERM'])"
    job = shared.add_python(look, tty=True, env={"PATH": os.environ["PATH"]})
    assert shared.ended(job).state == "completed"
    assert shared.log(job).read_bytes() == b"True True True xterm-256color\r\n"
    plain = shared.add_python("import os; print(os.isatty(1))")
    shared.ended(plain)
    assert shared.output(plain) == "False\n"


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ({}, "24 80"),
        ({"COLUMNS": "132", "LINES": "50"}, "50 132"),
        ({"COLUMNS": "0", "LINES": "many"}, "24 80"),
        ({"COLUMNS": "99999"}, "24 80"),
    ],
)
def test_a_terminal_has_a_size(shared: Home, said: dict[str, str], size: str) -> None:
    job = shared.add("stty size", tty=True, env={"PATH": os.environ["PATH"], **said})
    assert shared.ended(job).state == "completed"
    assert shared.output(job).strip() == size


def test_all_that_is_written_to_a_terminal_arrives(shared: Home) -> None:
    ended = shared.run("seq 1 20000", tty=True)
    assert shared.output(ended.id).split() == [str(n) for n in range(1, 20001)]


# When there is no place for it


def test_a_log_directory_deleted_under_a_running_job(home: Home, tmp_path: Path) -> None:
    home.worker_with_tasks()
    job = home.add(f"echo one; until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo two")
    eventually(lambda: home.log(job).exists() and home.output(job) == "one\n", PATIENCE)
    shutil.rmtree(home.path / "logs")
    eventually(home.log(job).exists, PATIENCE)  # while it still runs
    assert home.output(job) == "one\n"
    (tmp_path / "go").touch()
    assert home.ended(job).state == "completed"
    assert home.output(job) == "one\ntwo\n"
    assert home.last_run(job).tail == "one\ntwo"
    after = home.add("echo after")
    assert home.ended(after).state == "completed"
    assert home.output(after) == "after\n"
    assert home.call(sample.add, 1, 2).result == 3


def test_whoever_follows_a_log_goes_on_when_it_is_deleted(home: Home, tmp_path: Path) -> None:
    home.worker()
    job = home.add(f"echo one; until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo two; sleep 1")
    eventually(lambda: home.log(job).exists() and home.output(job) == "one\n", PATIENCE)
    follower = home.start("log", "-f", job)
    eventually(lambda: home.said().endswith("one\n"), PATIENCE)
    shutil.rmtree(home.path / "logs")
    (tmp_path / "go").touch()
    assert follower.wait(PATIENCE) == 0
    assert home.said().endswith("one\ntwo\n")
    assert "Traceback" not in home.said()


@pytest.mark.parametrize("task", [sample.speak_then_wait, sample.speak_then_wait_async])
def test_a_log_directory_deleted_under_a_running_task(
    home: Home, tmp_path: Path, task: Any
) -> None:
    home.worker_with_tasks()
    job = home.client.enqueue(task, str(tmp_path / "go")).id
    eventually(lambda: home.log(job).exists() and home.output(job), PATIENCE)
    shutil.rmtree(home.path / "logs")
    (tmp_path / "go").touch()
    assert home.ended(job).state == "completed"
    assert home.output(job) == "before the wait\nafter it\n"
    assert home.last_run(job).tail == "before the wait\nafter it"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB: mounted by root, in a namespace of their own for everyone else."""
    folder = tmp_path / "small"
    folder.mkdir(mode=0o700)
    options = "size=2m,nr_inodes=200,mode=0700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "svcq-test", folder],
        capture_output=True,
        check=False,
    )
    holder = None
    if mounted.returncode:
        mount = f"mount -t tmpfs -o {options} none {folder} && echo up && exec sleep 600"
        holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount],
            stdout=subprocess.PIPE,
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        folder = Path(f"/proc/{holder.pid}/root{folder}")
    yield folder
    if holder is None:
        subprocess.run(["umount", "--lazy", folder], check=True)
    else:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_a_full_disk_under_the_log(home: Home, small_disk: Path) -> None:
    (home.path / "logs").symlink_to(small_disk)
    home.worker_with_tasks()
    full = f"the disk under {home.path}/logs is full: free some space"
    # Who does not mind completes, and what became of its output is said beside.
    unmoved = home.run("head -c 9M /dev/zero 2>&1; exit 0")
    assert unmoved.state == "completed"
    assert home.last_run(unmoved.id).error == f"its output may be cut short: {full}"
    fill = "import os\nfor _ in range(50): os.write(1, b'x' * 100_000)"
    ended = home.ended(home.add_python(fill))
    assert ended.state == "dead"
    # It was told that there is no space, as anyone would be; that it ended for it is for us to say.
    assert (ended.exit_code, ended.error) == (1, f"ended with exit code 1; {full}")
    assert full in home.svcq("why", ended.id).stdout
    # Nothing of svcq itself breaks, and what needs no space still runs.
    task = home.call(sample.print_much, 100_000)
    assert task.state == "dead"
    assert str(task.error) == f"OSError: [Errno 28] No space left on device; {full}"
    assert home.call(sample.add, 1, 2).result == 3
    assert home.run(["true"]).state == "completed"
    for file in small_disk.rglob("*.log"):
        file.unlink()
    after = home.add("echo after")
    assert home.ended(after).state == "completed"
    assert home.output(after) == "after\n"
    assert home.run("exit 3").error == "ended with exit code 3"


def test_a_disk_without_room_for_another_log(home: Home, small_disk: Path, tmp_path: Path) -> None:
    """Nothing starts, nothing fails, and what waits goes on when there is room again."""
    (home.path / "logs").symlink_to(small_disk)
    home.worker_with_tasks()
    assert home.call(sample.add, 1, 2).result == 3  # its runner has a log, too
    assert home.run("echo x").state == "completed"
    fill_up(small_disk)
    command = home.add(f"echo x >> {tmp_path}/ran")
    task = home.client.enqueue(sample.add, 1, 2).id
    for job in (command, task):
        eventually(lambda job=job: home.client.get(job).state == "scheduled", PATIENCE)
        found = home.client.get(job)
        assert (found.failures, found.snoozes) == (0, 1)
        assert str(found.error).startswith("could not start: the disk has no room for ")
        said = home.svcq("why", job).stdout
        assert "it could not start: the disk has no room for" in said
        assert "free some space; its time is in" in said
    assert not (tmp_path / "ran").exists()
    for file in small_disk.glob("filler-*"):
        file.unlink()
    assert home.ended(command).state == "completed"
    assert home.ended(task).result == 3
    assert (tmp_path / "ran").read_text() == "x\n"


def fill_up(disk: Path) -> None:
    """Until no file can be made: there are fewer places for files than there is room in them."""
    with suppress(OSError):
        for number in range(1000):
            (disk / f"filler-{number}").touch()
    with pytest.raises(OSError, match="No space left"):
        (disk / "one-more").touch()


def test_a_log_that_cannot_be_made(home: Home) -> None:
    """As where there is no room: nothing fails, and all goes on when there is a place again."""
    home.worker_with_tasks()
    assert home.call(sample.add, 1, 2).result == 3
    shutil.rmtree(home.path / "logs")
    (home.path / "logs").touch()
    command = home.add("echo at last")
    task = home.client.enqueue(sample.add, 1, 2).id
    for job in (command, task):
        eventually(lambda job=job: home.client.get(job).state == "scheduled", PATIENCE)
        found = home.client.get(job)
        assert (found.failures, found.snoozes) == (0, 1)
        why = f"could not start: its output has no place (Not a directory: {home.path}/logs"
        assert str(found.error).startswith(why)
    said = home.svcq("doctor").stdout
    assert f"{home.path}/logs is no directory, so no job can start: move" in said
    (home.path / "logs").unlink()
    assert home.ended(command).state == "completed"
    assert home.output(command, 2) == "at last\n"
    assert home.ended(task).result == 3


# A log has no name until there is something to find in it


def test_what_writes_nothing_leaves_no_file(home: Home) -> None:
    home.worker("--slots", 1)
    for _ in range(3):
        silent = home.run(["true"])
        assert silent.state == "completed"
        assert not home.log(silent.id).exists()
    said = home.svcq("log", silent.id)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
    loud = home.run("echo one")
    assert home.output(loud.id) == "one\n"
    after = home.run("echo two")
    assert home.output(after.id) == "two\n"
    assert home.output(loud.id) == "one\n"
    files = set((home.path / "logs" / "0").iterdir())
    assert files == {home.log(loud.id), home.log(after.id)}


def test_the_file_of_one_that_was_ended_is_nobody_elses(home: Home) -> None:
    """Whoever got away from it may have it open."""
    home.worker("--slots", 1)
    failed = home.run("exit 3")
    new = home.path / "logs" / "new"
    eventually(lambda: list(new.iterdir()) == [], PATIENCE)
    assert not home.log(failed.id).exists()
    assert home.run(["true"]).state == "completed"
    assert len(list(new.iterdir())) == 1


def test_what_a_dead_worker_had_not_named_is_found(home: Home, tmp_path: Path) -> None:
    """It stands still before it could look, and dies; meanwhile its command goes on writing."""
    worker = home.worker("--slots", 1)
    job = home.add(
        f"echo one; kill -STOP {worker.pid}; echo two; touch {tmp_path}/said; sleep 600",
        max_losses=0,
    )
    eventually((tmp_path / "said").exists, PATIENCE)
    assert not home.log(job).exists()
    worker.kill()
    home.worker("--queue", "none")
    assert home.ended(job).state == "dead"
    assert home.output(job) == "one\ntwo\n"
    assert list((home.path / "logs" / "new").iterdir()) == []


def test_a_worker_that_ends_takes_its_nameless_files_along(home: Home) -> None:
    worker = home.worker("--slots", 1)
    assert home.run(["true"]).state == "completed"
    worker.signal(signal.SIGTERM)
    eventually(lambda: home.client.workers() == [], PATIENCE)
    assert list((home.path / "logs" / "new").iterdir()) == []
