"""svcq as a service of a whole machine, under a real systemd: jobs feel neither what happens to the
service nor its hardening, and nobody else comes in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from svcq.host.linux_units import HARDENED
from tests.helpers import eventually
from tests.linux.machine import Machine
from tests.linux.namespaces import PATIENCE
from tests.linux.program import PLACE, packages
from tests.linux.system import HOME, SVCQ, UNITS, System

SOCKET = "svcq-worker.socket"
ALL_UNITS = ("svcq.service", SOCKET, "svcq-worker@.service")


# Installing


def nothing_was_left(machine: Machine) -> None:
    assert not machine.path(UNITS / "svcq.service").exists()
    assert machine.run("getent", "passwd", "svcq", check=False).returncode == 2


def test_only_an_administrator_may_install_it(bare: System) -> None:
    said = bare.refused(5, "install", "--system", user="alice")
    assert "use sudo" in said
    nothing_was_left(bare.machine)


@pytest.mark.parametrize(
    ("harm", "heal", "why"),
    [
        ("chmod o+w {place}", "chmod o-w {place}", "may be written by others (mode 0757)"),
        ("chmod g+w {code}; chgrp alice {code}", "chmod g-w {code}", "may be written by others"),
        ("chown alice {code}/cli/add.py", "chown root {code}/cli/add.py", "belongs to alice"),
        ("chown -h alice {place}/bin/python", "chown -h root {place}/bin/python", "to alice"),
        ("chmod o+w /opt", "chmod o-w /opt", "because /opt may be written by others"),
        ("chmod 700 {place}", "chmod 755 {place}", "Not every account can run svcq"),
    ],
)
def test_a_program_that_others_could_replace_is_refused(
    bare: System, harm: str, heal: str, why: str
) -> None:
    names = {"place": PLACE, "code": packages(PLACE) / "svcq"}
    bare.machine.shell(harm.format(**names))
    try:
        assert why in bare.refused(1, "install", "--system")
    finally:
        bare.machine.shell(heal.format(**names))
    nothing_was_left(bare.machine)


def test_a_program_in_a_home_is_refused(bare: System) -> None:
    bare.machine.shell(f"mkdir -p /home/tools; cp -a {PLACE} /home/tools/svcq")
    words = ["/home/tools/svcq/bin/python", *SVCQ[1:], "install", "--system"]
    ran = bare.machine.run(*words, check=False)
    assert ran.returncode == 1
    assert "is in a home directory" in ran.stderr
    nothing_was_left(bare.machine)


@pytest.mark.parametrize(
    "make",
    [
        "mkdir {home}; chown alice {home}",
        "ln -s /home/alice {home}; chown -h alice {home}",
        "ln -s /etc {home}",
        "touch {home}",
    ],
)
def test_a_folder_of_someone_else_is_refused(bare: System, make: str) -> None:
    bare.machine.shell(make.format(home=HOME))
    try:
        assert f"{HOME} " in bare.refused(1, "install", "--system")
        nothing_was_left(bare.machine)
    finally:
        bare.machine.run("rm", "-r", HOME)


def test_an_account_of_a_person_is_refused(bare: System) -> None:
    bare.machine.run("useradd", "--shell", "/bin/bash", "svcq")
    try:
        said = bare.refused(1, "install", "--system")
        assert "someone may log in to it" in said
        assert not bare.is_installed()
    finally:
        bare.machine.run("userdel", "svcq")


def test_installed_it_says_what_it_cannot_see(bare: System) -> None:
    said = bare.svcq("install", "--system")
    for words in ("your files", "your PATH", "your devices", str(HOME), "svcq --system"):
        assert words in said
    eventually(lambda: bare.workers(state="running"), PATIENCE)
    machine = bare.machine
    assert machine.systemctl("is-enabled", "svcq.service") == "enabled"
    assert machine.run("stat", "-c", "%U %a", HOME).stdout == "svcq 700\n"
    assert machine.run("stat", "-c", "%U %a", "/run/svcq/worker").stdout == "svcq 600\n"
    ran = machine.run("systemd-analyze", "verify", *(UNITS / unit for unit in ALL_UNITS))
    assert (ran.stdout, ran.stderr) == ("", "")
    judged = machine.run("systemd-analyze", "security", "svcq.service", check=False).stdout
    (exposure,) = re.findall(r"exposure level for svcq.service: ([\d.]+)", judged)
    assert float(exposure) <= 2.0
    assert "The service runs" in bare.svcq("status", "--system")
    assert bare.svcq("install", "--system").count("Made the account") == 0  # a second time


# Who may speak to it


def test_root_and_the_account_may_and_nobody_else(system: System) -> None:
    assert "svcq user add alice" in system.refused(5, "--system", "list", user="alice")
    for command in ("start", "stop", "restart", "uninstall"):
        assert "use sudo" in system.refused(5, command, "--system", user="alice")
    assert system.say("list", user="svcq") == system.say("list")
    job = int(system.say("add", "--", "id", "-un", user="svcq"))
    system.ended(job)
    assert system.output(job) == "svcq\n"


def test_root_is_the_account_before_it_opens_anything(system: System) -> None:
    tell = "import os; print(os.getresuid(), os.getresgid(), os.getgroups())"
    # Whatever root has in its session stays there; /root is no place for the account.
    session = ["SECRET=root's", "LD_DEBUG_OUTPUT=/x", f"SVCQ_STORE={HOME}/other.db"]
    words = ["env", "--chdir=/root", *session, *SVCQ, "--system", "add", "--"]
    added = system.machine.run(*words, "/usr/bin/python3", "-c", tell)
    job = int(added.stdout)
    assert system.ended(job)["command"][0] == "/usr/bin/python3"
    uid = system.machine.uid("svcq")
    assert system.output(job) == f"({uid}, {uid}, {uid}) ({uid}, {uid}, {uid}) [{uid}]\n"
    shown = json.dumps(system.json("show", "--env", job))
    assert "SECRET" not in shown
    assert "LD_DEBUG_OUTPUT" not in shown
    assert f"directory  {HOME}" in system.say("show", job)
    assert not system.machine.path(HOME / "other.db").exists()
    owners = system.machine.run("find", HOME, "!", "-user", "svcq").stdout
    assert owners == ""


def test_a_directory_that_the_account_may_enter_is_kept(system: System) -> None:
    words = ["env", "--chdir=/srv", *SVCQ, "--system", "add", "--", "pwd"]
    job = int(system.machine.run(*words).stdout)
    system.ended(job)
    assert system.output(job) == "/srv\n"


# What a job feels

JIT = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes([0xb8, 42, 0, 0, 0, 0xc3]))  # mov eax, 42; ret
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
"""
DEVICES = """
import os, pty
for device in ("/dev/null", "/dev/urandom", "/dev/zero"):
    with open(device, "r+b", buffering=0) as file:
        file.read(1)
master, slave = pty.openpty()
os.write(slave, b"hello")
print(os.read(master, 5).decode())
"""


