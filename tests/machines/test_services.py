"""Services on several machines: one clock's worth of firings, output from anywhere, routing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.machines.network import SETTINGS, Lab, Machine


def up(machine: Machine, *arguments: object) -> subprocess.Popen[str]:
    """Its service, once its worker is there."""
    service = machine.start("up", "--count", 1, *arguments)

    def there() -> bool:
        assert service.poll() is None, machine.said()
        return machine.name in {worker.host for worker in machine.client.workers()}

    eventually(there, PATIENCE)
    return service


def test_no_time_fires_twice_and_another_clock_goes_on(lab: Lab) -> None:
    first, second = lab.machine("render1"), lab.machine("render2")
    services = [up(first), up(second)]
    lab.client.schedule("tick", "true", every="1s", overlap="queue")

    def nominal() -> list[str]:
        found = lab.client.firings("tick", limit=1000)
        return [str(one.nominal) for one in found if one.job is not None]

    def elsewhere() -> list[str]:
        return sorted(lab.client.clock().elsewhere)

    assert eventually(lambda: elsewhere() == ["render1", "render2"], PATIENCE)
    eventually(lambda: len(nominal()) >= 4, PATIENCE)
    os.kill(services[0].pid, signal.SIGKILL)
    killed, fired = time.monotonic(), len(nominal())
    eventually(lambda: len(nominal()) > fired, PATIENCE)
    assert time.monotonic() - killed < 5
    eventually(lambda: len(nominal()) > fired + 3, PATIENCE)
    times = nominal()
    assert len(times) == len(set(times))
    found = lab.client.firings("tick", limit=1000)
    seconds = sorted(round(one.nominal.timestamp()) for one in found
                     if one.job is not None and one.nominal is not None)  # fmt: skip
    # One after the other without a hole, also where one clock died.
    assert seconds == list(range(seconds[0], seconds[0] + len(seconds)))
    said = json.loads(second.svcq("status", "--json").stdout)["clock"]
    assert said["running"]
    assert len(said["pids"]) == 1
    eventually(lambda: elsewhere() == ["render2"], PATIENCE * 2)
    services[1].terminate()
    services[1].wait(PATIENCE)
    assert elsewhere() == []


def test_a_job_runs_on_the_machine_it_names(lab: Lab) -> None:
    for name in ("render1", "render2"):
        lab.machine(name).worker("--slots", 1)
    here, there = lab.machines
    added = [
        json.loads(here.svcq("add", "--json", "--host", name, "--", "hostname").stdout)["id"]
        for name in ("render2", "render1", "render2", "render2")
    ]
    for job in added:
        lab.ended(job)
    ran = [lab.client.runs(job)[0] for job in added]
    assert [run.host for run in ran] == ["render2", "render1", "render2", "render2"]
    assert [run.tail for run in ran] == ["render2", "render1", "render2", "render2"]
    told = here.svcq("worker", "list").stdout
    assert "render1" in told
    assert "render2" in told
    assert "HEARD OF" in told
    assert (
        "2 workers with 2 slots, 0 in use: 1 on render1, 1 on render2."
        in here.svcq("status").stdout
    )
    listed = json.loads(there.svcq("worker", "list", "--json").stdout)
    assert all(worker["heard_at"] for worker in listed)


def test_what_a_worker_accepts(lab: Lab) -> None:
    only = lab.machine("render1", f'{SETTINGS}accept = "tasks"\n')
    only.worker_with_tasks()
    job = lab.client.command(["true"]).id
    call = lab.client.add([lab.client.new_task("tests.lifecycle.sample.add", [1, 2], {})])[0].id
    assert lab.ended(call).state == "completed"
    assert lab.client.get(job).state == "pending"
    only.worker_with_tasks("--accept", "commands")
    assert lab.ended(job).state == "completed"


def test_output_of_a_machine_that_lets_nobody_in(lab: Lab) -> None:
    there, here = lab.machine("render1"), lab.machine("render2")
    up(there)
    job = lab.client.command(["sh", "-c", "seq 1000"], cwd="/").id
    lab.ended(job)
    eventually(lab.client.store.services, PATIENCE)
    read = here.svcq("log", job)
    assert read.stdout.split() == [str(n) for n in range(981, 1001)]
    file = there.log(job)
    assert f"is on render1 ({file}), and the service of render1 is not served beyond" in read.stderr
    assert there.svcq("log", job).stdout.split()[0] == "1"


def test_the_whole_output_through_the_service_of_its_machine(lab: Lab, tmp_path: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=render1.example", "-keyout", tmp_path / "key", "-out", tmp_path / "certificate"],
        check=True, capture_output=True,
    )  # fmt: skip
    os.chmod(tmp_path / "key", 0o600)
    there = lab.machine(
        "render1",
        f'{SETTINGS}[web]\naddress = "{lab.network.next_address}"\n'
        f'name = "render1.example"\n'
        f'certificate = "{tmp_path}/certificate"\nkey = "{tmp_path}/key"\n',
    )
    here = lab.machine("render2")
    up(there)
    job = lab.client.command(["sh", "-c", "seq 1000"], cwd="/").id
    lab.ended(job)

    def whole() -> bool:
        return here.svcq("log", job).stdout.split() == [str(n) for n in range(1, 1001)]

    eventually(whole, PATIENCE, 0.5)
    assert here.svcq("log", job, "--tail", 2).stdout.split() == ["999", "1000"]
    live = lab.client.command(["sh", "-c", "echo begun; sleep 1; echo over"], cwd="/").id
    followed = here.svcq("log", "-f", live)
    assert followed.stdout.split() == ["begun", "over"]
    # Out of reach, it is said where it is.
    there.vanish()
    read = here.svcq("log", job)
    assert read.stdout.split() == [str(n) for n in range(981, 1001)]
    assert f"is on render1 ({there.log(job)}), and the service of render1 could not be asked" in (
        read.stderr
    )
