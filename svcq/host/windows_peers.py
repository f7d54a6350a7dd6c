"""Windows: other users of the machine, and who listens on its own network.

A user is known by a number, as elsewhere: the bytes of their SID, read as one. There are no local
sockets that would tell who is at the other end.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from svcq.errors import Refused
from svcq.host import windows_kernel as kernel

if TYPE_CHECKING:
    import socket
    from typing import Any

NOBODY = 0
"""No SID has this number."""

KNOWS_PEERS = False
"""Whether a local socket tells who is at its other end."""

_LISTENERS = 3  # TCP_TABLE_OWNER_PID_LISTENER
_FAMILIES = {2: (24, 8, 20), 23: (56, 20, 52)}  # family: size of a row, where port and pid are


def claim_port(one: socket.socket) -> None:
    """Let nobody else have the port beside us: what other systems call reuse would allow that."""
    import socket

    exclusive = socket.SO_EXCLUSIVEADDRUSE  # type: ignore[attr-defined, unused-ignore]
    one.setsockopt(socket.SOL_SOCKET, exclusive, 1)


def own_uid() -> int:
    import win32api
    import win32security as security

    token = security.OpenProcessToken(win32api.GetCurrentProcess(), security.TOKEN_QUERY)
    return _number(security.GetTokenInformation(token, security.TokenUser)[0])


def uid_of(connected: socket.socket) -> int:
    """Never known: only who listens is, by its port."""
    del connected
    return NOBODY


def uid_named(name: str) -> int | None:
    """A SID stands for itself."""
    import pywintypes
    import win32security as security

    try:
        if name.upper().startswith("S-1-"):
            return _number(security.ConvertStringSidToSid(name))
        sid, _, kind = security.LookupAccountName(None, name)
    except pywintypes.error:
        return None
    return _number(sid) if kind == security.SidTypeUser else None


def account_name(uid: int) -> str:
    import pywintypes
    import win32security as security

    sid = sid_of(uid)
    if sid is None:
        return str(uid)
    try:
        name, domain, _ = security.LookupAccountSid(None, sid)
    except pywintypes.error:
        return str(security.ConvertSidToStringSid(sid))
    return f"{domain}\\{name}" if domain else str(name)


def member_of(uid: int, group: str) -> bool:
    """Users are let in by name alone: no token would tell of a group."""
    del uid, group
    return False


def listener_uid(port: int) -> int | None:
    """Who listens on a port of this machine's own address; None where nobody does, or several, or
    Windows does not say."""
    owners = {_owner_of(pid) for pid in listeners(port)}
    return owners.pop() if len(owners) == 1 else None


def listeners(port: int) -> set[int]:
    """The pids of those who listen on a port."""
    found = set()
    for family, (row, at_port, at_pid) in _FAMILIES.items():
        table = _table(family)
        count = int.from_bytes(table[:4], "little")
        for start in range(4, min(4 + count * row, len(table) - row + 1), row):
            # In the order of the network, in the lower half of a number.
            here = int.from_bytes(table[start + at_port : start + at_port + 2], "big")
            if here == port:
                pid = table[start + at_pid : start + at_pid + 4]
                found.add(int.from_bytes(pid, "little"))
    return found


def _table(family: int) -> bytes:
    library = kernel.library("iphlpapi")
    size = ctypes.c_uint32(0)
    library.GetExtendedTcpTable(None, ctypes.byref(size), False, family, _LISTENERS, 0)
    for _ in range(5):  # it may grow between the two questions
        buffer = ctypes.create_string_buffer(max(size.value, 4))
        if not library.GetExtendedTcpTable(
            buffer, ctypes.byref(size), False, family, _LISTENERS, 0
        ):
            return buffer.raw
    return b"\0\0\0\0"


def _owner_of(pid: int) -> int | None:
    import pywintypes
    import win32security as security

    with kernel.opened(pid, kernel.QUERY) as handle:
        if handle is None:
            return None
        try:
            token = security.OpenProcessToken(handle, security.TOKEN_QUERY)
            return _number(security.GetTokenInformation(token, security.TokenUser)[0])
        except pywintypes.error:
            return None


def _number(sid: Any) -> int:
    return int.from_bytes(bytes(memoryview(sid)), "big")


def sid_of(uid: int) -> Any:
    """None for a number that is no SID."""
    import win32security as security

    try:
        made: Any = security.SID
        return made(uid.to_bytes((uid.bit_length() + 7) // 8, "big"))
    except (ValueError, OverflowError, TypeError, security.error):
        return None


def connect_local(path: Path, patience: float) -> socket.socket:
    del patience
    raise _no_sockets(path)


def listen_local(path: Path, mode: int, backlog: int) -> socket.socket:
    del mode, backlog
    raise _no_sockets(path)


def _no_sockets(path: Path) -> Refused:
    return Refused(f"{path} cannot be a socket on Windows: svcq is asked by its token there.")
