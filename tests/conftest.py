"""Rules for the whole suite: a test that does not run has not passed."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from svcq.client import Client
from svcq.config import load
from tests.postgres import Server, serving

# A shell that starts us in the background lets all that we start ignore these.
signal.signal(signal.SIGINT, signal.default_int_handler)
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
    with serving() as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
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
def client(tmp_path: Path) -> Iterator[Client]:
    """A client on a store of its own, whatever the variables of whoever runs the tests say."""
    with Client(config=load(tmp_path / "home", {})) as client:
        yield client
