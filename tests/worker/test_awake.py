"""When a worker keeps the machine awake."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.config import load
from svcq.store import WorkerInfo, open_store
from svcq.worker.awake import STEADY, Awake
from svcq.worker.places import Places, awake_notes
from tests.helpers import eventually
from tests.host.test_power import GRANTS, program


class Bench:
    """A worker that runs what the test says, on a machine that is as the test says."""

    def __init__(self, folder: Path) -> None:
        self.note = folder / "note"
        self.said: list[str] = []
        self.mains = True
        self.awake = Awake(self.note, self.said.append, lambda: self.mains)

    def look(self, *wishes: str) -> None:
        for _ in range(STEADY):
            self.awake.look(set(wishes))

    def is_held(self, *wishes: str) -> bool:
        self.look(*wishes)
        return self.note.exists() and self.note.read_text() == ""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    program(tmp_path, "systemd-inhibit", GRANTS, monkeypatch)
    bench = Bench(tmp_path)
    yield bench
    bench.awake.end()


@pytest.mark.parametrize("wish", ["mains", "always"])
def test_awake_while_a_job_runs(bench: Bench, tmp_path: Path, wish: str) -> None:
    bench.look("never")
    assert not (tmp_path / "asked").exists()
    eventually(lambda: bench.is_held(wish, "never"))
    bench.look()
    assert not bench.note.exists()
    eventually((tmp_path / "gone").exists)
    eventually(lambda: bench.is_held(wish))  # and again


def test_a_moment_is_not_worth_it(bench: Bench, tmp_path: Path) -> None:
    for _ in range(5):
        bench.awake.look({"always"})
        bench.awake.look(set())
    assert not (tmp_path / "asked").exists()


def test_on_battery_it_may_sleep_unless_told_otherwise(bench: Bench, tmp_path: Path) -> None:
    bench.mains = False
    bench.look("mains")
    assert not (tmp_path / "asked").exists()
    eventually(lambda: bench.is_held("mains", "always"))
    bench.look("mains")
    eventually((tmp_path / "gone").exists)
    bench.mains = True
    eventually(lambda: bench.is_held("mains"))
    bench.mains = False  # unplugged while it runs
    bench.look("mains")
    assert not bench.note.exists()


def test_what_cannot_be_done_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "systemd-inhibit", "echo No >&2; exit 1", monkeypatch)
    bench = Bench(tmp_path)
    for _ in range(3):
        eventually(lambda: bench.look("always") or bench.note.exists())
        assert bench.note.read_text() == "logind said: No"
        bench.look()
        assert not bench.note.exists()
    bench.awake.end()
    assert bench.said == [
        "The machine may go to sleep while jobs run; it was not kept awake (logind said: No)."
    ]


def test_it_is_let_go_at_the_end(bench: Bench, tmp_path: Path) -> None:
    eventually(lambda: bench.is_held("always"))
    bench.awake.end()
    assert not bench.note.exists()
    eventually((tmp_path / "gone").exists)


def test_notes_are_those_of_living_workers_here(tmp_path: Path) -> None:
    config = load(tmp_path / "home", {})
    store = open_store(config)
    places = Places(config.home)
    places.prepare()
    here = socket.gethostname()
    for pid, host in ((1, here), (2, here), (3, "elsewhere"), (4, here)):
        store.register(WorkerInfo(host, pid, born="b"))
    for pid, says in ((1, ""), (2, "no"), (3, "x"), (5, "of a dead one")):
        places.awake_note(pid, "b").write_text(says)
    assert awake_notes(config.home, store.workers()) == ["", "no"]
    store.close()
