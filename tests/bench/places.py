"""Stores to measure, on a real disk, and the job they are filled with."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svcq import task
from svcq.config import Config, load
from svcq.policy import NewJob, Plan

# Not the system's temporary folder, which may be in memory: nothing waits for a disk there.
RESULTS = Path(__file__).parent / "results"


@contextmanager
def workplace() -> Iterator[Path]:
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULTS, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def config_in(folder: Path, name: str) -> Config:
    return load(folder / name, {})


@task(task_name="bench.work")
def work(to: str, subject: str, n: int) -> None:
    """A task with a few arguments, as most have."""


def call(n: int) -> dict[str, object]:
    return {"to": "someone@example.org", "subject": "hello", "n": n}


def args_text(n: int) -> str:
    """The same as the store keeps it."""
    return f'[[],{{"to":"someone@example.org","subject":"hello","n":{n}}}]'


def new_job(queue: str = "default", **plan: object) -> NewJob:
    return NewJob(Plan(queue, **plan), work.name, args_text(0))  # type: ignore[arg-type]
