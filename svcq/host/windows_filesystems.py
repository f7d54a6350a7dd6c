"""Windows: on which kind of disk something is, and whether a store can live there.

Programs that share a SQLite store share memory, which two machines cannot; and a lock on a file of
a server may be lost with the connection.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from svcq.errors import Refused
from svcq.host import windows_kernel as kernel

_KINDS = {0: "unknown", 1: "unknown", 2: "removable", 3: "fixed", 4: "network", 5: "CD", 6: "RAM"}
_READ_ONLY = 0x80000
_LONGEST = 32_768


class Place(NamedTuple):
    kind: str  # such as NTFS, or network
    mounted_on: str
    read_only: bool

    @property
    def is_network(self) -> bool:
        return self.kind == "network"


def place_of(path: Path) -> Place:
    """Where something is, or would be made."""
    real = os.path.realpath(path)
    if _is_share(real):
        return Place("network", os.path.splitdrive(real)[0], read_only=False)
    import ctypes

    library = kernel.library("kernel32")
    volume = ctypes.create_unicode_buffer(_LONGEST)
    if not library.GetVolumePathNameW(real, volume, _LONGEST):
        return Place("unknown", os.path.splitdrive(real)[0], read_only=False)
    if _KINDS.get(library.GetDriveTypeW(volume.value)) == "network":
        return Place("network", volume.value, read_only=False)
    flags, name = ctypes.c_uint32(), ctypes.create_unicode_buffer(64)
    known = library.GetVolumeInformationW(
        volume.value, None, 0, None, None, ctypes.byref(flags), name, len(name)
    )
    if not known:
        return Place("unknown", volume.value, read_only=False)
    return Place(name.value or "unknown", volume.value, bool(flags.value & _READ_ONLY))


def _is_share(path: str) -> bool:
    """\\\\server\\share, but not \\\\?\\C:\\, which is how long paths are written."""
    drive = os.path.splitdrive(path)[0]
    if drive.upper().startswith("\\\\?\\UNC\\"):
        return True
    return drive.startswith("\\\\") and not drive.startswith(("\\\\?\\", "\\\\.\\"))


def check_local(path: Path) -> None:
    """Refuse a home where a service could not keep its store."""
    place = place_of(path)
    if place.is_network:
        raise Refused(
            f"{path} is on another machine ({place.mounted_on}), where a store can be damaged: "
            "set SVCQ_HOME to a folder on a disk of this machine."
        )
    if place.read_only:
        raise Refused(
            f"{path} is on a disk that is read-only ({place.mounted_on}): "
            "set SVCQ_HOME to a folder that can be written."
        )
