"""The command line as a process, in a terminal or without one."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Mapping

from tests.helpers import eventually

SVCQ = [sys.executable, "-m", "svcq"]
Environment = Mapping[str, str]


class Terminal:
    """A process in a pseudo-terminal."""

    def __init__(self, env: Environment, *words: str, columns: int = 80) -> None:
        import fcntl
        import pty
        import termios

        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [*SVCQ, *words], stdin=slave, stdout=slave, stderr=slave, env=env,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        os.set_blocking(self._master, False)
        self.text = ""

    def see(self, pattern: str) -> str:
        """Wait until the pattern was printed; everything so far."""
        return eventually(lambda: re.search(pattern, self._read()) and self.text)

    def type(self, text: str) -> None:
        os.write(self._master, os.fsencode(text))

    def end(self) -> tuple[int, str]:
        """Its exit code, and all it printed."""
        eventually(lambda: self._read() is not None and self.process.poll() is not None)
        self._read()
        os.close(self._master)
        return self.process.returncode, self.text

    def _read(self) -> str:
        try:
            while data := os.read(self._master, 65536):
                self.text += data.decode(errors="replace").replace("\r\n", "\n")
        except OSError:  # nothing more yet, or nothing more at all
            pass
        return self.text


def lines_of(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).splitlines()


def run(env: Environment, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SVCQ, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
