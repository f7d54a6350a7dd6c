"""Rules for the whole suite: a test that does not run has not passed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from svcq.client import Client
from svcq.config import load

if TYPE_CHECKING:
    from tests.postgres import Server

# A shell that starts us in the background lets all that we start ignore these.
signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32":
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# A busy machine is no failure, and a failure elsewhere must be repeatable here.
settings.register_profile(
    "svcq", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("svcq")

pytest_plugins = ["pytester"]

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server that all tests of this process share; each has a database of its own."""
    from tests.postgres import serving  # it is one of Linux, and Windows has none

    with serving() as server:
        yield server


ENGINES = ("sqlite",) if sys.platform == "win32" else ("sqlite", "postgres")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module that says so has its tests run on a store of each kind."""
    if "engine" in metafunc.fixturenames and getattr(metafunc.module, "EVERY_ENGINE", False):
        metafunc.parametrize("engine", ENGINES, indirect=True)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def stores(engine: str, request: pytest.FixtureRequest) -> Iterator[Callable[[], dict[str, str]]]:
    """Gives the variables that name a store of this test's own, anew at each call."""
    with ExitStack() as lent:

        def another() -> dict[str, str]:
            if engine == "sqlite":
                return {}
            server: Server = request.getfixturevalue("postgres")
            return {"SVCQ_STORE": lent.enter_context(server.lent())}

        yield another


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if sys.platform == "win32":
        others = [item for item in items if item.get_closest_marker("posix") is not None]
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)
    items.sort(key=lambda item: item.get_closest_marker("early") is None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return fail_if_skipped((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return fail_if_skipped((yield))


def fail_if_skipped(report: Report) -> Report:
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped: make it run here, or remove it."
    return report


@pytest.fixture
def client(tmp_path: Path, stores: Callable[[], dict[str, str]]) -> Iterator[Client]:
    """A client on a store of its own, whatever the variables of whoever runs the tests say."""
    with Client(config=load(tmp_path / "home", stores())) as client:
        yield client
