"""Linux: the processes of a run, told apart from all others, found and signalled.

Pids are reused, so a process is known by its pid and its start time. A run's tree is found by what
every process of it has unless it takes pains to lose it: the session it was started in, the marker
in its environment, a locked file that it inherited, a parent that is one of them; and by its brand,
which none loses by accident.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

MARKER = "SVCQ_RUN"
ASK_TO_END, KILL, STOP, GO_ON = signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT
KILLED_BY_SYSTEM = (-KILL, 128 + KILL)
"""Exit codes of what the kernel may have killed: itself, or what a shell has run last."""
_MOST_LISTS = 100  # a machine where processes are always born must not keep us looking
# How many locks a process may have on files: Linux has not looked at it since 2.4, and no program
# sets it. It is inherited by every child, whatever that does to its environment, files and session.
_BRAND = 10  # RLIMIT_LOCKS


class Seen(NamedTuple):
    """A process as one look at the system found it."""

    pid: int
    born: str
    session: int
    parent: int


def brand_of(marker: str) -> int:
    """The number that the processes of a run are branded with."""
    from hashlib import blake2b  # loads all of OpenSSL, which `svcq why` does without

    digest = blake2b(marker.encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 2 | 1 << 61  # never one that someone might mean as a limit


@contextmanager
def branding(brand: int) -> Iterator[None]:
    """What is started meanwhile is branded, and so is all that it starts."""
    usual, most = resource.getrlimit(_BRAND)
    try:
        resource.setrlimit(_BRAND, (brand, most))
    except (ValueError, OSError):  # whoever started us has set a lower one: it must do without
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(_BRAND, (usual, most))


def has_brand(pid: int, brand: int) -> bool:
    try:
        return resource.prlimit(pid, _BRAND)[0] == brand
    except OSError:  # it is gone, or someone else's
        return False


def process_born(pid: int) -> str | None:
    """When a process was started, in the system's own count; None when it is gone."""
    seen = look_at(pid)
    return None if seen is None else seen.born


def tree_of(
    marker: str,
    *,
    session: int | None = None,
    lock: str | Path | None = None,
    known: Sequence[Seen] = (),
    spared: Collection[int] = (),
) -> list[Seen]:
    """The living processes of a run, by session, marker, brand, inherited lock, and descent from
    these.

    A marker fits those that begin with it. `known` are those an earlier look has found: one that
    has lost its parent since is found no other way. `spared` are pids of none of them.
    """
    wanted = f"{MARKER}={marker}".encode()
    brand = brand_of(marker)
    held = None if lock is None else _inode(lock)
    living: dict[int, Seen] = {}
    found = set()
    for pid in _all_pids():
        seen = None if pid == os.getpid() or pid in spared else look_at(pid)
        if seen is None:
            continue
        living[pid] = seen
        if (
            seen.session == session
            or has_brand(pid, brand)
            or _has_marker(pid, wanted)
            or _has_open(pid, held)
        ):
            found.add(pid)
    found |= {one.pid for one in known if one.pid in living and living[one.pid].born == one.born}
    grown = True
    while grown:
        children = {pid for pid, seen in living.items() if seen.parent in found} - found
        found |= children
        grown = bool(children)
    return [living[pid] for pid in sorted(found)]


def signal_tree(processes: Sequence[Seen], number: int) -> None:
    """Send a signal to each that is still the process that was seen."""
    for process in processes:
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:
            continue
        try:
            # The descriptor is of whoever has the pid now; it keeps that pid from being reused.
            if process_born(process.pid) == process.born:
                signal.pidfd_send_signal(descriptor, number)
        except (ProcessLookupError, PermissionError):
            pass
        finally:
            os.close(descriptor)


def resident_bytes(processes: Sequence[Seen]) -> int:
    """The memory a tree has in use now."""
    return sum(_resident(process.pid) for process in processes)


def _all_pids() -> Iterator[int]:
    """Every process, those too that are born while we look.

    One that lives on by forking and ending is always in one of two lists in a row: it has its
    child before it ends.
    """
    looked_at: set[int] = set()
    for _ in range(_MOST_LISTS):
        new = {int(name) for name in os.listdir("/proc") if name.isdigit()} - looked_at
        if not new:
            return
        yield from sorted(new)
        looked_at |= new


def look_at(pid: int) -> Seen | None:
    """A process that lives; None when it is gone, or only waits to be noticed by its parent."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name, in parentheses, may hold anything; what follows its last one does not.
    fields = text[text.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    return Seen(pid, fields[19].decode(), session=int(fields[3]), parent=int(fields[1]))


def _has_marker(pid: int, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(wanted) for entry in file.read().split(b"\0"))
    except OSError:
        return False


def _inode(path: str | Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has_open(pid: int, wanted: tuple[int, int] | None) -> bool:
    if wanted is None:
        return False
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for name in names:
        with suppress(OSError):  # closed since
            status = os.stat(f"/proc/{pid}/fd/{name}")
            if (status.st_dev, status.st_ino) == wanted:
                return True
    return False


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
