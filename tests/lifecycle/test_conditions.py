"""Conditions of the real machine, seen by real workers."""

from __future__ import annotations

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home


def test_what_holds_runs_and_the_rest_waits(home: Home) -> None:
    home.worker("--slots", 1)
    never = home.add("true", when="battery>100", priority=100)
    empty = home.add("true", when="load<0", priority=100)
    plain = [home.add("true") for _ in range(5)]
    holds = home.add("true", when="load<100000")
    for job in (*plain, holds):
        assert home.ended(job).state == "completed"
    assert {home.client.get(job).state for job in (never, empty)} == {"pending"}
    said = home.svcq("why", empty).stdout
    assert "it waits for load<0: the load is " in said
    assert "and it waits for less than 0" in home.svcq("show", empty).stdout


def test_a_queue_waits_for_its_condition(home: Home) -> None:
    home.worker()
    said = home.svcq("queue", "set", "video", "when=load < 0")
    assert "load<0" in said.stdout
    job = home.add("true", queue="video")
    assert home.run("true").state == "completed"
    assert home.client.get(job).state == "pending"
    assert "queue video waits for load<0" in home.svcq("why", job).stdout
    home.svcq("queue", "set", "video", "when=load<100000")
    assert home.ended(job).state == "completed"


def test_an_edit_lets_it_go(home: Home) -> None:
    home.worker()
    job = home.add("true", when="load<0")
    assert home.run("true").state == "completed"
    home.client.edit(job, when="load<100000")
    eventually(lambda: home.client.get(job).state == "completed", PATIENCE)
