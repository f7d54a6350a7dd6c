"""The API's document is complete and true: what it allows is taken, what it forbids is refused,
and what it says of answers holds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from svcq.client.verbs import VERBS
from svcq.policy import OPTION_NAMES
from svcq.store.queues import SETTING_NAMES
from svcq.web.openapi import describe
from svcq.web.schemas import OPTIONS, QUEUE_SETTINGS, SCHEMAS
from tests.web.served import Served

CONFIG = Path(__file__).parent / "schemathesis.toml"


def test_every_option_of_a_job_and_setting_of_a_queue_is_described() -> None:
    assert set(OPTIONS) == set(OPTION_NAMES)
    assert set(QUEUE_SETTINGS) == set(SETTING_NAMES)


def test_every_answer_is_described() -> None:
    assert {verb.answers.schema for verb in VERBS} <= SCHEMAS.keys()


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [
        operation["operationId"]
        for path in describe()["paths"].values()
        for operation in path.values()
    ]
    assert len(names) == len(set(names))


@pytest.mark.early
@pytest.mark.parametrize(
    ("phase", "seconds"), [("coverage", 75), ("fuzzing", 60), ("stateful", 20)]
)
def test_schemathesis_finds_nothing(idle: Served, tmp_path: Path, phase: str, seconds: int) -> None:
    """Every operation in each phase, for as long as there is time: to make up what it sends takes
    far longer than to answer it."""
    ran = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"), "--config-file", CONFIG, "run",
            f"http://127.0.0.1:{idle.port}/api/v1/openapi.json",
            "--header", f"Authorization: Bearer {idle.token()}", "--phases", phase,
            "--seed", "1", "--max-examples", "10", "--request-timeout", "20",
            "--max-time", str(seconds),
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (selected, generated) = (
        int(re.search(pattern, ran.stdout)[1])  # type: ignore[index]
        for pattern in (r"Selected: (\d+)/", r"(\d+) generated")
    )
    assert selected >= len(VERBS)
    assert generated >= (selected if phase != "stateful" else 1)
    assert idle.service.poll() is None
    assert "failed" not in idle.said()