def test_a_job_feels_no_sandbox(system: System) -> None:
    system.machine.run("install", "-d", "-o", "svcq", "/srv/results")
    system.run("--shell", "echo done > /srv/results/done")
    assert system.machine.path("/srv/results/done").read_text() == "done\n"
    assert system.run("--", "/usr/bin/python3", "-c", JIT) == "42\n"
    assert system.run("--", "/usr/bin/python3", "-c", DEVICES) == "hello\n"
    assert system.run("--tty", "--", "tty").startswith("/dev/pts/")
    status = system.run("--", "cat", "/proc/self/status", "/proc/self/cgroup")
    assert "NoNewPrivs:\t0" in status
    assert "Seccomp:\t0" in status
    assert "/svcq-worker@" in status
    # A file in /tmp is where everybody sees it.
    system.run("--", "touch", "/tmp/of-a-job")
    assert system.machine.path("/tmp/of-a-job").exists()
    # Whereas the service itself could do none of that.
    status = system.machine.path(f"/proc/{system.pid()}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status


def test_a_job_that_takes_all_its_memory_dies_alone(system: System) -> None:
    waiting = system.begin()
    before = [worker["id"] for worker in system.workers()]
    greedy = system.add(
        "--memory", "50M", "--max-attempts", "1", "--",
        "/usr/bin/python3", "-c", "import time; x = b'x' * (200 << 20); time.sleep(60)",
    )  # fmt: skip
    ended = system.ended(greedy)
    assert ended["state"] == "dead"
    assert "of memory, over its 50" in ended["error"]
    assert [worker["id"] for worker in system.workers()] == before
    waiting.finish()


# What happens to the service


def test_a_restart_leaves_jobs_alone(system: System) -> None:
    waiting, pid = system.begin(), system.pid()
    before = system.workers()
    assert "what was running goes on" in system.svcq("restart", "--system")
    assert system.pid() != pid
    assert [(w["id"], w["state"]) for w in system.workers()] == [(before[0]["id"], "running")]
    waiting.finish()


def test_a_killed_service_comes_back_and_adopts_its_workers(system: System) -> None:
    waiting, pid = system.begin(), system.pid()
    before = system.workers()
    system.machine.run("kill", "-9", pid)
    system.comes_back(pid)
    assert [worker["id"] for worker in system.workers()] == [before[0]["id"]]
    waiting.finish()
    assert "crashed once" in system.machine.run(*SVCQ, "doctor", "--system", check=False).stdout


def test_a_service_that_hangs_is_started_anew(system: System) -> None:
    folder = system.machine.path(UNITS / "svcq.service.d")
    folder.mkdir()
    (folder / "soon.conf").write_text("[Service]\nWatchdogSec=6\nTimeoutAbortSec=1\n")
    try:
        system.machine.systemctl("daemon-reload")
        system.svcq("restart", "--system")
        waiting, pid = system.begin(), system.pid()
        system.machine.run("kill", "-STOP", pid)
        system.comes_back(pid)
        waiting.finish()
    finally:
        (folder / "soon.conf").unlink()
        folder.rmdir()
        system.machine.systemctl("daemon-reload")


def test_a_worker_that_dies_is_replaced_and_its_job_runs_again(system: System) -> None:
    waiting = system.begin()
    (worker,) = system.workers()
    system.machine.run("kill", "-9", worker["pid"])
    waiting.has_begun(2)
    ended = waiting.let_go()
    assert (ended["state"], ended["failures"]) == ("completed", 0)


def test_after_a_stop_jobs_finish_and_nothing_new_begins(system: System) -> None:
    waiting = system.begin()
    assert "1 job that runs goes on to its end" in system.svcq("stop", "--system")
    left = system.add("true")
    waiting.finish()
    eventually(lambda: system.workers() == [], PATIENCE)
    assert system.job(left)["state"] == "pending"
    assert "does not run" in system.say("status")
    system.svcq("start", "--system")
    assert system.ended(left)["state"] == "completed"


def test_stopped_now_jobs_go_back(system: System) -> None:
    waiting = system.begin()
    assert "goes back" in system.svcq("stop", "--system", "--now")
    eventually(lambda: system.job(waiting.job)["state"] == "pending", PATIENCE)
    system.svcq("start", "--system")
    waiting.went_on()


@pytest.mark.parametrize("how", ["reboot", "power cut"])
def test_the_machine_goes_down_and_jobs_go_on_afterwards(system: System, how: str) -> None:
    waiting = system.begin()
    if how == "reboot":
        system.machine.reboot()
    else:
        system.machine.cut_power()
        system.machine.boot()
    (run,) = [one for one in waiting.went_on()["runs"] if one["run"] == 1]
    assert run["how"] == "interrupted"


# Workers without units of their own


@pytest.fixture
def without_socket(system: System) -> Iterator[System]:
    """systemd starts no workers for the service, which runs none now."""
    machine = system.machine
    system.svcq("stop", "--system")
    eventually(lambda: system.workers() == [], PATIENCE)
    machine.shell(f"systemctl stop {SOCKET}; mv {UNITS / SOCKET} /root; systemctl daemon-reload")
    yield system
    if not machine.path(UNITS / SOCKET).exists():
        machine.shell(f"mv /root/{SOCKET} {UNITS}; systemctl daemon-reload")
    system.svcq("stop", "--system", "--now")
    eventually(lambda: system.workers() == [], PATIENCE)


def test_rather_than_in_the_sandbox_jobs_wait(without_socket: System) -> None:
    system = without_socket
    system.svcq("start", "--system")
    job = system.add("--", "touch", "/tmp/no-sandbox")
    said = "no unit of their own"
    eventually(lambda: said in system.say("status"), PATIENCE)
    assert "so jobs wait" in system.say("log", "--service")
    assert system.job(job)["state"] == "pending"
    assert f"{SOCKET} is missing: svcq install --system" in system.problems()["unit"]
    system.svcq("install", "--system")
    assert system.ended(job)["state"] == "completed"
    assert said not in system.say("status")


def test_without_a_sandbox_workers_are_children_that_survive_too(without_socket: System) -> None:
    system, machine = without_socket, without_socket.machine
    folder = machine.path(UNITS / "svcq.service.d")
    folder.mkdir()
    open_up = [
        f"{one.partition('=')[0]}=no" for one in HARDENED if one.endswith(("=yes", "strict"))
    ]
    open_up += ["SystemCallFilter=", "RestrictAddressFamilies=", "SystemCallArchitectures="]
    (folder / "open.conf").write_text("\n".join(["[Service]", *open_up, ""]))
    machine.systemctl("daemon-reload")
    try:
        system.svcq("start", "--system")
        waiting = system.begin()
        (worker,) = system.workers()
        assert machine.path(f"/proc/{worker['pid']}/cgroup").read_text().endswith("/svcq.service\n")
        assert (
            f"worker {worker['id']} is inside the unit of the service" in system.problems()["crew"]
        )
        system.svcq("restart", "--system")
        pid = system.pid()
        machine.run("kill", "-9", pid)
        system.comes_back(pid)
        assert [one["id"] for one in system.workers()] == [worker["id"]]
        waiting.finish()
    finally:
        (folder / "open.conf").unlink()
        folder.rmdir()


# What is wrong with it


def test_doctor_looks_at_the_units(system: System) -> None:
    machine = system.machine
    system.svcq("restart", "--system")  # what was killed before is forgotten
    assert system.problems() == {}
    unit = machine.path(UNITS / "svcq.service")
    machine.systemctl("disable", "svcq.service")
    assert "so it does not start with the machine: systemctl enable" in system.problems()["unit"]
    text = unit.read_text()
    unit.write_text(text.replace("WatchdogSec=60", "WatchdogSec=90"))
    machine.systemctl("daemon-reload")
    machine.systemctl("enable", "svcq.service")
    assert "svcq.service was changed by hand" in system.problems()["unit"]
    said = system.svcq("install", "--system")
    assert "had been changed by hand: that is now in" in said
    kept = machine.path(UNITS / "svcq.service.edited")
    assert "WatchdogSec=90" in kept.read_text()
    kept.unlink()
    assert unit.read_text() == text
    machine.path(UNITS / "svcq-worker.socket").unlink()
    assert "svcq-worker.socket is missing: svcq install --system" in system.problems()["unit"]
    system.svcq("install", "--system")
    assert system.problems() == {}


def test_a_service_that_cannot_start_says_why(system: System) -> None:
    config = system.machine.path(HOME / "config.toml")
    good = config.read_text()
    system.svcq("stop", "--system")
    config.write_text("[workers]\ncount = -1\n")
    try:
        said = system.refused(1, "start", "--system")
        assert "could not start" in said
        assert "workers.count" in said
        # systemd goes on trying, ever more slowly, and tells of it.
        eventually(lambda: "times in a row" in system.machine.systemctl(
            "show", "svcq.service", "-P", "StatusText"), PATIENCE)  # fmt: skip
        found = system.problems()
        assert "workers.count" in found["starts"]
        assert "times in a row" in found["starts"]
        assert "workers.count" in found["service"]
    finally:
        config.write_text(good)
    system.svcq("start", "--system")  # at once, whatever went wrong before
    assert system.is_active()


# Leaving


def test_uninstalled_nothing_is_left_but_the_data(system: System) -> None:
    waiting = system.begin()
    said = system.svcq("uninstall", "--system")
    assert f"still there, in {HOME}" in said
    machine = system.machine
    assert [path.name for path in machine.path(UNITS).rglob("*svcq*")] == []
    assert not machine.path("/run/svcq").exists()
    assert machine.run("pgrep", "-u", "svcq", check=False).stdout == ""
    assert "not installed" in system.refused(1, "start", "--system")
    stood = system.job(waiting.job)  # the data speaks for itself
    assert (stood["state"], stood["failures"]) == ("pending", 0)
    system.install()
    waiting.has_begun(2)
    assert waiting.let_go()["state"] == "completed"


def test_purged_nothing_is_left_at_all(system: System) -> None:
    said = system.svcq("uninstall", "--system", "--purge", "--yes")
    assert "Removed the account svcq" in said
    machine = system.machine
    nothing_was_left(machine)
    # What people keep in /var/tmp is theirs: a clone of svcq, say.
    looked = ("/etc", "/var", "/run", "/usr/lib", "-path", "/var/tmp", "-prune", "-o")
    found = machine.run("find", *looked, "-name", "*svcq*", "-print").stdout
    assert [line for line in found.split() if "svcq-test-machine" not in line] == []
    assert "not installed for the whole machine" in system.refused(1, "--system", "list")
