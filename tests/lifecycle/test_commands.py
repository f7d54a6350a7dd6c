"""Commands: what they are given, and what becomes of how they end."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from svcq.jobs import Job
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home

SHOW_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def shown_environment(home: Home, **options: object) -> dict[str, str]:
    job = home.add_python(SHOW_ENVIRONMENT, **options)
    assert home.ended(job).state == "completed"
    return json.loads(home.output(job))


# What a command is given


def test_an_argv_reaches_the_program_word_by_word(shared: Home) -> None:
    words = ["a b", "", "'\"$HOME", "*", "grüße", "--", "-x"]
    job = shared.add_python("import sys; print(sys.argv[1:])", *words)
    assert shared.ended(job).exit_code == 0
    assert shared.output(job) == f"{words}\n"


def test_a_line_is_for_the_shell(shared: Home) -> None:
    job = shared.add("echo one | tr a-z A-Z; echo $((1 + 1)) >&2; exit 0")
    assert shared.ended(job).state == "completed"
    assert shared.output(job) == "ONE\n2\n"


def test_it_runs_in_the_directory_it_was_queued_for(shared: Home, tmp_path: Path) -> None:
    job = shared.add(["pwd"], cwd=str(tmp_path))
    shared.ended(job)
    assert shared.output(job).strip() == str(tmp_path)


def test_the_captured_environment_and_nothing_of_the_workers_own(home: Home) -> None:
    home.worker(env={"OF_THE_WORKER": "secret"})
    found = shown_environment(home, env={"PATH": os.environ["PATH"], "GREETING": "grüße"})
    ours = {name for name in found if name.startswith("SVCQ_")}
    # Python itself sets LC_CTYPE in a C locale.
    assert found.keys() - ours - {"LC_CTYPE"} == {"PATH", "GREETING", "PYTHONUNBUFFERED"}
    assert found["GREETING"] == "grüße"
    assert found["PYTHONUNBUFFERED"] == "1"
    assert ours == {"SVCQ_HOME", "SVCQ_JOB", "SVCQ_RUN", "SVCQ_PROGRESS", "SVCQ_RESULT"}
    assert found["SVCQ_HOME"] == str(home.path)


def test_it_knows_which_job_and_run_it_is(shared: Home) -> None:
    first, second = (shown_environment(shared) for _ in range(2))
    assert int(second["SVCQ_JOB"]) == int(first["SVCQ_JOB"]) + 1
    assert second["SVCQ_RUN"] != first["SVCQ_RUN"]
    assert second["SVCQ_RUN"].startswith(f"{second['SVCQ_JOB']}.1.")


def test_an_environment_may_say_that_python_buffers(shared: Home) -> None:
    assert shown_environment(shared, env={"PYTHONUNBUFFERED": ""})["PYTHONUNBUFFERED"] == ""


def test_stdin_is_empty(shared: Home) -> None:
    job = shared.add_python("import sys; print(repr(sys.stdin.read()))")
    shared.ended(job)
    assert shared.output(job) == "''\n"


def test_no_file_of_the_worker_is_open_in_it(shared: Home) -> None:
    job = shared.add(
        "for fd in /proc/self/fd/*; do readlink $fd; done | grep -v -e ^/proc -e ^pipe: | sort -u"
    )
    shared.ended(job)
    files = set(shared.output(job).split())
    # What it writes gets the name of a log later, or has it by now.
    lock, log = sorted(files - {"/dev/null"}, key=lambda file: "/logs/" in file)
    assert shared.path / "logs" in Path(log).parents
    assert Path(lock).parent == shared.path / "runs"


def test_signals_have_their_usual_meaning(shared: Home) -> None:
    # Python ignores SIGPIPE, which a pipeline needs to end.
    assert (
        shared.run("yes | head -1; grep -q 'SigIgn:.*0000000000000000' /proc/self/status").exit_code
        == 0
    )


def test_it_has_a_session_of_its_own(shared: Home) -> None:
    job = shared.add_python("import os; print(os.getpid(), os.getsid(0), os.getpgid(0))")
    shared.ended(job)
    assert len(set(shared.output(job).split())) == 1


def test_a_command_runs_below_normal_priority_unless_told_otherwise(shared: Home) -> None:
    # The worker does it once a command has come to stay, which may take a while on a busy machine.
    look = (
        "import os, sys, time; end = time.monotonic() + float(sys.argv[1])\n"
        "while os.nice(0) < 5 and time.monotonic() < end: time.sleep(0.01)\n"
        "print(os.nice(0))"
    )
    for options, seconds, expected in (({}, PATIENCE, max(5, os.nice(0))), ({"nice": 0}, 0.5, 0)):
        job = shared.add_python(look, seconds, **options)
        shared.ended(job)
        assert shared.output(job).strip() == str(expected)


def test_a_nice_value_and_cpus_hold_for_its_children_too(shared: Home) -> None:
    look = "import os; print(os.getpriority(os.PRIO_PROCESS, 0), len(os.sched_getaffinity(0)))"
    before = os.getpriority(os.PRIO_PROCESS, 0)
    job = shared.add(f"{sys.executable} -S -c '{look}'", nice=7, cpus=1)
    shared.ended(job)
    assert shared.output(job).split() == ["7", "1"]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
    after = shared.add_python(look)
    shared.ended(after)
    assert shared.output(after).split()[1] == str(len(os.sched_getaffinity(0)))


# How it ends


@pytest.mark.parametrize(
    ("code", "options", "state", "reason"),
    [
        (0, {}, "completed", None),
        (1, {}, "dead", "out of attempts"),
        (255, {}, "dead", "out of attempts"),
        (3, {"success": [0, 3]}, "completed", None),
        (0, {"success": [3]}, "dead", "out of attempts"),
        (64, {"reject": [64], "max_attempts": 5}, "dead", "rejected"),
        (75, {"retry_on": [75], "max_attempts": 2}, "dead", "out of attempts"),
        (76, {"retry_on": [75], "max_attempts": 5}, "dead", "rejected"),
    ],
)
def test_exit_codes(
    shared: Home, code: int, options: dict[str, object], state: str, reason: str | None
) -> None:
    ended = shared.run(f"exit {code}", **options)
    assert (ended.state, ended.exit_code, ended.reason) == (state, code, reason)
    if state == "dead":
        assert ended.error == f"ended with exit code {code}"


def test_a_failure_is_tried_again(shared: Home, tmp_path: Path) -> None:
    ended = shared.run(f"echo x >> {tmp_path}/tries; exit 9", max_attempts=3)
    assert (ended.state, ended.failures, ended.run) == ("dead", 3, 3)
    assert (tmp_path / "tries").read_text() == "x\n" * 3
    assert [run.exit_code for run in shared.client.runs(ended)] == [9, 9, 9]


def test_a_signal_is_a_negative_exit_code(shared: Home) -> None:
    ended = shared.run("kill -SEGV $$")
    assert (ended.state, ended.exit_code, ended.error) == ("dead", -11, "ended by signal 11")


def test_the_last_lines_are_kept_with_the_run(shared: Home) -> None:
    ended = shared.run("seq 1 100; exit 1")
    assert shared.last_run(ended.id).tail == "\n".join(map(str, range(81, 101)))


def failed(home: Home, command: list[str] | str, **options: object) -> Job:
    ended = home.run(command, **options)
    assert ended.state == "dead"
    assert "svcq itself failed" not in str(ended.error)
    assert "Traceback" not in str(ended.error)
    return ended


def test_a_command_that_is_not_found(shared: Home) -> None:
    ended = failed(shared, ["no-such-program", "x"])
    assert (ended.exit_code, ended.error) == (127, "command not found: 'no-such-program'")
    assert failed(shared, "no-such-program").exit_code == 127  # the shell says so itself


def test_a_command_that_is_not_executable(shared: Home, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    ended = failed(shared, [str(script)])
    assert (ended.exit_code, ended.error) == (126, f"not executable: {str(script)!r}")
    assert failed(shared, [str(tmp_path)]).exit_code == 126


def test_a_file_that_is_no_program(shared: Home, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_bytes(b"\x7fELF of another machine")
    script.chmod(0o700)
    assert "Exec format error" in str(failed(shared, [str(script)]).error)


def test_a_script_whose_interpreter_is_missing(shared: Home, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o700)
    assert failed(shared, [str(script)]).exit_code == 127


def test_a_directory_that_is_gone(shared: Home, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    job = shared.add(["true"], cwd=str(folder), delay=0.5)
    folder.rmdir()
    ended = shared.ended(job)
    assert ended.error == f"could not start: its directory {str(folder)!r} is gone or closed to it"
    assert ended.state == "dead"


def test_a_directory_that_has_become_a_file(shared: Home, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    job = shared.add(["true"], cwd=str(folder), delay=0.5)
    folder.rmdir()
    folder.touch()
    assert "is gone or closed to it" in str(shared.ended(job).error)


def test_an_argument_list_that_is_too_long(shared: Home) -> None:
    assert "Argument list too long" in str(failed(shared, ["true", "x" * 200_000]).error)


def test_what_it_used_is_kept(shared: Home) -> None:
    code = "x = bytearray(b'x') * (64 << 20); sum(range(3_000_000))"
    run = shared.last_run(shared.ended(shared.add_python(code)).id)
    assert (run.cpu_ms or 0) > 10
    assert (run.peak_bytes or 0) > 64 << 20
    shown = shared.svcq("show", run.job).stdout
    assert re.search(r"^cpu time +\d+m?s", shown, re.MULTILINE)
    assert re.search(r"^memory +\d+ MiB at most$", shown, re.MULTILINE)
    *_, heads, row = shown.splitlines()
    assert ("CPU" in heads.split(), "MEMORY" in heads.split()) == (True, True)
    assert re.search(r" \d+m?s +\d+ MiB ", row)


# Progress and result


def test_progress_is_told_while_it_runs(shared: Home, tmp_path: Path) -> None:
    job = shared.add(
        'echo "40 encoding a film" > "$SVCQ_PROGRESS"; '
        f"until [ -e {tmp_path}/go ]; do sleep 0.02; done"
    )
    eventually(lambda: shared.client.get(job).progress == 0.4, PATIENCE)
    assert shared.client.get(job).progress_note == "encoding a film"
    (tmp_path / "go").touch()
    assert shared.ended(job).state == "completed"


@pytest.mark.parametrize("said", ["400", "nan", "-1", "half", "", "inf"])
def test_progress_that_makes_no_sense_is_left_out(shared: Home, said: str) -> None:
    ended = shared.run(f'echo "{said}" > "$SVCQ_PROGRESS"')
    assert (ended.state, ended.progress) == ("completed", None)


@pytest.mark.parametrize(
    ("written", "result"),
    [
        (b'{"frames": 12}', {"frames": 12}),
        (b" [1, 2]\n", [1, 2]),
        (b"plain text\n", "plain text"),
        (b"NaN", "NaN"),
        (b"\xff\xfe", "��"),
        (b"a\0b", "a�b"),
        ("grüße".encode(), "grüße"),
        (b"", None),
        (b" \n", None),
        (b"null", None),
        (b"[" * 100_000, "[" * 100_000),
        (b"1" * 5000, "1" * 5000),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_result_is_json_or_text(
    shared: Home, tmp_path: Path, written: bytes, result: object
) -> None:
    (tmp_path / "given").write_bytes(written)
    ended = shared.run(f'cp {tmp_path}/given "$SVCQ_RESULT"')
    assert (ended.state, ended.result) == ("completed", result)


def test_a_result_that_is_too_large_fails_with_a_sentence(shared: Home) -> None:
    ended = failed(shared, 'head -c 2000000 /dev/zero | tr "\\0" x > "$SVCQ_RESULT"')
    assert "over 1,048,576 bytes" in str(ended.error)


def test_a_result_with_half_a_character_fails_with_a_sentence(shared: Home) -> None:
    ended = failed(shared, """printf '"\\\\ud800"' > "$SVCQ_RESULT" """)
    assert "lone surrogate" in str(ended.error)


@pytest.mark.parametrize("name", ["SVCQ_RESULT", "SVCQ_PROGRESS"])
@pytest.mark.parametrize("made", ["mkfifo", "ln -s /dev/zero", "mkdir", "ln -s /dev/tty"])
def test_what_is_put_in_the_place_of_its_files_harms_nobody(
    shared: Home, name: str, made: str
) -> None:
    ended = shared.run(f'{made} "${name}"')
    assert (ended.state, ended.result, ended.progress) == ("completed", None, None)
    assert not list((shared.path / "runs").glob("*.*.*"))


# Limits


def test_a_timeout_ends_it(shared: Home) -> None:
    ended = shared.run(["sleep", "600"], timeout=0.2)
    assert (ended.state, ended.reason) == ("dead", "timed out")
    assert ended.error == "ran longer than its timeout of 200ms"


def test_memory_over_its_limit_ends_it(shared: Home) -> None:
    hog = "import time; x = bytearray(b'x') * (300 << 20); time.sleep(600)"
    ended = shared.ended(shared.add_python(hog, memory="100M"))
    assert ended.state == "dead"
    assert str(ended.error).startswith("used ")
    assert str(ended.error).endswith("MiB of memory, over its 100")


def test_a_thousand_short_commands(home: Home, tmp_path: Path) -> None:
    home.worker("--slots", 4)
    new = [
        home.client.new_command(["sh", "-c", f"echo {n} >> {tmp_path}/done"], cwd=str(tmp_path))
        for n in range(1000)
    ]
    home.client.add(new)
    eventually(lambda: home.client.counts()["completed"] == 1000, 60)
    assert sorted(map(int, (tmp_path / "done").read_text().split())) == list(range(1000))
    assert len(os.listdir(home.path / "runs")) <= 4
