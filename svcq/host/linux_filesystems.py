"""Linux: on which file system something is, and whether a store can live there.

Programs that share a SQLite store share memory, which two machines cannot; and a lock on a file of
a server may be lost with the connection.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from svcq.errors import Refused

_NETWORK = frozenset(
    ["9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs",
     "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs", "virtiofs",
     "fuse.ceph", "fuse.curlftpfs", "fuse.davfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs",
     "fuse.sshfs"]
)  # fmt: skip


class Place(NamedTuple):
    kind: str  # such as ext4
    mounted_on: str
    read_only: bool

    @property
    def is_network(self) -> bool:
        return self.kind in _NETWORK


def place_of(path: Path) -> Place:
    """Where something is, or would be made."""
    there = next(one for one in (path, *path.parents) if one.exists())
    real = os.path.realpath(there)
    found = Place("unknown", "/", read_only=False)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        mounted_on = _plain(before.split()[4])
        # Of several on the same folder, the last one is seen.
        if _is_below(real, mounted_on) and len(mounted_on) >= len(found.mounted_on):
            kind = after.split()[0]
            found = Place(kind, mounted_on, _is_read_only(real))
    return found


def _plain(name: str) -> str:
    """Spaces and the like stand there as numbers."""
    return name.encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")


def _is_below(path: str, folder: str) -> bool:
    return folder in ("/", path) or path.startswith(f"{folder}/")


def _is_read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def check_local(path: Path) -> None:
    """Refuse a home where a service could not keep its store."""
    place = place_of(path)
    if place.is_network:
        raise Refused(
            f"{path} is on a network file system ({place.kind}, mounted on {place.mounted_on}), "
            "where a store can be damaged: set SVCQ_HOME to a folder on a disk of this machine."
        )
    if place.read_only:
        raise Refused(
            f"{path} is on a file system that is read-only ({place.kind}, mounted on "
            f"{place.mounted_on}): set SVCQ_HOME to a folder that can be written."
        )
