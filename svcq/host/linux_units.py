"""Linux: the text of every unit of svcq, from one source for a user's systemd and the machine's.

The service is watched and, for the machine, hardened. Workers have units of their own and no
hardening at all: what a job may do is what its account may do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from svcq.errors import Refused
from svcq.host.linux_cgroups import DELEGATED
from svcq.host.wanted import Timer

SERVICE = "svcq.service"
SOCKET = "svcq-worker.socket"
WORKER = "svcq-worker@.service"
# Of the machine's service alone.
ACCOUNT = "svcq"
HOME = "/var/lib/svcq"
DOOR = "/run/svcq/worker"
"""Whoever connects here has a worker started; the account alone may."""

USERS = "svcq/users"
"""Where the service lets other users in, below /run; the account's own."""

TIMERS = "svcq-schedule-"
"""How the name of every timer begins."""

_INSTALL, _HANDOFF = "install", "schedule handoff"
_MADE_BY_US = "# Made by `svcq {by}`"
_HEAD = (
    _MADE_BY_US + ", whose next call replaces it.\n"
    "# Changes belong into a file beside it: systemctl {user}edit {unit}\n"
    "# Sum: {sum}\n"
)
_DECLINED = "X-Linger=no"

WORKER_SETTINGS = (
    # Asked to end, it lets its jobs go back; what is left after that is killed.
    "KillMode=mixed",
    "Delegate=yes",
    # A job that takes all memory is not the end of the others.
    "OOMPolicy=continue",
    "TasksMax=infinity",
    "WorkingDirectory=/",
)

# It starts nothing but workers, which systemd starts for it, and touches nothing but its home. What
# is not in the list, it needs: other processes and their environments, to find and end what a dead
# worker left behind; /tmp as it is, for workers that could get no unit of their own; /proc as it is
# (ProtectKernelTunables and ProtectControlGroups mount another), where a container has its boot id.
HARDENED = (
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateDevices=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "LockPersonality=yes",
    "MemoryDenyWriteExecute=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged @resources",
    "SystemCallErrorNumber=EPERM",
    "UMask=0077",
)


class Unit(NamedTuple):
    name: str
    text: str


def user_units(python: str, env: Mapping[str, str], *, linger: bool = True) -> list[Unit]:
    """What runs with the session of a user; workers get transient units."""
    # -P: a file of the user's that has a module's name is not taken for that module.
    program = [python, "-P", "-m", "svcq", "service"]
    about = [] if linger else [f"# Lingering was declined.\n{_DECLINED}"]
    body = _sections(
        Unit=["Description=svcq, the job queue", *_NO_LIMIT, *about],
        Service=_service(program, env),
        Install=["WantedBy=default.target"],
    )
    return [_sealed(SERVICE, body, user=True)]


def system_units(python: str, env: Mapping[str, str]) -> list[Unit]:
    """What runs with the machine, as an account of its own.

    That account may start no units. So systemd does it, for each connection to a socket that only
    the account may open.
    """
    program = [python, "-I", "-m", "svcq", "--system"]
    worker = [*program, "worker", "run", "--kept"]
    needs_home = f"RequiresMountsFor={HOME}"
    service = _sections(
        Unit=[
            "Description=svcq, the job queue of this machine", *_NO_LIMIT, needs_home,
            f"Wants={SOCKET}", f"After={SOCKET}",
        ],
        Service=[
            *_service([*program, "service"], env), f"User={ACCOUNT}", "WorkingDirectory=/",
            f"StateDirectory={ACCOUNT}", "StateDirectoryMode=0700",
            f"RuntimeDirectory={USERS}", "RuntimeDirectoryMode=0755", *HARDENED,
        ],
        Install=["WantedBy=multi-user.target"],
    )  # fmt: skip
    socket = _sections(
        Unit=["Description=Where svcq asks for its workers"],
        Socket=[
            f"ListenStream={DOOR}", "Accept=yes", f"SocketUser={ACCOUNT}", "SocketMode=0600",
            "DirectoryMode=0755", "RemoveOnStop=yes", "MaxConnections=1024",
        ],
    )  # fmt: skip
    template = _sections(
        Unit=["Description=A worker of svcq", "CollectMode=inactive-or-failed", needs_home],
        Service=[
            "Type=exec", _exec_start(worker), *_environment(env), f"Environment={DELEGATED}=%n",
            f"User={ACCOUNT}", *WORKER_SETTINGS, "StandardInput=null",
        ],
    )  # fmt: skip
    texts = {SERVICE: service, SOCKET: socket, WORKER: template}
    return [_sealed(name, body, user=False) for name, body in texts.items()]


