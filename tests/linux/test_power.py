"""Sleep and power with a real logind: kept awake while a job runs, shut down when all is done."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.helpers import eventually
from tests.linux.machine import Machine
from tests.linux.namespaces import PATIENCE
from tests.linux.program import PLACE, put_program

pytestmark = pytest.mark.xdist_group("power machine")  # booted once for all of them

SVCQ = (str(PLACE / "bin" / "python"), "-m", "svcq")
# Until it may end.
JOB = ("until [ -e /tmp/{0}-go ]; do sleep 0.05; done", "touch /tmp/{0}-go")


class Desk:
    """svcq of one user on the machine."""

    def __init__(self, machine: Machine, user: str | None = None) -> None:
        self.machine = machine
        self.user = user
        self.home = "/root" if user is None else f"/home/{user}"
        self.unit = f"up-{user or 'root'}"

    def svcq(self, *words: object) -> str:
        return self.machine.run(*SVCQ, *words, user=self.user).stdout.strip()

    def up(self) -> None:
        account = [] if self.user is None else [f"--uid={self.user}"]
        about = [f"--unit={self.unit}", f"--setenv=HOME={self.home}", *account]
        self.machine.run("systemd-run", *about, *SVCQ, "up")
        eventually(lambda: self.svcq("worker", "list", "--json") != "[]", PATIENCE)

    def down(self) -> None:
        self.machine.systemctl("stop", self.unit, check=False)
        self.machine.shell(f"rm -rf {self.home}/.local/share/svcq /tmp/*-go")

    def said(self) -> str:
        return self.machine.run("journalctl", "--unit", self.unit, "--output=cat").stdout

    def start(self, name: str, *options: object) -> str:
        job = self.svcq("add", *options, "--", "sh", "-c", JOB[0].format(name))
        self.is_processing(job)
        return job

    def is_processing(self, job: str) -> None:
        eventually(lambda: '"processing"' in self.svcq("show", job, "--json"), PATIENCE)

    def finish(self, name: str, job: str) -> None:
        self.machine.shell(JOB[1].format(name))
        self.svcq("wait", job)

    def is_awake(self) -> bool:
        """Whether logind has a lock of ours."""
        listed = self.machine.run("systemd-inhibit", "--list", "--no-legend", "--no-pager").stdout
        return bool(re.search(r"^svcq .* sleep +jobs run +block", listed, re.MULTILINE))


@pytest.fixture(scope="module")
def powered() -> Iterator[Machine]:
    machine = Machine()
    try:
        put_program(machine.disk(PLACE))
        machine.boot()
        machine.run("useradd", "--create-home", "ada")
        yield machine
    finally:
        machine.close()


@pytest.fixture
def desk(powered: Machine) -> Iterator[Desk]:
    desk = Desk(powered)
    desk.up()
    yield desk
    desk.down()


def test_awake_while_a_job_runs(desk: Desk) -> None:
    assert not desk.is_awake()
    job = desk.start("one")
    eventually(desk.is_awake, PATIENCE)
    eventually(lambda: "The machine is kept awake meanwhile." in desk.svcq("status"), PATIENCE)
    desk.svcq("pause", "--job", job)
    eventually(lambda: not desk.is_awake(), PATIENCE)  # what stands still keeps nobody up
    desk.svcq("resume", "--job", job)
    eventually(desk.is_awake, PATIENCE)
    desk.finish("one", job)
    ended = time.monotonic()
    eventually(lambda: not desk.is_awake(), PATIENCE)
    assert time.monotonic() - ended < 30  # a second or so, on a machine that is not busy
    assert "awake" not in desk.svcq("status")


def test_a_job_may_say_otherwise(desk: Desk) -> None:
    job = desk.start("two", "--keep-awake", "never")
    other = desk.start("three")
    eventually(desk.is_awake, PATIENCE)
    desk.finish("three", other)
    eventually(lambda: not desk.is_awake(), PATIENCE)
    desk.is_processing(job)
    desk.finish("two", job)


def test_a_worker_that_is_killed_lets_go(desk: Desk) -> None:
    desk.svcq("worker", "stop")  # those of svcq up go; one of our own works
    eventually(lambda: '"running"' in desk.svcq("worker", "list", "--json"), PATIENCE)
    job = desk.start("four", "--on-lost", "dead")
    eventually(desk.is_awake, PATIENCE)
    pid = re.findall(r'"pid": (\d+)', desk.svcq("worker", "list", "--json"))[-1]
    desk.machine.run("kill", "-STOP", desk.machine.systemctl(
        "show", desk.unit, "--property", "MainPID", "--value"))  # fmt: skip
    desk.machine.run("kill", "-KILL", pid)
    eventually(lambda: not desk.is_awake(), PATIENCE)
    desk.machine.run("kill", "-CONT", desk.machine.systemctl(
        "show", desk.unit, "--property", "MainPID", "--value"))  # fmt: skip
    eventually(lambda: '"dead"' in desk.svcq("show", job, "--json"), PATIENCE)


def test_without_the_right_it_is_said_once_and_nothing_fails(powered: Machine) -> None:
    ada = Desk(powered, "ada")
    ada.up()
    try:
        for name in ("five", "six"):
            job = ada.start(name)
            eventually(lambda: "Access denied" in ada.said(), PATIENCE)
            eventually(lambda: "may go to sleep meanwhile" in ada.svcq("status"), PATIENCE)
            ada.finish(name, job)
        assert ada.said().count("it was not kept awake (logind said: ") == 1
        assert "cannot be kept awake while jobs run" in ada.svcq("doctor")
    finally:
        ada.down()


def test_what_the_machine_cannot_do_is_told(desk: Desk) -> None:
    """This one has no way to sleep."""
    desk.svcq("when-done", "--in", "0", "sleep")
    eventually(lambda: "could not put the machine to sleep" in desk.svcq("when-done"), PATIENCE)
    assert "not supported" in desk.svcq("when-done")
    assert "could not put the machine to sleep (" in desk.said()


def test_someone_without_the_right_cannot_shut_it_down(powered: Machine) -> None:
    ada = Desk(powered, "ada")
    ada.up()
    try:
        ada.svcq("when-done", "--in", "0", "shutdown")
        eventually(lambda: "could not shut the machine down" in ada.svcq("when-done"), PATIENCE)
        assert powered.systemctl("is-system-running", check=False) in ("running", "degraded")
    finally:
        ada.down()


def test_shut_down_when_all_is_done(desk: Desk) -> None:
    """The last of them: the machine is off afterwards, and on again."""
    job = desk.start("seven")
    said = desk.svcq("when-done", "--in", "1s", "shutdown")
    assert "svcq is to shut the machine down 1s later: 1 job left (1 processing)." in said
    desk.machine.shell(JOB[1].format("seven"))
    desk.machine.wait_until_off()
    desk.machine.boot()
    desk.up()
    assert '"completed"' in desk.svcq("show", job, "--json")
    last = desk.svcq("when-done")
    assert last.startswith("Nothing is planned")
    assert "svcq was to shut the machine down" in last
    # What was planned before a start of the machine is not for the time after it.
    held = desk.svcq("add", "--in", "1h", "--", "true")
    desk.svcq("when-done", "--in", "0", "shutdown")
    desk.machine.cut_power()
    desk.machine.boot()
    desk.svcq("cancel", held)
    desk.up()
    eventually(lambda: "was started anew since" in desk.svcq("when-done"), PATIENCE)
    assert desk.machine.systemctl("is-system-running", check=False) in ("running", "degraded")
