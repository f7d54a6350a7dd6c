"""Linux: svcq as a unit of the user's own systemd.

The service runs in one unit and each worker in a unit of its own, so that a restart, a crash or a
stop of the service leaves the workers and their jobs alone. When the machine goes down or the user
logs out, systemd ends the workers itself: each hears SIGTERM, lets its jobs go back unharmed, and
only what is left after that is killed (KillMode=mixed).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from svcq.errors import NotPermitted, Refused, Unreachable

UNIT = "svcq.service"
_HEAD = "# Made by `svcq install`; what you write in here, the next one replaces.\n"


class Standing(NamedTuple):
    """What the service manager says of the service."""

    installed: bool
    running: bool
    pid: int | None = None
    text: str | None = None  # what the service last said of itself, or why it is not there


def install(program: Sequence[str], env: Mapping[str, str], *, linger: bool = True) -> list[str]:
    """Register the service and let it start with the session; what was done, in sentences."""
    _systemctl("show-environment")
    file = unit_file()
    text = unit_text(program, env)
    if file.exists() and not file.read_text().startswith(_HEAD):
        raise Refused(f"{file} was not made by svcq: move it away, then install again.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    _systemctl("daemon-reload")
    _systemctl("enable", UNIT)
    done = [f"Installed {file}: svcq starts with your session."]
    if linger:
        done.append(_let_linger())
    return done


def uninstall() -> list[str]:
    """Stop the service and its workers, and remove the unit; data stays."""
    file = unit_file()
    if not file.exists():
        raise Refused("svcq is not installed as a service here: there is nothing to remove.")
    _systemctl("stop", UNIT)
    _systemctl("stop", "svcq-worker-*.service")
    _systemctl("disable", UNIT)
    file.unlink()
    _systemctl("daemon-reload")
    return [f"Removed {file}. Your jobs and settings are still there."]


def start() -> None:
    _need_unit()
    _systemctl("start", UNIT)


def stop() -> None:
    _need_unit()
    _systemctl("stop", UNIT)


def restart() -> None:
    _need_unit()
    _systemctl("restart", UNIT)


def standing() -> Standing:
    if not unit_file().exists():
        return Standing(installed=False, running=False)
    wanted = ("ActiveState", "SubState", "MainPID", "StatusText", "Result")
    try:
        said = _systemctl("show", UNIT, "--property", ",".join(wanted))
    except (Refused, Unreachable, NotPermitted) as error:
        return Standing(installed=True, running=False, text=str(error))
    facts = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    running = facts.get("ActiveState") == "active"
    text = facts.get("StatusText") or None
    if not running and facts.get("Result") not in ("success", "", None):
        text = f"it ended with {facts['Result']}: see journalctl --user -u {UNIT}"
    pid = int(facts.get("MainPID") or 0)
    return Standing(installed=True, running=running, pid=pid or None, text=text)


def why_leaving() -> Literal["stop", "restart", "down"]:
    """Why the manager asks the service to end: for itself alone, to start it anew, or because the
    session or the machine ends."""
    if "INVOCATION_ID" not in os.environ:
        return "stop"
    with suppress(OSError, subprocess.SubprocessError):
        if _ask("is-system-running") == "stopping":
            return "down"
        if "restart" in _ask("list-jobs", "--no-legend", UNIT).split():
            return "restart"
    return "stop"


def _ask(*words: str) -> str:
    ran = subprocess.run(
        ["systemctl", "--user", *words], capture_output=True, text=True, check=False, timeout=10
    )
    return ran.stdout.strip()


def start_worker(
    program: Sequence[str], env: Mapping[str, str], log: Path, number: int
) -> int | None:
    """Start a worker in a unit of its own; its pid, or None where the manager does not let us."""
    if shutil.which("systemd-run") is None or "INVOCATION_ID" not in os.environ:
        return None
    unit = f"svcq-worker-{os.getpid()}-{number}.service"
    settings = [
        "KillMode=mixed", "Delegate=yes", "OOMPolicy=continue", "WorkingDirectory=/",
        f"StandardOutput=append:{log}", f"StandardError=append:{log}",
    ]  # fmt: skip
    words = ["systemd-run", "--user", "--quiet", "--collect", "--service-type=exec"]
    words += [f"--unit={unit}", *(f"--property={one}" for one in settings)]
    # By name alone: a value in the arguments could be read by every user of the machine.
    words += [f"--setenv={name}" for name in env if name.isidentifier()]
    try:
        subprocess.run(
            [*words, "--", *program], env=dict(env), check=True, capture_output=True, timeout=30
        )
        said = _systemctl("show", unit, "--property", "MainPID", "--value")
    except (OSError, subprocess.SubprocessError, Refused, Unreachable, NotPermitted):
        return None
    return int(said.strip() or 0) or None


def notify(text: str) -> None:
    """Tell systemd how we are (sd_notify); nobody listens when it did not start us."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door:
        try:
            door.sendto(text.encode(), address)
        except OSError:
            return


def unit_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base, "systemd", "user", UNIT)


def unit_text(program: Sequence[str], env: Mapping[str, str]) -> str:
    lines = [
        "[Unit]",
        "Description=svcq, the job queue",
        "",
        "[Service]",
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={' '.join(_quoted(word).replace('$', '$$') for word in program)}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in env.items()),
        "# Workers that could get no unit of their own are children: they too outlive a restart.",
        "KillMode=process",
        "Restart=on-failure",
        "RestartSec=1",
        "WatchdogSec=60",
        "TimeoutAbortSec=10",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    return _HEAD + "\n".join(lines)


def _quoted(word: str) -> str:
    """One word of a unit file, where % begins a specifier."""
    if any(ord(letter) < 32 for letter in word):
        raise Refused(f"{word!r} holds a control character, which a unit file cannot: rename it.")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _need_unit() -> None:
    if not unit_file().exists():
        raise Refused("svcq is not installed as a service here: run svcq install, or svcq up.")


def _let_linger() -> str:
    user = str(os.getuid())
    try:
        subprocess.run(
            ["loginctl", "enable-linger", user], check=True, capture_output=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return (
            "It ends when you log out, because lingering could not be switched on: "
            "run loginctl enable-linger if jobs are to go on then."
        )
    return "It goes on when you log out, and starts with the machine (--no-linger declines)."


def _systemctl(*words: str) -> str:
    try:
        ran = subprocess.run(
            ["systemctl", "--user", "--no-pager", *words],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    except FileNotFoundError:
        raise Refused(
            "There is no systemd on this machine to run a service: use svcq up."
        ) from None
    except subprocess.TimeoutExpired:
        raise Unreachable(
            f"systemd did not answer to `systemctl --user {words[0]}` within two minutes: "
            "look at `systemctl --user status`."
        ) from None
    if ran.returncode:
        said = " ".join(ran.stderr.split()) or f"exit code {ran.returncode}"
        if "Failed to connect" in said or "not been booted" in said:
            raise Unreachable(
                f"Your systemd cannot be reached ({said}): log in on a machine that runs systemd, "
                "or use svcq up."
            )
        raise Refused(f"systemctl --user {' '.join(words)} failed: {said}")
    return ran.stdout
