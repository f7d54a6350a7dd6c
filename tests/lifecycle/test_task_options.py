"""What a task says of itself holds for jobs that are queued by its name alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import svcq
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home
from tests.lifecycle.test_projects import add_project, other_pythons
from tests.lifecycle.test_store_away import locked, spooled

SHOP = """
import datetime, os, time
import svcq

@svcq.task(max_attempts=1)
def once():
    raise ValueError("no")

@svcq.task(max_attempts=4, backoff="fixed", backoff_base=0.01)
def often():
    raise ValueError("no")

@svcq.task(timeout=datetime.timedelta(seconds=1), grace="100ms", max_attempts=1)
def slow():
    time.sleep(600)

@svcq.task(timeout=0.3, grace="100ms", max_attempts=1)
async def slow_async():
    import asyncio
    await asyncio.sleep(600)

@svcq.task(nice=7)
def how_nice():
    return os.nice(0)

@svcq.task(on_lost="dead")
def wait_for(file):
    while not os.path.exists(file):
        time.sleep(0.01)

@svcq.task(queue="mail", priority=5, tags=["post"], expires="1d")
def send():
    pass
"""
# The defaults and the queue say something else than the tasks do.
SETTINGS = """
busy_wait = "100ms"
[jobs]
grace = "30s"
max_attempts = 2
backoff = "fixed"
backoff_base = 0.02
timeout = "10m"
"""


@pytest.fixture
def shop(home: Home) -> Home:
    home.configure(SETTINGS)
    add_project(home, "shop", SHOP)
    return home


def test_by_name_from_the_command_line(shop: Home) -> None:
    shop.worker()
    jobs = [shop.svcq("add", "--task", f"shop.{task}").stdout for task in ("once", "often", "slow")]
    said = [shop.ended(int(job)) for job in jobs]
    assert [(one.state, one.failures, one.max_attempts) for one in said] == [
        ("dead", 1, 1), ("dead", 4, 4), ("dead", 1, 1),
    ]  # fmt: skip
    assert said[2].error == "ran longer than its timeout of 1s"
    assert "attempt 1 of 1 failed" in shop.svcq("why", said[0].id).stdout
    assert "1 of 1" in shop.svcq("show", said[0].id).stdout


def test_by_name_from_a_file(shop: Home) -> None:
    shop.worker()
    lines = [{"task": "shop.once"}, {"task": "shop.slow_async"}, {"task": "shop.how_nice"}]
    file = shop.work / "jobs"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert shop.svcq("enqueue", "--file", file).returncode == 0
    once, slow, nice = (shop.ended(job) for job in (1, 2, 3))
    assert (once.state, once.failures) == ("dead", 1)
    assert (slow.state, slow.reason) == ("dead", "timed out")
    assert nice.result == 7


def test_known_only_when_the_runner_has_come_up(shop: Home) -> None:
    """Queued before any worker has ever told of the task, and claimed before its runner runs."""
    job = shop.client.add([shop.client.new_task("shop.often", [], {})])[0].id
    assert shop.client.get(job).max_attempts != 4  # nobody knows better yet
    shop.worker()
    ended = shop.ended(job)
    assert (ended.state, ended.failures, ended.max_attempts) == ("dead", 4, 4)


def test_the_job_counts_for_more_and_the_queue_for_less(shop: Home) -> None:
    shop.client.queue("default", max_attempts=9, timeout=500)
    shop.worker()
    assert shop.call_by_name("shop.once", max_attempts=3).failures == 3
    assert shop.call_by_name("shop.often").failures == 4
    assert shop.call_by_name("shop.slow").error == "ran longer than its timeout of 1s"


def test_where_it_goes_once_a_worker_has_told(shop: Home) -> None:
    worker = shop.worker()
    eventually(lambda: shop.client.store.declared("shop.send").options != "{}", PATIENCE)
    worker.signal(signal.SIGTERM)
    worker.ended()
    job = json.loads(shop.svcq("add", "--task", "shop.send", "--json").stdout)
    assert (job["queue"], job["priority"], job["tags"]) == ("mail", 5, ["post"])
    assert job["expires_at"] is not None
    own = json.loads(shop.svcq("add", "--task", "shop.send", "--queue", "q", "--json").stdout)
    assert (own["queue"], own["priority"]) == ("q", 5)


def test_it_holds_for_a_job_whose_worker_died(shop: Home, tmp_path: Path) -> None:
    worker = shop.worker()
    new = shop.client.new_task("shop.wait_for", [str(tmp_path / "never")], {})
    job = shop.client.add([new])[0].id
    shop.wait_until_running(job)
    worker.kill()
    shop.worker("--queue", "none")
    ended = shop.ended(job)
    assert (ended.state, ended.reason, ended.losses) == ("dead", "lost too often", 1)


def test_it_holds_for_an_end_that_was_spooled(shop: Home, tmp_path: Path) -> None:
    (shop.work / "shop" / "shop.py").write_text(
        "import os, time, svcq\n@svcq.task(max_attempts=1)\ndef fail(file):\n"
        "    while not os.path.exists(file): time.sleep(0.01)\n    raise ValueError('no')\n"
    )
    worker = shop.worker()
    new = shop.client.new_task("shop.fail", [str(tmp_path / "go")], {})
    job = shop.client.add([new])[0].id
    shop.wait_until_running(job)
    with locked(shop):
        (tmp_path / "go").touch()
        eventually(lambda: spooled(shop), PATIENCE)
        worker.kill()
    shop.worker("--queue", "none")
    ended = shop.ended(job)
    assert (ended.state, ended.reason, ended.failures) == ("dead", "out of attempts", 1)


def test_a_declaration_that_has_changed(shop: Home) -> None:
    worker = shop.worker()
    assert shop.call_by_name("shop.once").failures == 1
    worker.signal(signal.SIGTERM)
    worker.ended()
    file = shop.work / "shop" / "shop.py"
    file.write_text(
        file.read_text().replace("@svcq.task(max_attempts=1)\ndef once", "@svcq.task\ndef once")
    )
    shop.worker()
    eventually(lambda: shop.client.store.declared("shop.once").options == "{}", PATIENCE)
    assert shop.call_by_name("shop.once").failures == 2


@pytest.mark.parametrize("python", other_pythons())
def test_a_project_in_another_interpreter(home: Home, python: str) -> None:
    """Without svcq nothing is declared, and nothing is in the way."""
    add_project(home, "plain", "def fail():\n    raise ValueError('no')\n", python)
    home.worker()
    assert home.call_by_name("plain.fail", max_attempts=2).failures == 2


def test_an_older_svcq_in_the_project_tells_nothing(home: Home) -> None:
    add_project(
        home, "old",
        "import svcq\n@svcq.task(max_attempts=5)\ndef fail():\n    raise ValueError('no')\n"
        "del fail.words, fail.policy\n",
    )  # fmt: skip
    home.worker()
    assert home.call_by_name("old.fail").failures == 1  # as the settings say


def test_a_declaration_that_makes_no_sense_is_told_of_and_left_out(home: Home) -> None:
    add_project(
        home, "odd",
        "import svcq\n@svcq.task(max_attempts=5)\ndef fail():\n    raise ValueError('no')\n"
        "fail.policy = '{\"timeout\": \"soon\"}'\n",
    )  # fmt: skip
    home.worker()
    assert home.call_by_name("odd.fail").failures == 1
    assert "What the task odd.fail says of itself does not count" in home.said()


@svcq.task(max_attempts=1, task_name="options.fail_once")
def fail_once() -> None:
    raise ValueError("no")


def test_the_worker_of_the_library(home: Home) -> None:
    home.configure('[jobs]\nmax_attempts = 3\nbackoff = "fixed"\nbackoff_base = 0.01\n')
    client = svcq.Client(home=home.path)
    with svcq.Worker(client=client):
        ended = home.call_by_name("options.fail_once")
    client.close()
    assert (ended.state, ended.failures, ended.max_attempts) == ("dead", 1, 1)


def test_another_program_sees_what_a_worker_has_told(shop: Home) -> None:
    shop.worker()
    eventually(lambda: shop.client.store.declared("shop.once").options != "{}", PATIENCE)
    code = (
        "import svcq; c = svcq.Client(); "
        "print(c.add([c.new_task('shop.once', [], {})]) and c.list()[0].max_attempts)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], env=shop.environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert said.stdout == "1\n"
