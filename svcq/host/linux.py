"""Linux: files and directories that belong to one account.

Whoever may write the store may run commands as its owner, so a file is judged with every
directory that leads to it, by the rule of ssh's StrictModes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from svcq.errors import InvalidInput, NotPermitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

SYSTEM_HOME = "/var/lib/svcq"
SYSTEM_SOCKET = "/run/svcq/users/svcq.sock"
# How a process can end, as svcq counts: with one of its own, or below 0 by a signal.
EXIT_CODES = range(-64, 256)

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def data_directory() -> str:
    """Where programs keep the data of this account, by the rules of XDG."""
    named = os.environ.get("XDG_DATA_HOME", "").strip()
    return named or os.path.expanduser("~/.local/share")


def is_of_another(path: str) -> bool:
    """Whether it is there and belongs to another account than ours."""
    try:
        return os.stat(path).st_uid != os.geteuid()
    except OSError:
        return False


def public_socket(home: str) -> str | None:
    """Where a service lets other users in; only that of the whole machine has a place for it."""
    return SYSTEM_SOCKET if home == SYSTEM_HOME else None


def private_directory(path: Path) -> None:
    """Make sure `path` is a directory of ours that no one else may write.

    What is missing, parents included, is made with mode 0700 from its first instant.
    """
    path = path.absolute()
    missing = [directory for directory in (path, *path.parents) if not os.path.lexists(directory)]
    if missing:
        _check_way_to(str(missing[-1]))
    for directory in reversed(missing):
        _make_directory(directory)
    check_private(path)
    if not path.is_dir():
        raise InvalidInput(f"{path} is not a directory: remove it, or name another place.")


def check_private(path: str | os.PathLike[str]) -> None:
    """Refuse a file or directory that is not ours, or that someone else could write or replace."""
    path = os.path.join(os.getcwd(), path)
    try:
        link, status = os.lstat(path), os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"{path} does not exist: {_why_missing(path)}.") from None
    except OSError as error:
        raise NotPermitted(
            f"{path} cannot be looked at ({error.strerror}): "
            f"run svcq as the user who owns it ({name_of(os.geteuid())} may not)."
        ) from error
    if link.st_uid not in {0, os.geteuid(), status.st_uid}:
        raise NotPermitted(
            f"{path} is a link made by {name_of(link.st_uid)}, who could point it elsewhere: "
            f"name what it leads to instead ({os.path.realpath(path)})."
        )
    if status.st_uid != os.geteuid():
        owner = name_of(status.st_uid)
        raise NotPermitted(
            f"{path} belongs to {owner}, not to {name_of(os.geteuid())}: run svcq as that user "
            f"(sudo -u {owner} svcq ...), or make it yours (chown {name_of(os.geteuid())} {path})."
        )
    if status.st_mode & _OTHERS_WRITE:
        raise NotPermitted(_writable(path, status))
    _check_way_to(path)


def others_may_read(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


def create_private(path: Path) -> int:
    """Create a file that did not exist, mode 0600, and return its descriptor, open for both.

    Raises FileExistsError when it is there already, be it as a dangling link.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    # A strict umask may have taken the owner's own rights away.
    os.fchmod(descriptor, 0o600)
    return descriptor


def replace_durably(source: Path, target: Path) -> None:
    """Rename `source` over `target`, so that the new name survives a power cut."""
    os.replace(source, target)
    sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: files just created, renamed or linked there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
        # A strict umask may have taken the owner's own rights away.
        path.chmod(0o700)
        sync_directory(path.parent)
    except FileExistsError:
        # Another process of ours was faster; whoever made it, it is judged afterwards.
        return
    except OSError as error:
        forbidden = error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}
        raise (NotPermitted if forbidden else InvalidInput)(
            f"The directory {path} cannot be made ({error.strerror}): "
            "make it yourself, or set SVCQ_HOME to a place you may write."
        ) from error


def _check_way_to(path: str) -> None:
    """Refuse when someone else could put another file in the place of `path`."""
    trusted = {0, os.geteuid()}
    for directory in _directories_leading_to(path):
        status = os.stat(directory)
        for owner in {os.lstat(directory).st_uid, status.st_uid} - trusted:
            raise NotPermitted(
                f"{path} is not safe, because {directory} belongs to {name_of(owner)}, "
                f"who could replace it: choose another place, or chown {directory}."
            )
        # In a sticky directory such as /tmp only the owner of an entry may replace it.
        if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            raise NotPermitted(f"{path} is not safe: {_writable(directory, status)}")


def _directories_leading_to(path: str) -> Iterator[str]:
    """Those in its name, and those of the place it really is, when links stand between."""
    named = list(_parents(path))
    yield from named
    yield from (parent for parent in _parents(os.path.realpath(path)) if parent not in named)


def _parents(path: str) -> Iterator[str]:
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent


def _writable(path: str, status: os.stat_result) -> str:
    return (
        f"{path} may be written by others (mode {stat.S_IMODE(status.st_mode):04o}): "
        f"take that right away with chmod go-w {path}."
    )


def _why_missing(path: str) -> str:
    if os.path.islink(path):
        return (
            f"it is a link to {os.readlink(path)}, which is missing; remove the link or make that"
        )
    return "name one that does"


def name_of(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"
