"""A worker on Windows: commands in Job Objects, their output, their ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from svcq.jobs import State
from tests.lifecycle.homes import Home


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("shared"))
    home.worker("--slots", 4)
    yield home
    home.close()


def test_a_command_runs_and_its_output_is_kept(shared: Home) -> None:
    job = shared.add("echo hello& echo world 1>&2")
    assert shared.ended(job).state is State.COMPLETED
    assert shared.output(job).split() == ["hello", "world"]
