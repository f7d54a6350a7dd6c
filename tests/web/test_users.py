"""Other users of the machine: who is let in, and who may see, stop and edit what."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from svcq.client.connection import LocalConnection, NetworkConnection
from svcq.errors import NotFound, NotPermitted, Unreachable
from tests.lifecycle.homes import PATIENCE, QUICK
from tests.web.others import BIN, DAEMON, GAMES, Other
from tests.web.served import Served


class Shared(Served):
    """A service with a door for other users."""

    def __init__(self, folder: Path, public: Path) -> None:
        public.mkdir()
        public.chmod(0o755)
        self.socket = public / "svcq.sock"
        self.public = public
        super().__init__(folder, f'{QUICK}\n[web]\nsocket = "{self.socket}"\n')

    def other(self, uid: int) -> Other:
        return Other(uid, self.socket, self.public)

    def let_in(self, name: str, role: str = "user") -> None:
        said = self.svcq("user", "add", name, "--role", role)
        assert said.returncode == 0, said


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, open_folder: Path) -> Iterator[Shared]:
    shared = Shared(tmp_path_factory.mktemp("shared"), open_folder / "run")
    shared.let_in("daemon")
    shared.let_in("games", "reader")
    shared.client.queue("default", weight=1)
    yield shared
    shared.close()


@pytest.fixture
def daemon(shared: Shared) -> Other:
    return shared.other(DAEMON)


def held(client: Any, **options: Any) -> int:
    job: int = client.command(["true"], hold=True, **options).id
    return job


def test_who_is_not_named_is_not_let_in(shared: Shared) -> None:
    with pytest.raises(NotPermitted, match="svcq user add bin"):
        shared.other(BIN).client(lambda client: client.counts())
    said = shared.other(BIN).svcq("add", "--", "true")
    assert (said.code, said.out) == (5, "")
    assert said.err.startswith("svcq: bin may not use this svcq")
    assert "Traceback" not in said.err


def test_nobody_is_someone_else(shared: Shared) -> None:
    refused = shared.svcq("user", "add", "nobody")
    assert refused.returncode == 1
    assert "whoever the system does not know" in refused.stderr
    with pytest.raises(NotPermitted):
        shared.other(65534).client(lambda client: client.counts())


def test_the_socket_is_there_for_all_and_the_home_for_none(shared: Shared) -> None:
    assert stat.S_IMODE(shared.socket.stat().st_mode) == 0o666
    assert stat.S_IMODE(shared.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((shared.path / "users.json").stat().st_mode) == 0o600


def test_a_job_carries_its_owner_and_runs_as_the_service(shared: Shared, daemon: Other) -> None:
    said = daemon.svcq("add", "--", "sh", "-c", "id -u; pwd; echo $LOGNAME")
    assert (said.code, said.err) == (0, "")
    job = shared.ended(int(said.out))
    assert (job.state, job.owner, job.cwd) == ("completed", "daemon", str(shared.public))
    uid, where, name = shared.output(job.id).splitlines()
    # Who they are does not come along: the job is the service's, in all it does.
    assert (uid, where, name) == (str(os.geteuid()), str(shared.public), "")


def test_every_reading_command_works_for_them(shared: Shared, daemon: Other) -> None:
    job = shared.run("echo seen; exit 3", queue="looked-at")
    for words, expected in (
        (("list",), "looked-at"),
        (("list", "--json"), '"looked-at"'),
        (("show", job.id), "exit code"),
        (("why", job.id), "failed (ended with exit code 3)"),
        (("log", job.id), "seen"),
        (("log", "--tail", 1, job.id), "seen"),
        (("log", "--follow", job.id), "seen"),
        (("status",), "worker"),
        (("stats",), "looked-at"),
        (("activity",), "looked-at"),
        (("dlq", "list"), "looked-at"),
        (("queue", "list"), "looked-at"),
        (("queue", "show", "looked-at"), "looked-at"),
        (("worker", "list"), "running"),
    ):
        said = daemon.svcq(*words)
        assert (said.code, said.err) == (0, ""), (words, said)
        assert expected in said.out, (words, said)
    assert daemon.svcq("wait", job.id).code == 3
    assert daemon.svcq("show", 99999).code == 3


def test_their_own_jobs_are_theirs_to_steer(shared: Shared, daemon: Other) -> None:
    def act(client: Any) -> list[str]:
        job = held(client, name="mine")
        states = [client.release("mine").state, client.hold(job).state]
        states += [client.edit(job, priority=4, command="echo new").state]
        states += [client.cancel(job).state, client.get(job).owner]
        return [str(state) for state in states]

    shared.client.pause(shared.client.config.queue)
    try:
        assert daemon.client(act) == ["pending", "held", "held", "cancelled", "daemon"]
    finally:
        shared.client.resume(shared.client.config.queue)


def test_others_jobs_are_theirs_to_see_alone(shared: Shared, daemon: Other) -> None:
    shared.let_in("bin")
    theirs: int = shared.other(BIN).client(lambda client: held(client, env={"A": "b"}))
    assert shared.client.get(theirs).owner == "bin"
    assert daemon.client(lambda client: client.get(theirs).owner) == "bin"
    before = shared.client.get(theirs)
    for verb in ("cancel", "release", "hold", "retry", "move", "suspend", "environment"):
        with pytest.raises(NotPermitted, match="belongs to bin, not to daemon"):
            daemon.client(lambda client, verb=verb: str(getattr(client, verb)(theirs)))
    with pytest.raises(NotPermitted):
        daemon.client(lambda client: str(client.edit(theirs, priority=9)))
    assert shared.client.get(theirs) == before
    shared.svcq("user", "remove", "bin")
    with pytest.raises(NotPermitted):
        shared.other(BIN).client(lambda client: client.counts())
    assert shared.client.get(theirs) == before


def test_the_page_shows_no_environment_of_others_and_no_button_that_is_refused(
    shared: Shared, daemon: Other
) -> None:
    env = {"PLAIN": "seen-by-its-owner"}
    ours = held(shared.client, env=env)
    theirs: int = daemon.client(lambda client: held(client, env=env))
    reader = shared.other(GAMES)
    for job, other, sees in (
        (ours, daemon, False), (theirs, daemon, True), (ours, reader, False),
        (theirs, reader, False),
    ):  # fmt: skip
        page = other.page(f"/jobs/{job}")
        assert f"#{job} in" in page
        assert ("seen-by-its-owner" in page) is sees
        assert (f"/api/v1/jobs/{job}/cancel" in page) is sees
        assert (f"/api/v1/jobs/{job}/cancel" in other.page("/")) is False  # it is held
    for view in ("/", "/jobs", "/queues", "/schedules", "/workers", "/letters", "/activity"):
        page = reader.page(view)
        assert "<h1>" in page
        assert "data-do=" not in page
        assert 'data-opens="new-' not in page
        assert "You may look, not change." in page
    assert 'data-opens="new-job"' in daemon.page("/")
    assert 'data-opens="edit-queue"' not in daemon.page("/queues")


def test_a_unique_key_does_not_end_anothers_job(shared: Shared, daemon: Other) -> None:
    job = held(shared.client, unique_key="shared")
    with pytest.raises(NotPermitted, match=f"Job {job}, which has the unique key"):
        daemon.client(lambda client: held(client, unique_key="shared", on_duplicate="replace"))
    assert shared.client.get(job).state == "held"
    assert daemon.client(lambda client: held(client, unique_key="shared")) == job


def test_a_name_that_is_taken_is_told_with_its_job(shared: Shared, daemon: Other) -> None:
    job = held(shared.client, name="taken")
    said = daemon.svcq("add", "--name", "taken", "--", "true")
    assert (said.code, said.out) == (1, "")
    assert f"belongs to job {job}" in said.err


def test_schedules_are_their_owners(shared: Shared, daemon: Other) -> None:
    daemon.client(lambda client: client.schedule("theirs", "true", cron="0 3 * * *").name)
    assert shared.client.get_schedule("theirs").owner == "daemon"
    shared.client.schedule("ours", "true", cron="0 3 * * *")
    for act in (
        lambda client: client.remove_schedule("ours"),
        lambda client: str(client.pause_schedule("ours")),
        lambda client: str(client.edit_schedule("ours", cron="1 1 * * *")),
        lambda client: str(client.fire_schedule("ours")),
        lambda client: client.schedule("ours", "false", cron="0 1 * * *", replace=True).name,
    ):
        with pytest.raises(NotPermitted, match="ours belongs to"):
            daemon.client(act)
    assert shared.client.get_schedule("ours").cron == "0 3 * * *"
    assert daemon.client(lambda client: client.pause_schedule("theirs").paused) == 1
    daemon.client(lambda client: client.remove_schedule("theirs"))
    shared.client.remove_schedule("ours")


@pytest.mark.parametrize(
    "words",
    [
        ("pause", "default"), ("queue", "set", "default", "weight=2"),
        ("purge", "--state", "dead", "-y"), ("cleanup",), ("worker", "stop", "1"),
        ("backup", "copy.db"), ("export",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_the_owners_is_refused_with_a_sentence(
    shared: Shared, daemon: Other, words: tuple[str, ...]
) -> None:
    said = daemon.svcq(*words)
    assert said.code == 5, said
    assert said.err.startswith("svcq: ")
    assert said.err.count("\n") == 1
    assert "owner" in said.err


def test_a_reader_looks_and_changes_nothing(shared: Shared) -> None:
    games = shared.other(GAMES)
    assert games.client(lambda client: client.counts())["dead"] >= 0
    with pytest.raises(NotPermitted, match="may only look"):
        games.client(held)


def test_an_admin_may_do_what_the_owner_may(shared: Shared, daemon: Other) -> None:
    job = held(shared.client)
    shared.let_in("bin", "admin")
    try:
        admin = shared.other(BIN)
        assert admin.client(lambda client: str(client.cancel(job).state)) == "cancelled"
        admin.client(lambda client: client.pause("default"))
        assert shared.client.queue("default").paused
        admin.client(lambda client: client.resume("default"))
    finally:
        shared.svcq("user", "remove", "bin")


def test_tasks_are_queued_by_those_who_can_import_them(daemon: Other, shared: Shared) -> None:
    from tests.lifecycle.sample import add as task

    job: int = daemon.client(lambda client: client.enqueue(task.options(hold=True), 1, 2).id)
    found = shared.client.get(job)
    assert (found.task, found.args, found.owner) == (task.name, [1, 2], "daemon")


def test_running_jobs_by_hand_is_for_the_owner(daemon: Other) -> None:
    for act in (
        lambda client: client.fetch(),
        lambda client: client.export(),
        lambda client: client.using(None),
        lambda client: client.store,
    ):
        with pytest.raises(NotPermitted, match="owner"):
            daemon.client(act)


def test_users_are_listed_and_wrong_ones_refused(shared: Shared) -> None:
    listed = shared.svcq("user", "list")
    assert "daemon" in listed.stdout
    assert "reader" in listed.stdout
    for words, code, says in (
        (("add", "no-such-user"), 3, "no user 'no-such-user'"),
        (("add", "root"), 1, "everything"),
        (("remove", "no-such-user"), 3, "was not let in"),
        (("add", "daemon", "--role", "king"), 2, "king"),
    ):
        said = shared.svcq("user", *words)
        assert (said.returncode, said.stdout) == (code, ""), said
        assert says in said.stderr


def test_a_wait_of_theirs_ends_with_the_job(shared: Shared, daemon: Other) -> None:
    job = shared.add("sleep 0.5; exit 4")
    assert daemon.client(lambda client: client.wait(job, PATIENCE).exit_code) == 4
    with pytest.raises(NotFound):
        daemon.client(lambda client: client.wait(99999).id)


@contextmanager
def someone_else() -> Iterator[None]:
    """What is done within is done by another user."""
    os.seteuid(DAEMON)
    try:
        yield
    finally:
        os.seteuid(0)


def test_nothing_is_sent_to_a_stranger_on_the_port(tmp_path: Path) -> None:
    served = Served(tmp_path, workers=0)
    try:
        port = served.port
        served.stop()
        connection = NetworkConnection(served.path)
        with pytest.raises(Unreachable):
            connection.ask("GET", "/jobs")
        with someone_else(), socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
            os.seteuid(0)
            with pytest.raises(NotPermitted, match="nothing was sent"):
                connection.ask("GET", "/jobs")
    finally:
        served.close()


def test_nothing_is_sent_to_a_stranger_on_the_local_socket(open_folder: Path) -> None:
    folder = open_folder / "anyones"
    folder.mkdir()
    folder.chmod(0o777)
    path = folder / "svcq.sock"
    with someone_else(), socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(path))
        stranger.listen()
        os.seteuid(0)
        os.chown(folder, BIN, BIN)
        with pytest.raises(NotPermitted, match="nothing was sent"):
            LocalConnection(path).ask("GET", "/jobs")
