"""`svcq` and `python -m svcq`: one program with several faces."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Without arguments it is the program: it takes them from the system, and is
    as quick as it can be."""
    if arguments is None:
        # An import makes thousands of objects, none of them garbage: no need to look so soon.
        gc.set_threshold(50_000)
    from svcq.cli import run

    code = run(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and _nothing_else_runs():
        # All is written. To take every module apart would cost as much as most commands do.
        sys.stderr.flush()
        os._exit(code)
    return code


def _nothing_else_runs() -> bool:
    threading = sys.modules.get("threading")
    return threading is None or threading.active_count() == 1


if __name__ == "__main__":
    sys.exit(main())
