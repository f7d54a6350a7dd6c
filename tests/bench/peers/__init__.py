"""Other queues, installed by name into an environment of their own."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
INSTALLED = HERE.parent / ".peers"
PATIENCE = 300  # seconds for an installation; one of the peers may have to be compiled


class Peer:
    """A program that queues a number of empty jobs, drains them and prints its jobs a second."""

    def __init__(self, name: str, program: list[str], folder: Path) -> None:
        self.name = name
        self._program = program
        self._files = (folder / f"{name}-{n}.db" for n in itertools.count())

    def drain(self, n: int) -> float:
        program = [*self._program, str(next(self._files)), str(n)]
        ran = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=True)
        return float(ran.stdout)


def peers(folder: Path) -> Iterator[Peer]:
    """Those that can be had here; each of the others is named with the reason."""
    for name, install in (("Huey", install_huey), ("plainjob", install_plainjob)):
        try:
            program = install()
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name} could not be installed and is left out: {_reason(error)}")
        else:
            yield Peer(name, program, folder)


class DatabasePeer:
    """A program that queues empty jobs in a database, drains them, and prints its jobs a second of
    both."""

    def __init__(self, name: str, program: list[str], address: str) -> None:
        self.name = name
        self._program = [*program, address]

    def run(self, n: int) -> tuple[float, float]:
        program = [*self._program, str(n)]
        ran = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=True)
        added, drained = ran.stdout.split()
        return float(added), float(drained)


def pgqueuer(address: str) -> DatabasePeer | None:
    return _database_peer("PgQueuer", install_pgqueuer, address)


def graphile_worker(address: str) -> DatabasePeer | None:
    return _database_peer("graphile-worker", install_graphile_worker, address)


def _database_peer(
    name: str, install: Callable[[], list[str]], address: str
) -> DatabasePeer | None:
    try:
        return DatabasePeer(name, install(), address)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{name} could not be installed and is left out: {_reason(error)}")
        return None


def huey_consumer(folder: Path) -> Peer | None:
    """Huey's own worker, in place of a loop that drains its queue."""
    try:
        program = install_huey()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"Huey could not be installed and is left out: {_reason(error)}")
        return None
    return Peer("Huey-consumer", [program[0], str(HERE / "huey_consume.py")], folder)


def task_spooler(folder: Path) -> list[Peer]:
    """Debian's task-spooler, which root can install: draining alone, and all from queueing on."""
    try:
        if shutil.which("tsp") is None:
            if os.geteuid() != 0:
                raise PermissionError("apt-get install task-spooler needs root")
            apt = ["apt-get", "install", "--yes", "--quiet", "task-spooler"]
            subprocess.run(apt, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"task-spooler could not be installed and is left out: {_reason(error)}")
        return []
    scripts = ("tsp_drain.sh", "tsp_queue_and_run.sh")
    return [Peer(script, ["bash", str(HERE / script)], folder) for script in scripts]


def install_huey() -> list[str]:
    return _python_program("huey", ["huey"], "huey_drain.py")


def install_pgqueuer() -> list[str]:
    # With the driver that its own figures are taken with.
    return _python_program("pgqueuer", ["pgqueuer", "asyncpg"], "pgqueuer_drain.py")


def install_plainjob() -> list[str]:
    return _node_program("plainjob", ["plainjob", "better-sqlite3"], "plainjob_drain.mjs")


def install_graphile_worker() -> list[str]:
    return _node_program("graphile-worker", ["graphile-worker", "pg"], "graphile_drain.mjs")


def _python_program(name: str, packages: list[str], program: str) -> list[str]:
    place = INSTALLED / name
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not (place / "done").exists():
        venv.create(place, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _install([*pip, *packages], place)
    return [str(python), str(HERE / program)]


def _node_program(name: str, packages: list[str], program: str) -> list[str]:
    place = INSTALLED / name
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise FileNotFoundError("it needs Node, which is not here")
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "done").exists():
        npm_install = [npm, "install", "--no-audit", "--no-fund", "--prefix", place]
        _install([*npm_install, *packages], place)
    # Node looks for packages beside the file it runs.
    return [node, str(shutil.copy(HERE / program, place))]


def _install(command: list[str | Path], place: Path) -> None:
    subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=PATIENCE, check=True)
    (place / "done").touch()


def _reason(error: Exception) -> str:
    said = getattr(error, "stderr", None)
    return said.strip().splitlines()[-1] if said and said.strip() else str(error)
