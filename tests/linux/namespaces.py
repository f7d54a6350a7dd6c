"""What a systemd in namespaces of its own needs of the machine around it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tests.helpers import eventually

PATIENCE = 60.0  # seconds: a machine may be busy with other tests


class Group:
    """A group of processes (cgroup), made for one systemd."""

    def __init__(self, name: str) -> None:
        self.path = cgroup2() / name
        self.path.mkdir(exist_ok=True)

    def wait_until_empty(self) -> None:
        eventually(self._is_empty, PATIENCE)

    def _is_empty(self) -> bool:
        return not any(file.read_text() for file in self.path.rglob("cgroup.procs"))

    def remove(self) -> None:
        eventually(self._is_removed, PATIENCE)

    def _is_removed(self) -> bool:
        """The kernel may hold on to a group for a moment after its last process."""
        folders = [folder for folder in self.path.rglob("*") if folder.is_dir()]
        with suppress(OSError):
            for folder in [*sorted(folders, reverse=True), self.path]:
                folder.rmdir()
        return not self.path.exists()


def cgroup2() -> Path:
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return Path(next(mount[1] for mount in mounts if mount[2] == "cgroup2"))


def children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def is_systemd(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() == "systemd"
    return False
