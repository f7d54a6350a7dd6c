"""The package is upgraded under a running job: the worker of the previous version comes to its end,
and the new service sees to it."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcq.version import __version__
from tests.clients import ROOT
from tests.helpers import eventually
from tests.linux.namespaces import PATIENCE
from tests.linux.program import packages, put_program
from tests.linux.system import Person

PREVIOUS = ROOT / "tests" / "store" / "previous" / "svcq-schema2.zip"
PLACE = Path("/opt/upgraded")


@pytest.fixture
def user_of_previous(alice: Person, tmp_path: Path) -> Iterator[Person]:
    """Who has the program of the schema before, under another number, in a place of its own."""
    with zipfile.ZipFile(PREVIOUS) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "svcq" / "version.py").write_text('__version__ = "0.0.9"\n')
    place = alice.machine.path(PLACE)
    put_program(place, tmp_path / "svcq")
    yield Person(alice.machine, "alice", PLACE)
    shutil.rmtree(alice.machine.path(PLACE))


def upgrade(person: Person) -> None:
    """As pip does it: what was there goes, and what is new comes."""
    package = packages(person.machine.path(PLACE)) / "svcq"
    shutil.rmtree(package)
    shutil.copytree(ROOT / "svcq", package)


def test_an_upgrade_under_a_running_job(user_of_previous: Person) -> None:
    person = user_of_previous
    assert person.svcq("--version") == "svcq 0.0.9\n"
    person.install()
    person.machine.run("install", "-d", "-o", "alice", "/srv/upgrade")
    job = person.add(
        "--shell",
        "echo begun; touch /srv/upgrade/begun; until [ -e /srv/upgrade/go ]; do sleep 0.05; done; "
        "echo '50 half' > $SVCQ_PROGRESS; echo over; echo '[42]' > $SVCQ_RESULT",
    )
    eventually(person.machine.path("/srv/upgrade/begun").exists, PATIENCE)
    (old,) = person.workers()

    upgrade(person)
    assert person.svcq("--version") == f"svcq {__version__}\n"
    person.say("restart")

    said = person.say("log", "--service")
    assert f"Worker {old['id']} (pid {old['pid']}, 0.0.9) goes on with us." in said
    assert "The store was brought from schema 2" in said
    eventually(lambda: person.workers(version=__version__, state="running"), PATIENCE)
    assert person.run("--", "echo", "new") == "new\n"
    (still,) = person.workers(version="0.0.9")
    assert (still["id"], still["running"]) == (old["id"], 1)
    assert "is not what this svcq would write" in person.problems()["unit"]

    person.machine.path("/srv/upgrade/go").touch()
    ended = person.ended(job)
    assert (ended["state"], ended["run"], ended["failures"]) == ("completed", 1, 0)
    assert ended["result"] == [42]
    assert person.output(job) == "begun\nover\n"
    eventually(lambda: not person.workers(version="0.0.9"), PATIENCE)

    person.say("install")
    assert person.problems() == {}
