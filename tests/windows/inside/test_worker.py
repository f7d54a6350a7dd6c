"""A worker on Windows: commands in Job Objects, their arguments, output, limits and ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.host import processes
from svcq.jobs import State
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.windows.inside.homes import PYTHON, WindowsHome, lives, note_pid, pid_in

# What programs, cmd.exe and batch files might take for something else than letters.
HOSTILE = [
    "", " ", "a b", "tab\there", 'say "hi"', '"', '""', "\\", "a\\", 'a\\"b', "C:\\with space\\",
    "%PATH%", "%%", "%cd:~,%", "^", "a^b", "a&calc", "a|b", "<in", ">out", "(x)", "!PATH!", "@x",
    "*?", "'single'", "`tick`", "$env:PATH", ";,=", "\u00e9\u4e2d\U0001f600", "--x=%TEMP%&echo no",
]  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WindowsHome]:
    home = WindowsHome(tmp_path_factory.mktemp("shared"))
    home.worker("--slots", 4)
    yield home
    home.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[WindowsHome]:
    home = WindowsHome(tmp_path)
    yield home
    home.close()


def test_a_shell_line_runs_and_its_output_is_kept(shared: WindowsHome) -> None:
    job = shared.add("echo hello& echo world 1>&2")
    assert shared.ended(job).state is State.COMPLETED
    assert shared.output(job).split() == ["hello", "world"]


def test_quotes_in_a_shell_line_are_its_own(shared: WindowsHome) -> None:
    job = shared.add('echo "a b" & echo "c"')
    shared.ended(job)
    assert [line.strip() for line in shared.output(job).splitlines()] == ['"a b"', '"c"']


def test_the_exit_code_is_told(shared: WindowsHome) -> None:
    ended = shared.run("exit /b 7")
    assert (ended.state, ended.exit_code) == (State.DEAD, 7)
    large = shared.add_python("import os; os._exit(0xC0000005 - 2**32)")
    assert shared.ended(large).exit_code == 0xC0000005


def test_arguments_arrive_as_they_are(shared: WindowsHome) -> None:
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    job = shared.add_python(code, *HOSTILE)
    assert shared.ended(job).state is State.COMPLETED, shared.output(job)
    assert json.loads(shared.output(job)) == HOSTILE


def test_a_command_gets_its_own_variables_and_those_that_windows_needs(
    shared: WindowsHome,
) -> None:
    job = shared.add_python(
        "import os; print(os.environ['MINE'], os.path.isdir(os.environ['SYSTEMROOT']),"
        " os.environ['SVCQ_JOB'])",
        env={"Mine": "own"},
    )
    shared.ended(job)
    assert shared.output(job).split() == ["own", "True", str(job)]


def test_progress_and_result_are_heard(shared: WindowsHome) -> None:
    job = shared.add('echo 40 half> "%SVCQ_PROGRESS%" & echo {"a": 1}> "%SVCQ_RESULT%"')
    assert shared.ended(job).result == {"a": 1}


def test_a_program_that_is_not_there_is_named(shared: WindowsHome) -> None:
    ended = shared.run(["no-such-program-at-all"])
    assert (ended.exit_code, ended.error) == (127, "command not found: 'no-such-program-at-all'")


def test_a_file_that_is_no_program_is_named(shared: WindowsHome) -> None:
    file = shared.work / "text.exe"
    file.write_text("no program")
    ended = shared.run([str(file)])
    assert ended.exit_code == 126
    assert "not executable" in ended.error


def test_a_folder_that_is_gone_is_named(shared: WindowsHome, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    job = shared.add([PYTHON, "-c", "0"], cwd=str(folder), delay=1)
    folder.rmdir()
    ended = shared.ended(job)
    assert "is gone or closed to it" in ended.error


def test_a_terminal_is_refused_in_words(shared: WindowsHome) -> None:
    ended = shared.run([PYTHON, "-c", "0"], tty=True)
    assert "queue it without --tty" in ended.error


def test_cancel_ends_the_whole_tree(shared: WindowsHome, tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-S', '-c', {note_pid(child) + 'time.sleep(600)'!r}],"
        " creationflags=0x208)\n"  # detached, in a group of its own
        "time.sleep(600)"
    )
    job = shared.add_python(code)
    pid = pid_in(child)
    assert lives(pid)
    shared.client.cancel(job)
    assert shared.ended(job).state is State.CANCELLED
    assert not lives(pid)


def test_what_a_command_leaves_behind_ends_with_it(shared: WindowsHome, tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = (
        "import subprocess, sys, os, time\n"
        f"subprocess.Popen([sys.executable, '-S', '-c', {note_pid(child) + 'time.sleep(600)'!r}])\n"
        f"while not os.path.exists({str(child)!r}): time.sleep(0.01)"
    )
    assert shared.ended(shared.add_python(code)).state is State.COMPLETED
    assert not lives(pid_in(child))


def test_a_timeout_ends_it(shared: WindowsHome) -> None:
    ended = shared.ended(shared.add_python("import time; time.sleep(600)", timeout="300ms"))
    assert "longer than its timeout" in ended.error


def test_pause_and_resume(shared: WindowsHome, tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    job = shared.add_python(
        f"import time\nwhile True:\n  open({str(ticks)!r}, 'a').write('.')\n  time.sleep(0.02)"
    )
    eventually(lambda: ticks.exists() and ticks.stat().st_size > 3, PATIENCE)
    shared.client.suspend(job)
    eventually(lambda: _is_still(ticks), PATIENCE)
    before = ticks.stat().st_size
    shared.client.suspend(job, paused=False)
    eventually(lambda: ticks.stat().st_size > before, PATIENCE)
    shared.client.cancel(job)
    shared.ended(job)


def _is_still(file: Path) -> bool:
    before = file.stat().st_size
    try:
        eventually(lambda: file.stat().st_size > before, 0.3)
    except AssertionError:
        return True
    return False


def test_memory_is_limited(shared: WindowsHome) -> None:
    code = (
        "import time\nheld = bytearray(300 << 20)\n"
        "for n in range(0, len(held), 4096): held[n] = 1\ntime.sleep(600)"
    )
    ended = shared.ended(shared.add_python(code, memory="100MiB"))
    assert ended.state is State.DEAD
    assert "memory" in ended.error


@pytest.mark.parametrize(("nice", "wanted"), [(None, 0x4000), (0, 0x20), (19, 0x40)])
def test_priority(shared: WindowsHome, nice: int | None, wanted: int) -> None:
    code = "import win32process as w; print(w.GetPriorityClass(w.GetCurrentProcess()))"
    job = shared.add([PYTHON, "-c", code], nice=nice)
    shared.ended(job)
    assert shared.output(job).split() == [str(wanted)]


def test_processors_are_limited(shared: WindowsHome) -> None:
    code = (
        "import win32process as w; print(bin(w.GetProcessAffinityMask(w.GetCurrentProcess())[0]))"
    )
    job = shared.add([PYTHON, "-c", code], cpus=1)
    shared.ended(job)
    assert shared.output(job).strip().count("1") == 1


def test_the_tree_of_a_killed_worker_is_dead_before_the_job_runs_again(
    home: WindowsHome, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    worker = home.worker("--slots", 1)
    job = home.add_python(note_pid(first) + "time.sleep(600)", max_attempts=3)
    pid = pid_in(first)
    worker.kill()
    eventually(lambda: not lives(pid), PATIENCE)
    first.unlink()
    home.worker("--slots", 1)
    assert pid_in(first) != pid
    home.client.cancel(job)
    home.ended(job)
    assert home.client.runs(job)[0].how.value == "lost"


def test_a_worker_that_is_stopped_puts_its_jobs_back(home: WindowsHome, tmp_path: Path) -> None:
    started = tmp_path / "started"
    worker = home.worker("--slots", 1)
    job = home.add_python(note_pid(started) + "time.sleep(600)")
    pid = pid_in(started)
    assert home.svcq("worker", "stop", "--now").returncode == 0
    assert worker.ended() == 0
    found = home.client.get(job)
    assert (found.state, found.failures) == (State.PENDING, 0)
    assert not lives(pid)


def test_a_detached_worker_outlives_who_started_it(home: WindowsHome) -> None:
    said = home.svcq("worker", "start", "--slots", "1")
    assert said.returncode == 0, said.stdout + said.stderr
    assert home.run("echo done").state is State.COMPLETED
    assert home.svcq("worker", "stop").returncode == 0
    eventually(lambda: not home.client.workers(), PATIENCE)


def test_a_locked_file_is_free_when_all_who_have_it_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = processes.hold_lock(path)
    assert lock is not None
    assert processes.hold_lock(path) is None
    assert processes.lock_is_held(path)
    import os

    os.close(lock)
    assert not processes.lock_is_held(path)
    assert not processes.lock_is_held(tmp_path / "none")
