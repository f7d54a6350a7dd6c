"""Windows: files and directories that belong to one account.

"Private" is an access list of three: the account itself, Administrators and SYSTEM, who can
take any file anyway. The list is given at creation and protected from what the parent folder
would hand down, so that there is no instant in which others have access.

Imports pywin32 inside its functions, so that the file can be read by every system's tools.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from svcq.errors import InvalidInput, NotPermitted

if TYPE_CHECKING:
    from _win32typing import PyACL, PySECURITY_ATTRIBUTES, PySID

# How a process can end: with 32 bits, which some take for a signed number.
EXIT_CODES = range(-(2**31), 2**32)

LONGEST_FOLDER = 180
"""Characters; with what is in a home, less than the 260 that a path can have."""

_ADMINISTRATORS = "S-1-5-32-544"
_SYSTEM = "S-1-5-18"
# Owns the folders of Windows itself, such as C:\.
_TRUSTED_INSTALLER = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
# Stands for whoever owns the file, which is judged by itself.
_OWNER_RIGHTS = "S-1-3-4"

_FULL_CONTROL = 0x1F01FF
_GENERIC_ALL, _GENERIC_WRITE, _GENERIC_READ = 0x10000000, 0x40000000, 0x80000000
_DELETE, _WRITE_DAC, _WRITE_OWNER, _DELETE_CHILD = 0x10000, 0x40000, 0x80000, 0x40
_WRITE_DATA, _APPEND_DATA, _WRITE_EA, _WRITE_ATTRIBUTES = 0x2, 0x4, 0x10, 0x100
# Rights to put something else in the place of a file, given on a folder that leads to it.
# The right to add files beside it is harmless, and every user has it on C:\.
_MAY_REPLACE = _GENERIC_ALL | _DELETE | _WRITE_DAC | _WRITE_OWNER | _DELETE_CHILD
_MAY_READ = 0x1 | _GENERIC_ALL | _GENERIC_READ
_MAY_WRITE = (
    _MAY_REPLACE | _GENERIC_WRITE | _WRITE_DATA | _APPEND_DATA | _WRITE_EA | _WRITE_ATTRIBUTES
)


def data_directory() -> str:
    """Where programs keep the data of this account."""
    import platformdirs

    return platformdirs.user_data_dir()


def is_of_another(path: str) -> bool:
    """Whether it is there and belongs to another account than ours."""
    if not os.path.exists(path):
        return False
    try:
        check_private(path)
    except NotPermitted:
        return True
    return False


def public_socket(home: str) -> str | None:
    """Local sockets do not tell here who is at their other end."""
    del home
    return None


def private_directory(path: Path) -> None:
    """Make sure `path` is a folder of ours that no one else may write.

    What is missing, parents included, is made private from its first instant.
    """
    path = path.absolute()
    if len(str(path)) > LONGEST_FOLDER:
        raise InvalidInput(
            f"{path} has {len(str(path))} characters, and what svcq makes in it would have more "
            f"than Windows takes: choose a folder of at most {LONGEST_FOLDER}."
        )
    missing = [directory for directory in (path, *path.parents) if not os.path.lexists(directory)]
    if missing:
        _check_way_to(missing[-1])
    for directory in reversed(missing):
        _make_directory(directory)
    check_private(path)
    if not path.is_dir():
        raise InvalidInput(f"{path} is not a directory: remove it, or name another place.")


def check_private(path: str | os.PathLike[str]) -> None:
    """Refuse a file or folder that is not ours, or that someone else could write or replace."""
    path = Path(path).absolute()
    if not path.exists():
        raise InvalidInput(f"{path} does not exist: name one that does.")
    _check_access(path, _trusted(), _MAY_WRITE)
    _check_way_to(path)


def others_may_read(path: Path) -> bool:
    import win32security as security

    access = security.GetNamedSecurityInfo(
        str(path), security.SE_FILE_OBJECT, security.DACL_SECURITY_INFORMATION
    ).GetSecurityDescriptorDacl()
    if access is None:
        return True
    allowed = {_text(account) for account in _accounts_allowed(access, _MAY_READ)}
    return bool(allowed - _trusted())


def create_private(path: Path) -> int:
    """Create a file that did not exist, for us alone, and return its descriptor, open for both.

    Raises FileExistsError when it is there already.
    """
    import msvcrt

    import pywintypes
    import win32con
    import win32file

    try:
        handle = win32file.CreateFile(
            str(path),
            win32con.GENERIC_READ | win32con.GENERIC_WRITE,
            win32con.FILE_SHARE_READ | win32con.FILE_SHARE_WRITE,
            _only_us(inherited=False),
            win32con.CREATE_NEW,
            win32con.FILE_ATTRIBUTE_NORMAL,
            None,
        )
    except pywintypes.error as error:
        raise _as_os_error(error, path) from error
    open_osfhandle = msvcrt.open_osfhandle  # type: ignore[attr-defined, unused-ignore]
    return int(open_osfhandle(handle.Detach(), os.O_RDWR | getattr(os, "O_BINARY", 0)))


def replace_durably(source: Path, target: Path) -> None:
    """Rename `source` over `target`, so that the new name survives a power cut."""
    import pywintypes
    import win32file

    flags = win32file.MOVEFILE_REPLACE_EXISTING | win32file.MOVEFILE_WRITE_THROUGH
    try:
        win32file.MoveFileEx(str(source), str(target), flags)
    except pywintypes.error as error:
        raise _as_os_error(error, target) from error


def sync_directory(path: Path) -> None:
    """Nothing to do: NTFS keeps names in its journal, and a folder cannot be flushed."""


def _make_directory(path: Path) -> None:
    import pywintypes
    import win32file
    import winerror

    try:
        win32file.CreateDirectory(str(path), _only_us(inherited=True))
    except pywintypes.error as error:
        # Another process of ours was faster; whoever made it, it is judged afterwards.
        if error.winerror == winerror.ERROR_ALREADY_EXISTS:
            return
        forbidden = error.winerror == winerror.ERROR_ACCESS_DENIED
        raise (NotPermitted if forbidden else InvalidInput)(
            f"The directory {path} cannot be made ({error.strerror}): "
            "make it yourself, or set SVCQ_HOME to a place you may write."
        ) from error


def _only_us(*, inherited: bool) -> PySECURITY_ATTRIBUTES:
    """The security of something new; `inherited`: also of what will be made inside."""
    import win32security as security

    access = security.ACL()
    flags = security.CONTAINER_INHERIT_ACE | security.OBJECT_INHERIT_ACE if inherited else 0
    owner = _owner()
    ours = _shared or {owner}
    for sid in (*ours, *({_ADMINISTRATORS, _SYSTEM} - ours)):
        account = security.ConvertStringSidToSid(sid)
        access.AddAccessAllowedAceEx(security.ACL_REVISION_DS, flags, _FULL_CONTROL, account)
    attributes = security.SECURITY_ATTRIBUTES()
    descriptor = attributes.SECURITY_DESCRIPTOR
    # Without this an elevated process would hand its files to Administrators.
    descriptor.SetSecurityDescriptorOwner(security.ConvertStringSidToSid(owner), False)
    descriptor.SetSecurityDescriptorDacl(True, access, False)
    protected = security.SE_DACL_PROTECTED
    descriptor.SetSecurityDescriptorControl(protected, protected)
    return attributes


def check_administrators_alone(path: Path) -> None:
    """Refuse what someone else than an administrator, or we ourselves, may write or replace."""
    dangerous = _MAY_REPLACE if path.is_dir() else _MAY_WRITE
    _check_access(path, _trusted() | {_TRUSTED_INSTALLER}, dangerous)


def _check_way_to(path: Path) -> None:
    """Refuse when someone else could put another file in the place of `path`."""
    trusted = _trusted() | {_TRUSTED_INSTALLER}
    for directory in dict.fromkeys((*path.parents, *Path(os.path.realpath(path)).parents)):
        _check_access(directory, trusted, _MAY_REPLACE)


def _trusted() -> set[str]:
    return {my_sid(), _ADMINISTRATORS, _SYSTEM, _OWNER_RIGHTS, *_shared}


_shared: set[str] = set()


def share_with(sids: Collection[str]) -> None:
    """From here on, what is made is for these accounts, and what they have made is trusted: the
    machine's service and its administrators work on one home. Of no accounts: for us alone."""
    _shared.clear()
    _shared.update(sids)


