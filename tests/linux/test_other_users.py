"""Other users of a machine, with the service of the whole machine: svcq --system, as themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.helpers import eventually
from tests.linux.namespaces import PATIENCE
from tests.linux.system import System

SOCKET = "/run/svcq/users/svcq.sock"


@pytest.fixture
def shared(system: System) -> Iterator[System]:
    """The service has come up, and nobody is let in by name."""
    eventually(system.machine.path(SOCKET).exists, PATIENCE)
    yield system
    for user in system.json("user", "list"):
        system.say("user", "remove", user["name"])


def test_who_is_not_let_in_is_told_what_to_do(shared: System) -> None:
    said = shared.refused(5, "--system", "add", "--", "true", user="alice")
    assert "alice may not use this svcq" in said
    assert "svcq user add alice" in said


def test_a_named_user_queues_and_watches_as_they_are(shared: System) -> None:
    assert "alice is let in as user" in shared.say("user", "add", "alice")
    job = int(shared.say("add", "--shell", "id -un; pwd; echo $HOME", user="alice"))
    shared.say("wait", job, user="alice")
    shown = json.loads(shared.say("show", job, "--json", user="alice"))
    assert (shown["owner"], shown["state"]) == ("alice", "completed")
    # It runs as the account of the service, where alice stood.
    assert shared.say("log", job, user="alice").splitlines() == ["svcq", "/", "/var/lib/svcq"]
    assert "completed" in shared.say("list", user="alice")
    assert "The service runs" in shared.say("status", user="alice")
    assert "jobs.max_attempts" in shared.say("config", "list", user="alice")
    held = int(shared.say("add", "--hold", "--", "true", user="alice"))
    shared.say("cancel", held, user="alice")
    assert shared.job(held)["state"] == "cancelled"
    made = ("schedule", "add", "hers", "--cron", "0 3 * * *", "--", "true")
    shared.say(*made, user="alice")
    assert shared.json("schedule", "show", "hers")["owner"] == "alice"
    shared.say("schedule", "edit", "hers", "--env", "API_TOKEN=hush", user="alice")
    shared.say("schedule", "edit", "hers", "--env", "PLAIN=seen", "--", "env", user="alice")
    shared.say("schedule", "fire", "hers", "--wait", user="alice")
    (fired,) = shared.json("list", "--queue", "default", "--grep", "env", "--limit", 1)
    assert "API_TOKEN=hush" in shared.say("log", fired["id"], user="alice")
    shared.say("schedule", "remove", "hers", user="alice")


def test_what_is_not_theirs_is_refused(shared: System) -> None:
    shared.say("user", "add", "alice")
    job = shared.add("--hold", "--", "true")
    for words in (
        ("cancel", job), ("pause", "default"), ("config", "set", "jobs.max_attempts", "2"),
        ("purge", "--state", "held", "--yes"),
    ):  # fmt: skip
        shared.refused(5, "--system", *words, user="alice")
    assert shared.job(job)["state"] == "held"
    # What is the account's own is for root, who can become it.
    for words in (("user", "add", "alice"), ("token", "rotate"), ("project", "list"), ("doctor",)):
        assert "sudo svcq --system" in shared.refused(5, "--system", *words, user="alice")
    shared.say("cancel", job)


def test_members_of_the_group_are_let_in(shared: System) -> None:
    shared.machine.run("usermod", "--append", "--groups", "svcq", "alice")
    try:
        assert shared.say("add", "--", "true", user="alice").strip().isdigit()
    finally:
        shared.machine.run("gpasswd", "--delete", "alice", "svcq")
    assert "may not use" in shared.refused(5, "--system", "list", user="alice")


def test_the_socket_comes_back_with_the_service(shared: System) -> None:
    shared.say("user", "add", "alice")
    shared.say("restart")
    eventually(shared.machine.path(SOCKET).exists, PATIENCE)
    assert shared.say("list", "--queue", "none", user="alice") == ""
    shared.say("stop")
    said = shared.refused(4, "--system", "list", user="alice")
    assert "does not answer" in said
    shared.say("start")


def test_the_page_is_opened_with_their_own_rights(shared: System) -> None:
    shared.say("user", "add", "alice")
    address = shared.say("open", "--print", user="alice").strip()
    assert address.startswith("http://svcq-")
    assert "/login#code=" in address
