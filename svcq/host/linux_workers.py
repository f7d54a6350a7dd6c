"""Linux: workers in units of their own, which no end of the service touches.

A user's systemd makes a transient unit when it is asked. The machine's grants none to the account
of the service; there a worker is what systemd starts for a connection to a socket.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from svcq.errors import SvcqError
from svcq.host.linux_cgroups import DELEGATED
from svcq.host.linux_systemctl import Systemctl
from svcq.host.linux_units import DOOR, WORKER_SETTINGS

_PATIENCE = 30.0  # seconds for a worker to be started
_FIRST_PASSED = 3  # the descriptor of what systemd hands over
# What systemd tells a program of the unit it is in; a job is in no such unit.
_OF_THE_UNIT = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "REMOTE_ADDR", "REMOTE_PORT")


def start_transient(
    program: Sequence[str], env: Mapping[str, str], log: Path, number: int
) -> int | None:
    """Start a worker under the user's systemd; its pid, or None where that does not let us."""
    if shutil.which("systemd-run") is None or "INVOCATION_ID" not in os.environ:
        return None
    unit = f"svcq-worker-{os.getpid()}-{number}.service"
    settings = [*WORKER_SETTINGS, f"StandardOutput=append:{log}", f"StandardError=append:{log}"]
    words = ["systemd-run", "--user", "--quiet", "--collect", "--service-type=exec"]
    words += [f"--unit={unit}", *(f"--property={one}" for one in settings)]
    env = {**env, DELEGATED: unit}
    # By name alone: a value in the arguments could be read by every user of the machine.
    words += [f"--setenv={name}" for name in env if name.isidentifier()]
    try:
        subprocess.run(
            [*words, "--", *program], env=dict(env), check=True, capture_output=True,
            timeout=_PATIENCE,
        )  # fmt: skip
        said = Systemctl(system=False).properties(unit, "MainPID")
    except (OSError, subprocess.SubprocessError, SvcqError):
        return None
    return int(said.get("MainPID") or 0) or None


def ask_for_one(door: str = DOOR) -> int | None:
    """Have the machine's systemd start a worker; its pid, or None where nobody answers."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_PATIENCE)
            line.connect(door)
            said = b""
            while not said.endswith(b"\n") and (more := line.recv(64)):
                said += more
    except OSError:
        return None
    return int(said) if said.strip().isdigit() else None


def answer(log: Path) -> None:
    """The worker's side of that: say who we are, then write into our own log.

    Not systemd but we open that file: it is in a folder of the account, which could have put a link
    to anyone's file there.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return
    for name in _OF_THE_UNIT:
        os.environ.pop(name, None)
    with suppress(OSError), socket.socket(fileno=_FIRST_PASSED) as line:  # who asked may be gone
        line.sendall(f"{os.getpid()}\n".encode())
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(log, flags, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)
