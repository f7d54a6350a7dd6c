"""Windows: the account of the machine's service, and acting for it.

Its home belongs to it, to Administrators and to Windows itself. An administrator opens it as they
are: what they make there is made for all of these.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from svcq.errors import NotPermitted, Refused
from svcq.host import windows
from svcq.host.windows_kernel import registry

SERVICE = "svcq"
SETTINGS = rf"SYSTEM\CurrentControlSet\Services\{SERVICE}"
_COMMON_DATA = 0x23
ACCOUNT = rf"NT SERVICE\{SERVICE}"


def home() -> Path:
    """Where Windows says it is; a variable says what its user likes."""
    from win32com.shell import shell  # type: ignore[import-untyped, unused-ignore]

    found: Any = shell.SHGetFolderPath
    return Path(found(0, _COMMON_DATA, None, 0), "svcq")


def service_sid() -> str:
    """What Windows gives every service of that name, there or not: from its name alone."""
    digest = hashlib.sha1(SERVICE.upper().encode("utf-16-le"), usedforsecurity=False).digest()
    parts = (int.from_bytes(digest[at : at + 4], "little") for at in range(0, 20, 4))
    return "S-1-5-80-" + "-".join(map(str, parts))


def sids() -> set[str]:
    """Who the service is: its own account, and the one that it logs on with, if that is another."""
    import pywintypes
    import win32security as security

    found = {service_sid()}
    with suppress(OSError, pywintypes.error):
        with registry().OpenKey(registry().HKEY_LOCAL_MACHINE, SETTINGS) as key:
            name = str(registry().QueryValueEx(key, "ObjectName")[0])
        sid = security.LookupAccountName(None, name.removeprefix(".\\"))[0]
        found.add(security.ConvertSidToStringSid(sid))
    return found


def is_administrator() -> bool:
    """Whether this process has the rights, not only its user."""
    from win32com.shell import shell  # type: ignore[import-untyped, unused-ignore]

    return bool(shell.IsUserAnAdmin())


def need_administrator(doing: str) -> None:
    if not is_administrator():
        raise NotPermitted(
            f"Only an administrator may {doing} of the whole machine: use a terminal that was "
            'opened with "Run as administrator".'
        )


def _is_the_service() -> bool:
    import pywintypes
    import win32security as security

    try:
        sid = security.ConvertStringSidToSid(service_sid())
        asked: Any = security.CheckTokenMembership
        return bool(asked(None, sid))
    except pywintypes.error:
        return False


def become(*, asking: bool = False) -> None:
    """Mean the machine's service from here on, in all that this process does."""
    del asking  # others have no door to it yet but the page
    if not home().is_dir():
        raise Refused(
            "svcq is not installed for the whole machine: svcq install --system does that, in a "
            'terminal that was opened with "Run as administrator".'
        )
    if not (_is_the_service() or is_administrator()):
        raise NotPermitted(
            f"The queue of this machine belongs to the account {ACCOUNT}: use a terminal that was "
            'opened with "Run as administrator", or svcq without --system for a queue of your own.'
        )
    _mean_its_home()


def _mean_its_home() -> None:
    os.environ.pop("SVCQ_STORE", None)
    os.environ["SVCQ_HOME"] = str(home())
    windows.share_with(sids())


@contextmanager
def acting() -> Iterator[None]:
    """Mean it for a while."""
    environment = dict(os.environ)
    become()
    try:
        yield
    finally:
        windows.share_with(())
        os.environ.clear()
        os.environ.update(environment)


def make_home() -> None:
    """The folder of the machine's service, for its account from its first instant on."""
    windows.share_with(sids())
    try:
        windows.private_directory(home())
    finally:
        windows.share_with(())
