"""Starts svcq for a task of Windows, which can say neither variables nor where output goes.

`python -P -m svcq.host.windows_start FILE`: the file, which belongs to us, holds both, and what of
svcq to run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from svcq.host import windows


def write(file: Path, words: Sequence[str], env: Mapping[str, str], log: str, **more: str) -> None:
    """What is to be started, for us alone to read and to change."""
    windows.private_directory(file.parent)
    text = json.dumps({**more, "words": list(words), "env": dict(env), "log": log}, indent=1)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(windows.create_private(draft), "wb") as opened:
        opened.write(text.encode())
    windows.replace_durably(draft, file)


def start(file: Path) -> None:
    import runpy

    windows.check_private(file)
    said = json.loads(file.read_text(encoding="utf-8"))
    os.environ.update(said["env"])
    if sys.stdout is None or sys.stderr is None:  # a program without a console has none
        Path(said["log"]).parent.mkdir(parents=True, exist_ok=True)
        sys.stdout = sys.stderr = open(  # noqa: SIM115 (as long as the program lasts)
            said["log"], "a", encoding="utf-8", errors="replace", buffering=1
        )
    sys.argv[1:] = said["words"]
    runpy.run_module("svcq", run_name="__main__", alter_sys=True)


def command(python: str, file: Path) -> list[str]:
    """Without a window, where there is such a Python beside the other."""
    quiet = os.path.join(os.path.dirname(python), "pythonw.exe")
    program = quiet if os.path.exists(quiet) else python
    # -P: a file of the user's that has a module's name is not taken for that module.
    return [program, "-P", "-m", "svcq.host.windows_start", str(file)]


if __name__ == "__main__":
    start(Path(sys.argv[1]))
