"""Linux: speaking to a systemd, the user's own or the machine's; what it refuses, as sentences."""

from __future__ import annotations

import os
import subprocess

from svcq.errors import NotPermitted, Refused, SvcqError, Unreachable

_PATIENCE = 120.0  # seconds: a unit that stops may take its time


class Systemctl:
    def __init__(self, *, system: bool) -> None:
        self.system = system
        self.command = "systemctl" if system else "systemctl --user"

    def __call__(self, *words: str) -> str:
        """What it says; its errors as ours."""
        try:
            ran = self._run(*words, patience=_PATIENCE)
        except FileNotFoundError:
            raise Refused(
                "There is no systemd on this machine to run a service: use svcq up."
            ) from None
        except subprocess.TimeoutExpired:
            raise Unreachable(
                f"systemd did not answer to `{self.command} {words[0]}` within two minutes: "
                f"look at `{self.command} status`."
            ) from None
        if ran.returncode:
            raise self._error(words, " ".join(ran.stderr.split()) or f"exit code {ran.returncode}")
        return ran.stdout

    def ask(self, *words: str) -> str:
        """What it says, be it of a failure; nothing where it cannot be asked."""
        try:
            return self._run(*words, patience=10.0).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return ""

    def refusal(self, *words: str) -> str | None:
        """Why it did not do something; None when it did."""
        try:
            ran = self._run(*words, patience=_PATIENCE)
        except FileNotFoundError:
            return "there is no systemd on this machine"
        except subprocess.TimeoutExpired:
            return "systemd did not answer"
        return (" ".join(ran.stderr.split()) or "no reason given") if ran.returncode else None

    def properties(self, unit: str, *names: str) -> dict[str, str]:
        said = self("show", unit, "--property", ",".join(names))
        return dict(line.split("=", 1) for line in said.splitlines() if "=" in line)

    def _run(self, *words: str, patience: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command.split(), "--no-pager", "--no-ask-password", *words],
            capture_output=True, text=True, check=False, timeout=patience,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _error(self, words: tuple[str, ...], said: str) -> SvcqError:
        if "Failed to connect" in said or "not been booted" in said:
            whose, where = ("The", "use") if self.system else ("Your", "log in on")
            return Unreachable(
                f"{whose} systemd cannot be reached ({said}): {where} a machine that runs systemd, "
                "or use svcq up."
            )
        if "authentication required" in said or "Access denied" in said:
            return NotPermitted(
                f"{self.command} {' '.join(words)} is not permitted ({said}): "
                "ask an administrator of this machine, or use sudo."
            )
        return Refused(f"{self.command} {' '.join(words)} failed: {said.rstrip('.')}.")


def is_there() -> bool:
    """Whether the machine was started by systemd, as its own libraries tell."""
    return os.path.isdir("/run/systemd/system")
