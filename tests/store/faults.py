"""Trouble to order: another user, a small disk, a read-only one. All of it ends with the child."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

NOBODY = 65534
_NEW_MOUNT_NAMESPACE = 0x00020000


def in_child(act: Callable[[], object]) -> None:
    """Run `act` in a fork of this process; what fails there fails here."""
    start_child(act)()


def start_child(act: Callable[[], object]) -> Callable[[], None]:
    """As in_child, but answer with what waits for its end."""
    to_us, from_child = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent raises it
            os.write(from_child, traceback.format_exc().encode()[-8000:])
        finally:
            os._exit(status)
    os.close(from_child)

    def wait() -> None:
        with os.fdopen(to_us, "rb") as told:
            text = told.read().decode()
        status = os.waitpid(pid, 0)[1]
        if status:
            raise AssertionError(f"The child ended with status {status}:\n{text}")

    return wait


@contextmanager
def directory_of_ordinary_user() -> Iterator[Path]:
    """A place of a user without root's rights, to whom pytest's own directories are closed."""
    made = Path(tempfile.mkdtemp(prefix="svcq-test-"))
    try:
        if os.geteuid() == 0:
            os.chown(made, NOBODY, NOBODY)
        yield made
    finally:
        for name in (made, *made.rglob("*")):
            name.chmod(0o700)
        rmtree(made)


def become_ordinary_user() -> None:
    """In a child: root's rights bind no one, so give them up; anyone else stays who they are."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def mount_disk(at: Path, size: str) -> bool:
    """In a child: a disk that only this child sees; False where none may be mounted."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    if ctypes.CDLL(None).unshare(_NEW_MOUNT_NAMESPACE) != 0:
        return False
    at.mkdir(mode=0o700)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    options = f"size={size},mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", at], check=True)
    return True


def remount_disk(at: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", at], check=True)
