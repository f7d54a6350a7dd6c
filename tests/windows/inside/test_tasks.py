"""Functions on Windows: run by runners in their own interpreter, in Job Objects; and the API."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from svcq import host
from svcq.host.windows_processes import ask_process_to_end
from svcq.jobs import State
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.windows.inside import sample
from tests.windows.inside.homes import WindowsHome


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WindowsHome]:
    home = WindowsHome(tmp_path_factory.mktemp("shared"))
    home.worker("--import", sample.__name__, "--slots", 2)
    yield home
    home.close()


def test_functions_and_coroutines_are_called(shared: WindowsHome) -> None:
    assert shared.call(sample.add, 2, 3).result == 5
    assert shared.call(sample.add_later, 2, 3).result == 5


def test_they_are_called_in_a_process_of_their_own(shared: WindowsHome) -> None:
    assert shared.call(sample.which_process).result not in (None, os.getpid())


def test_what_they_print_is_kept(shared: WindowsHome) -> None:
    for task in (sample.speak, sample.speak_async):
        ended = shared.call(task, "hello")
        assert ended.state is State.COMPLETED
        assert "hello" in shared.output(ended.id)


def test_a_call_is_ended_by_its_timeout(shared: WindowsHome) -> None:
    ended = shared.call_by_name(f"{sample.__name__}.rest", 600, timeout="500ms")
    assert "timeout" in str(ended.error)
    assert shared.call(sample.add, 1, 1).result == 2


def test_the_api_answers_who_has_its_token(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = WindowsHome(tmp_path_factory.mktemp("served"))
    try:
        up = home.start("up", "--count", "1", "--slots", "1")
        place = home.path / "web.json"
        eventually(place.exists, 2 * PATIENCE)
        token = (home.path / "token").read_text().strip()
        assert not host.others_may_read(home.path / "token")
        assert ask(place, "/api/v1/counts", None)[0] == 401
        status, said = ask(place, "/api/v1/counts", token)
        assert status == 200, said
        job = home.add("echo well")
        assert home.ended(job).state is State.COMPLETED
        running = home.add("ping -n 600 127.0.0.1")
        home.wait_until_running(running)
        assert ask_process_to_end(up.pid)
        assert up.wait(2 * PATIENCE) == 0
        assert home.client.workers() == []
        assert home.client.get(running).state is State.PENDING
    finally:
        home.close()


def ask(place: Path, path: str, token: str | None) -> tuple[int, str]:
    port = json.loads(place.read_text())["port"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as http:
        http.request("GET", path, headers={**headers, "Host": f"127.0.0.1:{port}"})
        answer = http.getresponse()
        return answer.status, answer.read().decode()
