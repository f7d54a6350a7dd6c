"""Linux: keeping the machine awake, putting it to sleep or out, all through logind.

To close the lid of a machine still puts it to sleep: logind leaves that to its user.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import Literal

from svcq.errors import Refused
from svcq.host.linux_systemctl import Systemctl

_SIGN = b"held\n"
_PATIENCE = 2.0  # seconds for a lock to be gone


class Inhibitor:
    """A lock of logind's against sleep.

    systemd-inhibit asks for it, and has it for as long as the program lives that it starts: one
    that ends with our pipe, and so with us, however we end.
    """

    def __init__(self) -> None:
        self._keeper: subprocess.Popen[bytes] | None = None
        self._former: list[subprocess.Popen[bytes]] = []  # let go, and about to end
        self._held = False
        self.trouble = ""
        """Why it could not be had, as a part of a sentence."""

    def hold(self, why: str) -> None:
        """Ask for it; `state` tells what became of that."""
        self.release()
        self.trouble = ""
        words = ["systemd-inhibit", "--what=sleep", "--mode=block", "--who=svcq", f"--why={why}"]
        try:
            self._keeper = subprocess.Popen(
                [*words, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True, bufsize=0,
            )  # fmt: skip
        except OSError:
            self.trouble = "there is no logind to ask for it"
            return
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        os.set_blocking(self._keeper.stdout.fileno(), False)
        with suppress(BrokenPipeError):
            self._keeper.stdin.write(_SIGN)  # it comes back when the lock is there

    def state(self) -> Literal["free", "asked", "held", "refused"]:
        self._former = [one for one in self._former if one.poll() is None]
        if self._keeper is None:
            return "refused" if self.trouble else "free"
        if self._keeper.poll() is not None:
            self.trouble = self._last_words(self._keeper)
            self._forget()
            return "refused"
        assert self._keeper.stdout is not None
        if not self._held and self._keeper.stdout.read(len(_SIGN)):
            self._held = True
        return "held" if self._held else "asked"

    def release(self) -> None:
        """Let go; nobody waits for it to have happened."""
        if self._keeper is not None:
            self._former.append(self._keeper)
            self._forget()

    def close(self) -> None:
        """Let go for good."""
        self.release()
        for one in self._former:
            try:
                one.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        self._former = []

    def _last_words(self, keeper: subprocess.Popen[bytes]) -> str:
        assert keeper.stderr is not None
        os.set_blocking(keeper.stderr.fileno(), False)
        said = (keeper.stderr.read() or b"").decode("utf-8", "replace").split("\n")[0].strip()
        return f"logind said: {said.rstrip('.')}" if said else "logind did not grant it"

    def _forget(self) -> None:
        if self._keeper is not None:
            for stream in (self._keeper.stdin, self._keeper.stdout, self._keeper.stderr):
                if stream is not None:
                    stream.close()
        self._keeper, self._held = None, False


def sleep() -> None:
    """Put the machine to sleep; refused with what logind says."""
    _ask("suspend", "put the machine to sleep")


def shut_down() -> None:
    _ask("poweroff", "shut the machine down")


def _ask(verb: str, what: str) -> None:
    systemctl = Systemctl(system=True)
    said = systemctl.refusal(verb)
    if said is None or "without replying" in said:  # it was gone before it could answer
        return
    if systemctl.ask("is-system-running") != "stopping":
        raise Refused(f"svcq could not {what} ({said.rstrip('.')}).")
