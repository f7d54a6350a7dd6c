"""The clock of the server is set: what is between machines does not go by it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.machines.network import LEASE, Lab, beats, network


class FakedLab(Lab):
    """`ahead`: the file that says by how much the server's clock is wrong."""

    ahead: Path


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[FakedLab]:
    folder = Path(tempfile.mkdtemp(prefix="svcq-clock-"))  # which the server's user may read
    folder.chmod(0o755)
    ahead = folder / "ahead"
    ahead.write_text("+0\n")
    variables = {
        "LD_PRELOAD": _library(), "FAKETIME_TIMESTAMP_FILE": str(ahead), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    with closing_folder(folder), network(variables) as made:
        lab = FakedLab(tmp_path, *made)
        lab.ahead = ahead
        try:
            yield lab
        finally:
            lab.close()


@contextmanager
def closing_folder(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(folder)


def _library() -> str:
    """Where this architecture has it."""
    return str(next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")))


def server_is_ahead(lab: FakedLab) -> float:
    with lab.client.store.engine.read() as tx:
        return tx.now / 1000 - time.time()


@pytest.mark.parametrize("by", [3600, -3600], ids=["ahead", "back"])
def test_no_job_is_lost_or_run_twice(lab: FakedLab, tmp_path: Path, by: int) -> None:
    file = tmp_path / "beats"
    for name in ("render1", "render2"):
        lab.machine(name).worker()
    job = lab.beating(file)
    eventually(lambda: beats(file), PATIENCE)
    lab.ahead.write_text(f"{by:+d}\n")
    eventually(lambda: abs(server_is_ahead(lab) - by) < 60, PATIENCE)
    later = time.time() + LEASE * 1.5
    eventually(lambda: max(beats(file)[1]) > later, PATIENCE)
    assert lab.run_of(job) == 1
    # What comes now is run at once, and a machine that vanishes is noticed as ever.
    assert lab.ended(lab.client.command(["true"]).id).state == "completed"
    holder = lab.client.get(job).worker
    (host,) = (one.host for one in lab.client.workers() if one.id == holder)
    next(one for one in lab.machines if one.name == host).vanish()
    eventually(lambda: 2 in beats(file), PATIENCE)
    Path(f"{file}.end").touch()
    assert lab.ended(job).losses == 1
