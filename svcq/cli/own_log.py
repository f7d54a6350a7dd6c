"""`svcq log --service` and `--workers`: what svcq itself has to say."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

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
    with _Growing(path) as growing:
        lines = [line for file in log_files(path) if file != path for line in _lines(file)]
        lines += growing.lines()
        if options.tail is not None:
            lines = lines[len(lines) - min(options.tail, len(lines)) :]
        if options.json:
            print_json(lines)
            return
        _print(lines)
        if not lines and sys.stdout.isatty():
            print(f"Nothing was noted in {path} yet.", file=sys.stderr)
        while options.follow:
            time.sleep(_LOOK)
            _print(growing.lines())


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


class _Growing:
    """A log as it grows. One that was put aside is read to its end before the new one is begun."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def lines(self) -> list[str]:
        """The whole lines that were added since the last call."""
        found = self._more()
        if self._is_another():
            found += self._more()
            self._close()
            found += self._more()
        *whole, self._rest = (self._rest + found).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]

    def _more(self) -> bytes:
        if self._file is None:
            with suppress(FileNotFoundError):
                self._file = self._path.open("rb")
        if self._file is None:
            return b""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)  # it was copied and emptied
        return self._file.read()

    def _is_another(self) -> bool:
        if self._file is None:
            return False
        with suppress(FileNotFoundError):
            return not os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        return False

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
