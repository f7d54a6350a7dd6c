"""How soon a command of the command line is done, against an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.bench.figures import Figure, Scale, alternate

SVCQ = str(Path(sys.executable).with_name("svcq"))
# What each may take: so many times a bare interpreter, and so many milliseconds besides.
COMMANDS = {
    ("add", "--", "true"): (3.5, 0),
    ("--help",): (3.5, 0),
    ("why", "1"): (3.5, 30),
    ("status",): (3.5, 30),
}


def cli(scale: Scale, folder: Path) -> Iterator[Figure]:
    # As someone has it who has set nothing, with the modules compiled.
    ours_alone = ("SVCQ_", "XDG_", "PYTHON")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours_alone)}
    env["HOME"] = str(folder)
    sides = [_timed([sys.executable, "-c", "pass"], env)]
    sides += [_timed([SVCQ, *words], env) for words in COMMANDS]
    for side in sides:
        side()
    bare, *ours = alternate(scale.starts, *sides)
    for (words, (most, more)), times in zip(COMMANDS.items(), ours, strict=True):
        ratio = median(
            (mine - more / 1e3) / theirs for mine, theirs in zip(times, bare, strict=True)
        )
        besides = f", less {more} ms" if more else ""
        yield Figure(
            "cli", f"svcq {' '.join(words)}{besides}", f"{median(times) * 1e3:.1f} ms",
            f"python -c pass {median(bare) * 1e3:.1f} ms", ratio, at_most=most,
        )  # fmt: skip


def _timed(argv: list[str], env: dict[str, str]) -> Callable[[], float]:
    def run() -> float:
        start = perf_counter()
        subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=True)
        return perf_counter() - start

    return run
