"""Machines on one network: namespaces joined to a bridge, PostgreSQL on the bridge's address."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from svcq.client import Client
from svcq.config import load
from svcq.jobs import Job
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, QUICK, Home
from tests.postgres import Server, serving

SERVER = "10.77.0.1"
LEASE = 4.0  # seconds
SETTINGS = f"""
[workers]
lease = "{LEASE:g}s"
slots = 2
"""
_networks = itertools.count(1)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


class Network:
    """A bridge in a namespace of its own, so that nothing of it is seen outside."""

    def __init__(self) -> None:
        self.hub = f"svcq-{os.getpid()}-{next(_networks)}"
        self.machines = 0
        ip("netns", "add", self.hub)
        for words in ("link add br0 type bridge", f"addr add {SERVER}/24 dev br0",
                      "link set br0 up", "link set lo up"):  # fmt: skip
            ip("-n", self.hub, *words.split())

    @property
    def inside(self) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{self.hub}"]

    @property
    def next_address(self) -> str:
        """Of the next machine."""
        return f"10.77.0.{self.machines + 2}"

    def plug_in(self) -> tuple[str, str]:
        """A namespace for one more machine, and the name of its cable."""
        address = self.next_address
        self.machines += 1
        space, cable = f"{self.hub}-{self.machines}", f"to{self.machines}"
        ip("netns", "add", space)
        ip("link", "add", cable, "netns", self.hub, "type", "veth", "peer", "eth0", "netns", space)
        for words in (f"link set {cable} master br0", f"link set {cable} up"):
            ip("-n", self.hub, *words.split())
        for words in (
            f"addr add {address}/24 dev eth0",
            "link set eth0 up",
            "link set lo up",
        ):
            ip("-n", space, *words.split())
        return space, cable

    def close(self) -> None:
        for space in sorted(os.listdir("/run/netns"), reverse=True):
            if space == self.hub or space.startswith(f"{self.hub}-"):
                ip("netns", "del", space)


class Machine(Home):
    """A machine with a name, an address and a home; its programs reach the store by the network."""

    def __init__(
        self, name: str, folder: Path, network: Network, store: str, settings: str
    ) -> None:
        self.name = name
        self._network = network
        self._space, self._cable = network.plug_in()
        database = store.partition("@/")[2].partition("?")[0]
        self.address = f"postgresql://svcq@{SERVER}/{database}"
        super().__init__(
            folder / name, f'store = "{self.address}"\n{QUICK}{settings}', store,
            ["nsenter", f"--net=/run/netns/{self._space}", "unshare", "--uts", "sh", "-c",
             f'hostname {name}; exec "$@"', "sh"],
        )  # fmt: skip

    def cut(self) -> None:
        """Pull its cable out."""
        ip("-n", self._network.hub, "link", "set", self._cable, "down")

    def join(self) -> None:
        ip("-n", self._network.hub, "link", "set", self._cable, "up")

    def vanish(self) -> None:
        """A power cut."""
        self.cut()

        def kill() -> bool:
            left = self.processes()
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left

        eventually(kill, PATIENCE)


class Lab:
    """Some machines, and a client of their store."""

    def __init__(self, folder: Path, network: Network, server: Server) -> None:
        self._folder = folder
        self.network = network
        self.server = server
        self.store = server.database()
        self.client = Client(config=load(folder / "watcher", {"SVCQ_STORE": self.store}))
        self.machines: list[Machine] = []

    def machine(self, name: str, settings: str = SETTINGS) -> Machine:
        self.machines.append(Machine(name, self._folder, self.network, self.store, settings))
        return self.machines[-1]

    def beating(self, file: Path, **options: object) -> int:
        """A job that writes its run and the time into a file again and again, until there is a file
        beside it."""
        beat = f"echo $SVCQ_RUN $(date +%s.%N) >> {file}; sleep 0.02"
        line = f"while [ ! -e {file}.end ]; do {beat}; done"
        return self.client.command(["sh", "-c", line], **{"cwd": "/", **options}).id  # type: ignore[arg-type]

    def run_of(self, job: int) -> int:
        return self.client.get(job).run

    def ended(self, job: int) -> Job:
        return self.client.wait(job, PATIENCE)

    def close(self) -> None:
        for machine in self.machines:
            machine.join()
            machine.close()
        self.client.close()
        self.server.drop(self.store)


def beats(file: Path) -> dict[int, list[float]]:
    """When each run was alive."""
    found: dict[int, list[float]] = {}
    if file.exists():
        for line in file.read_text().splitlines():
            run, _, at = line.partition(" ")
            if at:
                found.setdefault(int(run.split(".")[1]), []).append(float(at))
    return found


def silent_for(file: Path, seconds: float) -> bool:
    """Whether nobody has written for so long."""
    return time.time() - max(at for run in beats(file).values() for at in run) > seconds


@contextmanager
def network(
    variables: Mapping[str, str] | None = None, **settings: str
) -> Iterator[tuple[Network, Server]]:
    """A network and the server on it."""
    made = Network()
    try:
        with serving(
            made.inside, variables, **{"listen_addresses": f"'{SERVER}'", **settings}
        ) as server:
            with (server.data / "pg_hba.conf").open("a") as file:
                file.write("host all all 10.77.0.0/24 trust\n")
            server.reload()
            yield made, server
    finally:
        made.close()
