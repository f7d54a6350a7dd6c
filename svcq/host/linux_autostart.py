"""Linux: what starts with a session, as freedesktop.org has it: ~/.config/autostart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

TRAY_NEEDS = ("pystray", "PIL", "dbus_fast")
"""The modules that the tray is made with."""
TRAY_IS_HERE = True
"""Whether there is one for this system."""
NAME = "svcq-tray.desktop"
_OURS = "X-svcq=tray"
# What an argument of Exec may not hold as it is; % begins a field of its own.
_QUOTED = {"\\": "\\\\\\\\", '"': '\\\\"', "`": "\\\\`", "$": "\\\\$", "%": "%%"}


def desktop_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base, "autostart", NAME)


def add_to_session(command: Sequence[str], home: str) -> Path | None:
    """Let the tray start with the session, for that home; None where a file of others stands."""
    file = desktop_file()
    if file.exists() and not is_in_session():
        return None
    words = ["env", f"SVCQ_HOME={home}", *command]
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(_ENTRY.format(command=" ".join(map(_quoted, words)), ours=_OURS), "utf-8")
    return file


def is_in_session() -> bool:
    try:
        return _OURS in desktop_file().read_text("utf-8", "replace").splitlines()
    except OSError:
        return False


def remove_from_session() -> Path | None:
    """What was removed; what others have put there stays."""
    file = desktop_file()
    if not is_in_session():
        return None
    file.unlink(missing_ok=True)
    return file


def _quoted(word: str) -> str:
    return f'"{"".join(_QUOTED.get(char, char) for char in word)}"'


_ENTRY = """[Desktop Entry]
Type=Application
Name=svcq
Comment=The job queue, in the panel
Exec={command}
Icon=system-run
Terminal=false
NoDisplay=true
X-GNOME-Autostart-enabled=true
{ours}
"""
