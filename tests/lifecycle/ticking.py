"""A clock alone, in a process of its own, until it is killed."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from svcq.config import load
from svcq.service.clock import Clock


def main(home: str) -> None:
    with Clock(load(Path(home), {}), lambda said: print(said, flush=True)):
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
