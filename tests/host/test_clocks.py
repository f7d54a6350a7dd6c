"""Clocks that nobody can set, and bells that can be waited for."""

from __future__ import annotations

import time
from pathlib import Path

from svcq.host import clocks, linux_clocks, windows_clocks
from svcq.host.bell import Bell, listening, ring


def test_they_only_go_forward() -> None:
    before = clocks.awake(), clocks.since_boot()
    after = clocks.awake(), clocks.since_boot()
    assert all(new >= old for old, new in zip(before, after, strict=True))
    assert clocks.since_boot() - clocks.awake() > -0.001  # time asleep counts in one alone


def test_every_system_has_the_same() -> None:
    public = {"awake", "since_boot"}
    assert public == set(clocks.__all__)
    for system in (linux_clocks, windows_clocks):
        assert public <= set(vars(system))


def test_who_listens(tmp_path: Path) -> None:
    assert listening(tmp_path / "none") == []
    one, two = Bell(tmp_path, "1-1"), Bell(tmp_path, "2-1")
    assert listening(tmp_path) == ["1-1", "2-1"]
    one.close()
    assert listening(tmp_path) == ["2-1"]
    two.close()


def test_a_bell_is_waited_for(tmp_path: Path) -> None:
    bell = Bell(tmp_path, "1")
    try:
        for ringing in (bell.ring, lambda: ring(tmp_path)):
            ringing()
            begun = time.monotonic()
            bell.wait(30)
            assert time.monotonic() - begun < 20
            bell.heard()
        begun = time.monotonic()
        bell.wait(0.05)
        assert time.monotonic() - begun >= 0.04
        for _ in range(100_000):  # a pipe that is full counts as rung
            bell.ring()
    finally:
        bell.close()
