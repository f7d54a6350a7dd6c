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
COMMANDS = {
    "svcq add -- true": [SVCQ, "add", "--", "true"],
    "svcq --help": [SVCQ, "--help"],
}


def cli(scale: Scale, folder: Path) -> Iterator[Figure]:
    # As someone has it who has set nothing, with the modules compiled.
    ours_alone = ("SVCQ_", "XDG_", "PYTHON")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours_alone)}
    env["HOME"] = str(folder)
    sides = [_timed(argv, env) for argv in ([sys.executable, "-c", "pass"], *COMMANDS.values())]
    for side in sides:
        side()
    bare, *ours = alternate(scale.starts, *sides)
    for what, times in zip(COMMANDS, ours, strict=True):
        ratio = median(mine / theirs for mine, theirs in zip(times, bare, strict=True))
        yield Figure(
            "cli", what, f"{median(times) * 1e3:.1f} ms",
            f"python -c pass {median(bare) * 1e3:.1f} ms", ratio, at_most=3.5,
        )  # fmt: skip


def _timed(argv: list[str], env: dict[str, str]) -> Callable[[], float]:
    def run() -> float:
        start = perf_counter()
        subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=True)
        return perf_counter() - start

    return run
