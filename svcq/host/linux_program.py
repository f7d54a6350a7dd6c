"""Linux: whether a program may be run as a service of the whole machine.

Whoever may write its code, or put something else in the place of it or of a folder above it, could
run anything as that service.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator

from svcq.errors import Refused
from svcq.host.linux import name_of

# Behind these, a hardened service sees nothing.
_HIDDEN = ("/home/", "/root/", "/run/user/")
_NOBODY = 65534
_ELSEWHERE = "install svcq as root in a place of its own, such as /opt/svcq"
_TELL = "import sys, svcq; print(svcq.__path__[0], *filter(None, sys.path), sep='\\n')"


def check_program(python: str) -> None:
    """Refuse a Python, or the svcq in it, that others could replace, or that not all can run."""
    _check_administrators_alone(python)
    package, *folders = _where_it_imports_from(python)
    for path in (package, *filter(os.path.exists, folders)):
        _check_administrators_alone(path)
    for folder, _, files in os.walk(package):
        for file in (folder, *(os.path.join(folder, name) for name in files)):
            _check_one(file, file)
    for path in (python, package):
        if os.path.realpath(path).startswith(_HIDDEN):
            raise Refused(
                f"{os.path.realpath(path)} is in a home directory, into which a service of the "
                f"whole machine does not see: {_ELSEWHERE}."
            )


def _where_it_imports_from(python: str) -> list[str]:
    """As the least of all accounts would have it: what that can run, all can."""
    try:
        ran = subprocess.run(
            [python, "-I", "-c", _TELL], user=_NOBODY, group=_NOBODY, extra_groups=[], cwd="/",
            env={}, capture_output=True, text=True, check=False, timeout=60,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if not ran.returncode:
            return ran.stdout.splitlines()
        why = (ran.stderr.strip().splitlines() or ["it fails"])[-1]
    except OSError as error:
        why = error.strerror or str(error)
    raise Refused(f"Not every account can run svcq with {python} ({why}): {_ELSEWHERE}.")


def _check_administrators_alone(path: str) -> None:
    for step in _steps_to(path):
        _check_one(step, path)


def _check_one(step: str, path: str) -> None:
    status = os.lstat(step)
    writable = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid)
    if status.st_uid != 0:
        why = f"belongs to {name_of(status.st_uid)}"
    elif writable and not stat.S_ISLNK(status.st_mode):
        why = f"may be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    else:
        return
    what = "it" if step == path else step
    raise Refused(
        f"{path} cannot be run as a service of the whole machine, because {what} {why}, "
        f"who could let it run anything: {_ELSEWHERE}."
    )


def _steps_to(path: str) -> Iterator[str]:
    """Every directory and every link that the name leads through, and where it ends."""
    here, rest = "/", path.split("/")[::-1]
    yield here
    while rest:
        part = rest.pop()
        if part == "..":
            here = os.path.dirname(here)
        elif part not in ("", "."):
            there = os.path.join(here, part)
            yield there
            if os.path.islink(there):
                target = os.readlink(there)
                here = "/" if target.startswith("/") else here
                rest += target.split("/")[::-1]
            else:
                here = there
