"""Windows: tasks of the Task Scheduler, written as its XML and spoken of through schtasks.

What the scheduler gives back has more in it than it was given; so what counts of a task is that all
is there that was asked for.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

from svcq.errors import NotPermitted, Refused

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
FOLDER = "svcq"
_PATIENCE = 60.0  # seconds
_DENIED = ("access is denied", "zugriff verweigert", "0x80070005")


def element(name: str, *inside: ET.Element | str, **attributes: str) -> ET.Element:
    made = ET.Element(f"{{{NAMESPACE}}}{name}", attributes)
    for one in inside:
        if isinstance(one, str):
            made.text = one
        else:
            made.append(one)
    return made


def task(
    description: str, account: str, triggers: list[ET.Element], settings: dict[str, str],
    command: str, arguments: str, *, folder: str = "",
) -> str:  # fmt: skip
    """A task in the order in which its schema wants the parts."""
    ordered = [element(name, settings[name]) for name in _SETTINGS if name in settings]
    action = [element("Command", command), element("Arguments", arguments)]
    if folder:
        action.append(element("WorkingDirectory", folder))
    root = element(
        "Task",
        element("RegistrationInfo", element("Description", description)),
        element("Triggers", *triggers),
        element(
            "Principals",
            element(
                "Principal", element("UserId", account), element("LogonType", _logon(account)),
                element("RunLevel", "LeastPrivilege"), id="Author",
            ),
        ),
        element("Settings", *ordered),
        element("Actions", element("Exec", *action), Context="Author"),
        version="1.2",
    )  # fmt: skip
    ET.register_namespace("", NAMESPACE)
    return '<?xml version="1.0" encoding="UTF-16"?>\n' + ET.tostring(root, "unicode")


def _logon(account: str) -> str:
    return "ServiceAccount" if account.startswith("S-1-5-18") else "InteractiveToken"


# In the order of the schema; each is a setting of ours at most once.
_SETTINGS = (
    "AllowStartOnDemand", "MultipleInstancesPolicy", "DisallowStartIfOnBatteries",
    "StopIfGoingOnBatteries", "AllowHardTerminate", "StartWhenAvailable",
    "RunOnlyIfNetworkAvailable", "WakeToRun", "Enabled", "Hidden", "ExecutionTimeLimit",
    "Priority", "RunOnlyIfIdle",
)  # fmt: skip


def create(name: str, text: str) -> None:
    """Register a task, in the place of one of that name; refused with what Windows says."""
    descriptor, file = tempfile.mkstemp(suffix=".xml", prefix="svcq-")
    try:
        with open(descriptor, "wb") as opened:
            opened.write(text.encode("utf-16"))
        ran = _schtasks("/create", "/xml", file, "/tn", f"{FOLDER}\\{name}", "/f")
    finally:
        with suppress(OSError):
            os.unlink(file)
    if ran.returncode:
        said = _said(ran)
        denied = any(sign in said.lower() for sign in _DENIED)
        raise (NotPermitted if denied else Refused)(
            f"Task Scheduler did not take the task {FOLDER}\\{name} ({said}): "
            "see whether its service runs, and whether this account may register tasks."
        )


def delete(name: str) -> None:
    """Nothing happens where there is none."""
    if read(name) is None:
        return
    ran = _schtasks("/delete", "/tn", f"{FOLDER}\\{name}", "/f")
    if ran.returncode:
        raise Refused(f"Task Scheduler did not remove {FOLDER}\\{name} ({_said(ran)}).")


def read(name: str) -> str | None:
    """What the scheduler has of it; None where there is none."""
    ran = _schtasks("/query", "/tn", f"{FOLDER}\\{name}", "/xml")
    if ran.returncode == 0 and "<" in (text := _text(ran.stdout)):
        return text[text.index("<") :]
    try:  # as it is kept, where schtasks has no such answer and the account may read it
        return _text(_file(name).read_bytes())
    except OSError:
        return None


def names(beginning: str) -> Iterator[str]:
    """The tasks of ours whose names begin so."""
    ran = _schtasks("/query", "/fo", "csv", "/nh", "/tn", f"{FOLDER}\\")
    listed = {
        line.split('","')[0].strip('"').rpartition("\\")[2]
        for line in _text(ran.stdout).splitlines() if f"\\{FOLDER}\\" in line
    }  # fmt: skip
    with suppress(OSError):
        listed |= set(os.listdir(_file("").parent))
    yield from sorted(name for name in listed if name.startswith(beginning))


def _file(name: str) -> Path:
    root = os.environ.get("SYSTEMROOT", r"C:\Windows")
    return Path(root, "System32", "Tasks", FOLDER, name or "any")


def missing(wanted: str, found: str) -> list[str]:
    """What of a task is not as it was written, by the names of its parts."""
    try:
        there = list(_parts(_root(found)))
    except ET.ParseError:
        return ["Task"]
    known = {path for path, _ in there}
    lost = []
    for path, value in _parts(_root(wanted)):
        name = path.rpartition("/")[2]
        if (path, value) in there:
            there.remove((path, value))
        elif path != "Task/RegistrationInfo/Description" and (
            path in known or _DEFAULTS.get(name) != value
        ):
            lost.append(name)
    more = [path for path, _ in there if "/Triggers/" in path or "/Exec/Command" in path]
    return lost + [path.rpartition("/")[2] for path in more if not path.endswith("/Enabled")]


# What the schema says of a part that is not there.
_DEFAULTS = {
    "Enabled": "true",
    "RunLevel": "LeastPrivilege",
    "MultipleInstancesPolicy": "IgnoreNew",
    "DisallowStartIfOnBatteries": "true",
    "StopIfGoingOnBatteries": "true",
    "AllowHardTerminate": "true",
    "StartWhenAvailable": "false",
    "WakeToRun": "false",
    "RunOnlyIfIdle": "false",
    "StopAtDurationEnd": "false",
}


def text_of(task_text: str, path: str) -> str | None:
    """The text of one part, such as Actions/Exec/Arguments."""
    try:
        found = _root(task_text).find(
            "/".join(f"{{{NAMESPACE}}}{step}" for step in path.split("/"))
        )
    except ET.ParseError:
        return None
    return None if found is None else found.text


def _root(text: str) -> ET.Element:
    # As text it has been decoded, whatever its first line says.
    text = text[text.index("<Task") :] if "<Task" in text else text
    return ET.fromstring(text)  # noqa: S314 (Windows itself wrote it, or our own account)


def _parts(root: ET.Element) -> Iterator[tuple[str, str]]:
    """Every part that has a value, with its way from the root; accounts have several names."""

    def below(one: ET.Element, path: str) -> Iterator[tuple[str, str]]:
        name = f"{path}/{one.tag.rpartition('}')[2]}".lstrip("/")
        if len(one):
            for inner in one:
                yield from below(inner, name)
        elif not name.endswith("/UserId"):
            yield name, (one.text or "").strip()

    yield from below(root, "")


def _schtasks(*words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["schtasks", *words], capture_output=True, check=False, timeout=_PATIENCE,
            stdin=subprocess.DEVNULL, creationflags=0x08000000,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"Task Scheduler cannot be asked ({error}).") from None


def _said(ran: subprocess.CompletedProcess[bytes]) -> str:
    text = _text(ran.stderr) or _text(ran.stdout)
    return " ".join(text.split()).rstrip(".") or f"exit code {ran.returncode}"


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if data[1:2] == b"\0":
        return data.decode("utf-16-le", "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("oem", "replace")
