"""The environment a command is queued from, as far as it means anything later.

What belongs to the caller's terminal, desktop session or agents is left behind: it points to
things that may be gone when the job runs, or that a job should not reach.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from svcq.passwords import MASK, strip_password
from svcq.tuples import NamedTuple

_SESSION_NAMES = frozenset(
    [
        "_",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "COLUMNS",
        "LINES",
        "TERM",
        "TERMCAP",
        "TTY",
        "STY",
        "WINDOW",
        "WINDOWID",
        "WINDOWPATH",
        "TMUX",
        "TMUX_PANE",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "WAYLAND_SOCKET",
        "XAUTHORITY",
        "XDG_RUNTIME_DIR",
        "XDG_SEAT",
        "XDG_SEAT_PATH",
        "XDG_VTNR",
        "XDG_ACTIVATION_TOKEN",
        "DESKTOP_STARTUP_ID",
        "SESSION_MANAGER",
        "DBUS_SESSION_BUS_ADDRESS",
        "DBUS_STARTER_ADDRESS",
        "DBUS_STARTER_BUS_TYPE",
        "SUDO_ASKPASS",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "LISTEN_PID",
        "LISTEN_FDS",
        "LISTEN_FDNAMES",
        "MAINPID",
        "NOTIFY_SOCKET",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
        "SYSTEMD_EXEC_PID",
        "PROMPT",
        "PS1",
        "PS2",
        "PROMPT_COMMAND",
        "PSMODULEPATH",
        "SESSIONNAME",
        "WT_SESSION",
        "WT_PROFILE_ID",
        "SVCQ_JOB",
        "SVCQ_RUN",
        "SVCQ_PROGRESS",
        "SVCQ_RESULT",
    ]
)
_SESSION_PREFIXES = ("TERM_", "SSH_", "GPG_", "XDG_SESSION_", "VTE_", "KITTY_", "KONSOLE_",
                     "ALACRITTY_", "WEZTERM_", "GNOME_TERMINAL_", "ITERM_")  # fmt: skip
# What a command needs wherever and whenever it runs, and that is no secret.
_LASTING = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV")
_SECRET_SIGNS = ("KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "COOKIE", "PRIVATE")

_STORE = "SVCQ_STORE"


class Captured(NamedTuple):
    variables: dict[str, str]
    left_out: list[str]
    """Names whose value is not text, which the store cannot keep."""


def capture(environ: Mapping[str, str] = os.environ) -> Captured:
    """The caller's environment without what belongs to its session."""
    variables, left_out = {}, []
    for name, value in environ.items():
        if _of_session(name):
            continue
        if is_text(text := rescued(value)) and is_text(name):
            text = strip_password(text) if name == _STORE else text
            variables[name] = text
        else:
            left_out.append(name)
    return Captured(variables, left_out)


def environment_of_jobs(environ: Mapping[str, str]) -> dict[str, str]:
    """A worker's own environment, as its jobs may see it: without the password of the store."""
    return {
        name: strip_password(value) if name == _STORE else value for name, value in environ.items()
    }


def capture_lasting(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Of the caller's environment, what still means something to a schedule months later."""
    return {name: environ[name] for name in _LASTING if is_text(environ.get(name, "\0"))}


def masked(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables as they may be shown."""
    return {
        name: MASK if looks_secret(name, value) else value
        for name, value in sorted(variables.items())
    }


def looks_secret(name: str, value: str) -> bool:
    if any(sign in name.upper() for sign in _SECRET_SIGNS):
        return True
    if "password=" in value.lower():
        return True
    # A password inside a URL: scheme://user:password@host
    _, separator, rest = value.partition("://")
    return bool(separator) and ":" in rest.partition("@")[0] and "@" in rest


def _of_session(name: str) -> bool:
    upper = name.upper()
    # "=C:" and its like are how Windows remembers a directory for each drive.
    return upper in _SESSION_NAMES or upper.startswith(_SESSION_PREFIXES) or name.startswith("=")


def rescued(word: str) -> str:
    """A word of the caller's, as UTF-8 where a locale that knows less could not read it."""
    if is_text(word):
        return word
    try:
        return os.fsencode(word).decode()
    except UnicodeError:
        return word


def is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