def _owner() -> str:
    """Of what we make. To the service, one administrator is as much a stranger as anyone: what an
    administrator makes for it belongs to all of them."""
    us = my_sid()
    return us if not _shared or us in _shared else _ADMINISTRATORS


def _check_access(path: Path, trusted: set[str], dangerous: int) -> None:
    import win32security as security

    descriptor = security.GetNamedSecurityInfo(
        str(path),
        security.SE_FILE_OBJECT,
        security.OWNER_SECURITY_INFORMATION | security.DACL_SECURITY_INFORMATION,
    )
    owner = descriptor.GetSecurityDescriptorOwner()
    if _text(owner) not in trusted:
        raise NotPermitted(
            f"{path} belongs to {_account(owner)}, not to you: run svcq as that user, "
            f'or make it yours (takeown /f "{path}").'
        )
    access = descriptor.GetSecurityDescriptorDacl()
    if access is None:
        raise NotPermitted(
            f"{path} has no access list, so everyone may write it: "
            f'give it one with icacls "{path}" /reset.'
        )
    for account in _accounts_allowed(access, dangerous):
        if _text(account) not in trusted:
            raise NotPermitted(
                f"{path} may be written by {_account(account)}: take that right away with "
                f'icacls "{path}" /inheritance:d /remove:g "{_account(account)}".'
            )


def _accounts_allowed(access: PyACL, rights: int) -> Iterator[PySID]:
    """The accounts with any of `rights`; one that is also denied counts, to be on the safe side."""
    import win32security as security

    for index in range(access.GetAceCount()):
        (kind, flags), mask, *_, account = access.GetAce(index)
        only_for_what_is_inside = flags & security.INHERIT_ONLY_ACE
        denied = kind == security.ACCESS_DENIED_ACE_TYPE
        if mask & rights and not denied and not only_for_what_is_inside:
            yield account


def my_sid() -> str:
    import win32api
    import win32security as security

    token = security.OpenProcessToken(win32api.GetCurrentProcess(), security.TOKEN_QUERY)
    return _text(security.GetTokenInformation(token, security.TokenUser)[0])


def _text(sid: PySID) -> str:
    import win32security as security

    return security.ConvertSidToStringSid(sid)


def _account(sid: PySID) -> str:
    import pywintypes
    import win32security as security

    try:
        name, domain, _ = security.LookupAccountSid(None, sid)
    except pywintypes.error:
        return _text(sid)
    return f"{domain}\\{name}" if domain else name


def _as_os_error(error: Exception, path: Path) -> OSError:
    """pywin32's error as the OSError that Python's own functions would raise."""
    code, _, message = error.args
    return OSError(0, message, str(path), code)