def timer_units(one: Timer, lines: Sequence[str], *, system: bool) -> tuple[Unit, Unit]:
    """What wakes a schedule at these values of OnCalendar=: the timer, and what it starts."""
    # Root writes them for an account of less rights, whose store says what is in them.
    _check_one_line(one.schedule, *lines)
    name = timer_name(one.home, one.schedule)
    title = f"svcq schedule {one.schedule}".replace("%", "%%")
    about = [f"Description={title}", *_belongs_to(one.home, one.schedule)]
    service = _sections(
        Unit=[*about, *_NO_LIMIT, f"RequiresMountsFor={_quoted(one.home)}"],
        Service=[
            "Type=oneshot", _exec_start(one.program), *_environment(one.env),
            *([f"User={ACCOUNT}"] if system else []), "WorkingDirectory=/",
            "# A worker that it starts and that gets no unit of its own goes on without it.",
            "KillMode=process",
        ],
    )  # fmt: skip
    timer = _sections(
        Unit=about,
        Timer=[
            *(f"OnCalendar={line}" for line in lines), "Persistent=true", "AccuracySec=1s",
            *([f"RandomizedDelaySec={int(one.jitter_ms)}ms"] if one.jitter_ms else []),
            *(["WakeSystem=yes"] if one.wake else []), f"Unit={name}.service",
        ],
        Install=["WantedBy=timers.target"],
    )  # fmt: skip
    return (
        _sealed(f"{name}.timer", timer, user=not system, by=_HANDOFF),
        _sealed(f"{name}.service", service, user=not system, by=_HANDOFF),
    )


def timer_name(home: str, schedule: str) -> str:
    """Told apart by a sum: the name of a schedule may be long, and in any script."""
    import hashlib
    import re

    told_apart = hashlib.sha256(f"{home}\0{schedule}".encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", schedule).strip("-")[:60]
    return f"{TIMERS}{readable}-{told_apart}"


def _belongs_to(home: str, schedule: str) -> list[str]:
    return [f"X-Home={_quoted(home)}", f"X-Schedule={schedule}"]


def schedule_of(text: str, home: str) -> str | None:
    """The schedule of a home that a timer is for; None where it is nobody's or another's."""
    if not is_ours(text, by=_HANDOFF) or f"X-Home={_quoted(home)}" not in text.splitlines():
        return None
    found = (line for line in text.splitlines() if line.startswith("X-Schedule="))
    return next(found, "").removeprefix("X-Schedule=") or None


def wakes(text: str) -> bool:
    return "WakeSystem=yes" in text.splitlines()


# What fails is started again for as long as it takes; the service itself slows that down.
_NO_LIMIT = ("StartLimitIntervalSec=0",)


def _service(program: Sequence[str], env: Mapping[str, str]) -> list[str]:
    return [
        "Type=notify",
        "NotifyAccess=main",
        _exec_start(program),
        *_environment(env),
        "# Workers that could get no unit of their own are children: they too outlive a restart.",
        "KillMode=process",
        "Restart=on-failure",
        "RestartSec=200ms",
        "# A large store is copied before it is brought up to date.",
        "TimeoutStartSec=1h",
        "WatchdogSec=60",
        "TimeoutAbortSec=10",
    ]


def _exec_start(program: Sequence[str]) -> str:
    return f"ExecStart={' '.join(_quoted(word).replace('$', '$$') for word in program)}"


def _environment(env: Mapping[str, str]) -> list[str]:
    return [f"Environment={_quoted(f'{name}={value}')}" for name, value in env.items()]


def _quoted(word: str) -> str:
    """One word of a unit file, where % begins a specifier."""
    _check_one_line(word)
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _check_one_line(*words: str) -> None:
    for word in words:
        if any(ord(letter) < 32 for letter in word):
            raise Refused(
                f"{word!r} holds a control character, which a unit file cannot: rename it."
            )


def _sections(**sections: Sequence[str]) -> str:
    return "\n".join(f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items())


# Whose text it is


def _sealed(name: str, body: str, *, user: bool, by: str = _INSTALL) -> Unit:
    head = _HEAD.format(by=by, user="--user " if user else "", unit=name, sum=_sum(body))
    return Unit(name, head + body)


def _sum(body: str) -> str:
    import hashlib

    return hashlib.sha256(body.encode()).hexdigest()[:16]


def is_ours(text: str, *, by: str = _INSTALL) -> bool:
    return text.startswith(_MADE_BY_US.format(by=by))


def is_edited(text: str) -> bool:
    """Whether someone has changed what we wrote. What svcq 0.1.0 wrote has no sum to tell by."""
    head, separator, body = text.partition("\n[")
    _, found, noted = head.partition("# Sum: ")
    return bool(found and separator) and noted.strip() != _sum(f"[{body}")


def is_outdated(text: str, wanted: str) -> bool:
    """Whether this program would write something else, the session it is called from apart."""
    return _skeleton(text) != _skeleton(wanted)


def _skeleton(text: str) -> list[str]:
    said = (line for line in text.splitlines() if line and not line.startswith(("#", _DECLINED)))
    return [line for line in said if not line.startswith(("ExecStart=", "Environment="))]


def program_of(text: str) -> str:
    """Its command line, as the file has it."""
    return next((line for line in text.splitlines() if line.startswith("ExecStart=")), "")


def declines_linger(text: str) -> bool:
    return _DECLINED in text.splitlines()
