"""Facts of the machine, from real files and real programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svcq.host import linux_facts, windows_facts
from svcq.host.facts import fact
from svcq.host.unknown import Unknown


def supply(power: Path, name: str, **files: object) -> None:
    folder = power / name
    folder.mkdir()
    for file, text in files.items():
        (folder / file).write_text(f"{text}\n")


def test_a_machine_without_a_battery_is_on_mains_power(tmp_path: Path) -> None:
    for power in (tmp_path, tmp_path / "not there"):
        assert linux_facts.on_mains(power) is True
        assert isinstance(linux_facts.battery_percent(power), Unknown)


@pytest.mark.parametrize(
    ("supplies", "mains", "percent"),
    [
        ([("Mains", {"online": 1}), ("Battery", {"status": "Charging", "capacity": 43})], True, 43),
        ([("Mains", {"online": 0}), ("Battery", {"status": "Full", "capacity": 99})], False, 99),
        (
            [
                ("Mains", {"online": 0}),
                ("USB", {"online": 1}),
                ("Battery", {"status": "Charging", "capacity": 7}),
            ],
            True,
            7,
        ),
        ([("Battery", {"status": "Discharging", "capacity": 20})], False, 20),
        ([("Battery", {"status": "Full", "capacity": 100})], True, 100),
        ([("Battery", {"capacity": 20}), ("Battery", {"capacity": 60})], True, 40),
        ([("USB", {"online": 0})], True, None),
        ([("Mains", {"online": 0}), ("Battery", {"capacity": 50, "scope": "Device"})], True, None),
        ([("Mains", {"online": 0}), ("Battery", {"capacity": 50, "present": 0})], True, None),
        ([("Mains", {"online": 0}), ("Battery", {"capacity": "?"})], False, None),
    ],
)
def test_power(
    tmp_path: Path, supplies: list[tuple[str, dict[str, object]]], mains: bool, percent: int | None
) -> None:
    for number, (kind, files) in enumerate(supplies):
        supply(tmp_path, f"S{number}", type=kind, **files)
    assert linux_facts.on_mains(tmp_path) is mains
    charge = linux_facts.battery_percent(tmp_path)
    assert charge == percent if percent is not None else isinstance(charge, Unknown)


def bus(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busctl that is a real program, and answers as the test says."""
    program = folder / "busctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "least", "most"),
    [
        ("echo b false; echo t 0", 0, 0),
        ("echo b false; echo t 1700000000000000", 0, 0),
        ('echo b true; echo "t $(($(date +%s) - 600))000000"', 599, 700),
        ("echo b true; echo t 0", 1, float("inf")),
    ],
)
def test_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, least: float, most: float
) -> None:
    bus(tmp_path, script, monkeypatch)
    idle = linux_facts.idle_seconds()
    assert not isinstance(idle, Unknown)
    assert least <= idle <= most


@pytest.mark.parametrize(
    ("said", "answer"), [(1, False), (2, True), (3, False), (4, True), (0, None), ("x", None)]
)
def test_unmetered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: object, answer: bool | None
) -> None:
    bus(tmp_path, f"echo u {said}", monkeypatch)
    found = linux_facts.unmetered()
    assert isinstance(found, Unknown) if answer is None else found is answer


@pytest.mark.parametrize("script", ["exit 1", "echo", "exec sleep 60"])
def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(linux_facts, "_PATIENCE", 0.2)
    bus(tmp_path, script, monkeypatch)
    assert isinstance(linux_facts.idle_seconds(), Unknown)
    assert isinstance(linux_facts.unmetered(), Unknown)


def test_there_is_no_busctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "logind" in str(linux_facts.idle_seconds())
    assert "NetworkManager" in str(linux_facts.unmetered())


@pytest.mark.parametrize("name", ["mains", "battery", "idle", "load", "unmetered"])
def test_this_machine_answers(name: str) -> None:
    assert isinstance(fact(name), float | bool | Unknown)


def test_both_systems_offer_the_same() -> None:
    for name in ("on_mains", "battery_percent", "idle_seconds", "load_average", "unmetered"):
        assert callable(getattr(windows_facts, name))
        assert callable(getattr(linux_facts, name))
