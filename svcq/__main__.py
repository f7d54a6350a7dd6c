"""`svcq` and `python -m svcq`: one program with several faces."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from signal import SIGINT, default_int_handler, getsignal, signal
else:
    from _signal import SIGINT, default_int_handler, getsignal, signal  # without an enum for each

INTERRUPTED = 128 + 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Without arguments it is the program: it takes them from the system, and is
    as quick as it can be."""
    if arguments is not None:
        from svcq.cli import run

        return run(arguments)
    # An import makes thousands of objects, none of them garbage: no need to look so soon.
    gc.set_threshold(50_000)
    code = _run_program()
    if code == INTERRUPTED or _nothing_else_runs():
        # All is written. To take every module apart would cost as much as most commands do, and
        # who presses Ctrl-C does not wait for a thread.
        os._exit(code)
    return code


def _run_program() -> int:
    """Ctrl-C is an exception for a command, and before and after it the end, without traceback."""
    heard = getsignal(SIGINT) is default_int_handler  # in the background it may be ignored
    if heard:
        signal(SIGINT, _leave)
    from svcq.cli import run

    try:
        try:
            if heard:
                signal(SIGINT, default_int_handler)
            return run(sys.argv[1:])
        finally:
            if heard:
                signal(SIGINT, _leave)
    except KeyboardInterrupt:
        return INTERRUPTED


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)


def _nothing_else_runs() -> bool:
    threading = sys.modules.get("threading")
    return threading is None or threading.active_count() == 1


if __name__ == "__main__":
    sys.exit(main())
