"""Linux: local sockets, and who is at the other end of one."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_LISTENING = "0A"
NOBODY = 65534
"""Whom the system does not know: users of other namespaces, and of network file systems."""


KNOWS_PEERS = True
"""Whether a local socket tells who is at its other end."""


def claim_port(one: socket.socket) -> None:
    """Let a port be had again at once, after whoever had it."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def own_uid() -> int:
    return os.geteuid()


def uid_of(connected: socket.socket) -> int:
    """The user who connected, or, seen from the other side, who listens."""
    told = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(told)[1]
    return uid


def uid_named(name: str) -> int | None:
    """A number stands for itself: in containers, users may have no name."""
    if name.isascii() and name.isdigit() and len(name) < 10:
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        return None


def account_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def member_of(uid: int, group: str) -> bool:
    """As the system's list of groups has it now, not as it was when they logged in."""
    try:
        account = pwd.getpwuid(uid)
        wanted = grp.getgrnam(group).gr_gid
        return wanted in os.getgrouplist(account.pw_name, account.pw_gid)
    except (KeyError, OSError):
        return False


def listener_uid(port: int) -> int | None:
    """Who listens on a port of this machine's own address; None where nobody does, or several."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, _, _, _, uid, *_ = line.split()
            if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                found.add(int(uid))
    return found.pop() if len(found) == 1 else None


def connect_local(path: Path, patience: float) -> socket.socket:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        end.settimeout(patience)
        with _folder_of(path) as folder:
            end.connect(f"/proc/self/fd/{folder}/{path.name}")
    except BaseException:
        end.close()
        raise
    return end


def listen_local(path: Path, mode: int, backlog: int) -> socket.socket:
    """Listen at `path`, in the place of whoever did before.

    It has its mode before it listens, and its name after: nobody is let in who should not be, and
    nobody is turned away in between.
    """
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    draft = f"{path.name}.{token_hex(4)}"
    with _folder_of(path) as folder:
        try:
            end.bind(f"/proc/self/fd/{folder}/{draft}")
            os.chmod(draft, mode, dir_fd=folder)
            end.listen(backlog)
            end.setblocking(False)
            os.rename(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            end.close()
            with suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise
    return end


@contextmanager
def _folder_of(path: Path) -> Iterator[int]:
    """Its folder, opened: from there a socket's name is short, as it has to be."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)
