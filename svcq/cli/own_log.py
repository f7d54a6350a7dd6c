"""`svcq log --service` and `--workers`: what svcq itself has to say."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

from svcq.cli.parser import Namespace
from svcq.cli.text import clean, print_json
from svcq.errors import InvalidInput

_LOOK = 0.2  # seconds between looks at a file that grows


def print_own_log(options: Namespace) -> None:
    """What the service, or the workers, have noted; with `--follow`, until Ctrl-C."""
    from svcq.config import load
    from svcq.service.log import log_files, service_log
    from svcq.worker.program import worker_log

    _check(options)
    config = load()
    path = service_log(config.home) if options.service else worker_log(config)
    lines = [line for file in log_files(path) for line in _lines(file)]
    if options.tail is not None:
        lines = lines[len(lines) - min(options.tail, len(lines)) :]
    if options.json:
        print_json(lines)
        return
    _print(lines)
    if not lines and sys.stdout.isatty():
        print(f"Nothing was noted in {path} yet.", file=sys.stderr)
    if options.follow:
        _follow(path)


def _check(options: Namespace) -> None:
    given = [
        ("a job", options.job), ("--run", options.number), ("--all", options.all or None),
        ("--workers", (options.service and options.workers) or None),
    ]  # fmt: skip
    which = "--service" if options.service else "--workers"
    for name, value in given:
        if value is not None:
            raise InvalidInput(f"Both {which} and {name} are given: give one.")
    if options.follow and options.json:
        raise InvalidInput("Both --follow and --json are given: give one.")


def _lines(file: Path) -> list[str]:
    return file.read_text("utf-8", "replace").splitlines()


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(clean(line))
    sys.stdout.flush()


def _follow(path: Path) -> None:
    """What is added from now on; a file that was begun anew is read from its start."""
    from svcq.logs import LogReader

    reader = LogReader(path, path.stat().st_size if path.exists() else 0)
    rest = b""
    while True:
        if path.exists() and path.stat().st_size < reader.position:
            reader = LogReader(path)
        rest += b"".join(reader.read())
        *whole, rest = rest.split(b"\n")
        _print(line.decode("utf-8", "replace") for line in whole)
        time.sleep(_LOOK)
