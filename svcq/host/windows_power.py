"""Windows: keeping the machine awake, putting it to sleep or out.

Reaches its libraries inside its functions, so that the file can be imported anywhere.
"""

from __future__ import annotations

import ctypes
import subprocess
from typing import Literal

from svcq.errors import Refused

ES_CONTINUOUS = 0x80000000
ES_SYSTEM_REQUIRED = 0x00000001


def execution_state(*, awake: bool) -> int:
    """What Windows is told: it holds for the thread that says it, until that says something else.

    The display may go dark all the same.
    """
    return ES_CONTINUOUS | ES_SYSTEM_REQUIRED if awake else ES_CONTINUOUS


class Inhibitor:
    """A request that the machine stay awake, of the thread that makes it."""

    def __init__(self) -> None:
        self._held = False
        self.trouble = ""
        """Why it could not be had, as a part of a sentence."""

    def hold(self, why: str) -> None:  # noqa: ARG002 (Windows does not ask for a reason)
        self.trouble = ""
        self._held = self._tell(awake=True)
        if not self._held:
            self.trouble = "Windows did not grant it"

    def state(self) -> Literal["free", "asked", "held", "refused"]:
        if self._held:
            return "held"
        return "refused" if self.trouble else "free"

    def release(self) -> None:
        if self._held:
            self._tell(awake=False)
            self._held = False

    def close(self) -> None:
        self.release()

    def _tell(self, *, awake: bool) -> bool:
        kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
        return bool(kernel.SetThreadExecutionState(execution_state(awake=awake)))


def sleep() -> None:
    """Put the machine to sleep; refused with what Windows says."""
    library = ctypes.WinDLL("powrprof")  # type: ignore[attr-defined]
    if not library.SetSuspendState(False, False, False):
        raise Refused("svcq could not put the machine to sleep (Windows refused).")


def shut_down() -> None:
    try:
        ran = subprocess.run(SHUT_DOWN, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"svcq could not shut the machine down ({error}).") from None
    if ran.returncode:
        said = " ".join(ran.stderr.split()).rstrip(".") or f"exit code {ran.returncode}"
        raise Refused(f"svcq could not shut the machine down ({said}).")


SHUT_DOWN = ["shutdown", "/s", "/t", "0"]
