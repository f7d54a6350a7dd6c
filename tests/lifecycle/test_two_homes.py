"""Two homes of one machine on one store: neither takes the living workers of the other for dead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, QUICK, Home
from tests.postgres import Server

LEASE = '[workers]\nlease = "3s"\n'


@pytest.fixture
def homes(postgres: Server, tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    store = postgres.database()
    settings = f'store = "{store}"\n{QUICK}{LEASE}'
    one, other = (Home(tmp_path / name, settings, store) for name in ("one", "other"))
    yield one, other
    one.close()
    other.close()
    postgres.drop(store)


def test_a_worker_is_lost_when_it_is_silent(homes: tuple[Home, Home]) -> None:
    one, other = homes
    worker = one.worker()
    go = one.work / "go"
    job = one.add(f"until [ -e {go} ]; do sleep 0.02; done")
    one.wait_until_running(job)
    other.worker()

    def beat() -> int:
        return next(w.beat for w in one.client.workers() if w.id == worker.id)

    # Its number goes up all the while, through more than two leases.
    first = beat()
    eventually(lambda: beat() > first + 14, PATIENCE)
    assert one.client.get(job).run == 1
    worker.kill()
    eventually(lambda: one.client.get(job).run == 2, PATIENCE)
    go.touch()
    assert one.ended(job).losses == 1
    assert [run.how for run in one.client.runs(job)] == ["lost", "completed"]


def test_one_of_its_own_home_is_missed_at_once(homes: tuple[Home, Home]) -> None:
    one, _ = homes
    one.configure(one.path.joinpath("config.toml").read_text().replace('"3s"', '"1h"'))
    worker = one.worker()
    job = one.add("sleep 60")
    one.wait_until_running(job)
    one.worker()
    worker.kill()
    eventually(lambda: one.client.get(job).run == 2, PATIENCE)
    one.client.cancel(job)
    assert one.ended(job).losses == 1
