"""Linux: the account of the machine's service, and becoming it.

Root opens nothing of that account's: whoever may write a folder could lead root anywhere.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from svcq.errors import NotPermitted, Refused
from svcq.host.linux import name_of
from svcq.host.linux_units import ACCOUNT, HOME

if TYPE_CHECKING:
    from pwd import struct_passwd

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ABOUT = "svcq job queue"  # by this an account that we made is known
_NO_LOGIN = ("nologin", "false")
# What is of the terminal and the language, and nobody's secret.
_KEPT = ("LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "TERM", "NO_COLOR", "COLUMNS", "LINES")


def find() -> struct_passwd | None:
    import pwd

    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        return None


def become(*, asking: bool = False) -> None:
    """Be the account of the machine's service from here on, in all that this process does.

    Root may, and the account itself. Others stay who they are, where all they do is `asking` the
    service, which knows whom it lets in.
    """
    account = _needed()
    if os.geteuid() == 0 and account.pw_uid != 0:
        _drop_to(account)
    elif os.geteuid() != account.pw_uid and not asking:
        raise _not_yours()
    _mean_its_home()


def _not_yours() -> NotPermitted:
    return NotPermitted(
        f"The queue of this machine belongs to the account {ACCOUNT}: "
        "use sudo svcq --system ..., or svcq without --system for a queue of your own."
    )


def _mean_its_home() -> None:
    os.environ.pop("SVCQ_STORE", None)
    os.environ["SVCQ_HOME"] = HOME


def _needed() -> struct_passwd:
    account = find()
    if account is None or not os.path.isdir(HOME):
        raise Refused(
            "svcq is not installed for the whole machine: sudo svcq install --system does that."
        )
    return account


def _drop_to(account: struct_passwd) -> None:
    try:
        before = os.getcwd()
    except FileNotFoundError:
        before = HOME
    os.initgroups(account.pw_name, account.pw_gid)
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    os.umask(0o077)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
    os.environ.update(
        PATH=PATH, HOME=HOME, USER=account.pw_name, LOGNAME=account.pw_name, SHELL="/bin/sh"
    )
    try:
        os.chdir(before)  # by its name: where root stands, the account may not be let in
    except OSError:
        os.chdir(HOME)
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not os.access(ours, os.R_OK | os.X_OK):
        raise NotPermitted(
            f"The account {ACCOUNT} may not read this svcq, in {ours}: "
            "call the one that was installed for the whole machine."
        )


@contextmanager
def acting() -> Iterator[None]:
    """Be the account for a while, as root, who is needed again afterwards; others stay who they
    are, and ask the service."""
    account = _needed()
    root, groups, environment = os.geteuid() == 0, os.getgroups(), dict(os.environ)
    if root:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setegid(account.pw_gid)
        os.seteuid(account.pw_uid)
    _mean_its_home()
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)
        os.environ.clear()
        os.environ.update(environment)


def need_administrator(doing: str) -> None:
    if os.geteuid() != 0:
        raise NotPermitted(f"Only an administrator may {doing} of the whole machine: use sudo.")


# Making it


def make() -> str | None:
    """Make sure there is the account; what was done. A person's account of that name is refused."""
    account = find()
    if account is not None:
        if account.pw_uid == 0 or os.path.basename(account.pw_shell) not in _NO_LOGIN:
            raise Refused(
                f"The account {ACCOUNT} is there and someone may log in to it (its shell is "
                f"{account.pw_shell or '/bin/sh'}): rename it, or take its shell away with "
                f"usermod --shell /usr/sbin/nologin {ACCOUNT}."
            )
        return None
    errors = []
    for words in _ways_to_make():
        try:
            subprocess.run(words, check=True, capture_output=True, text=True, timeout=60)
            break
        except (OSError, subprocess.SubprocessError) as error:
            errors.append(f"{words[0]}: {getattr(error, 'stderr', '') or error}".strip())
    if find() is None:
        raise Refused(
            f"The account {ACCOUNT} cannot be made ({'; '.join(errors)}): "
            f"make a system account of that name, then install again."
        )
    return f"Made the account {ACCOUNT}, which nobody can log in to."


def _ways_to_make() -> list[list[str]]:
    entry = f'u {ACCOUNT} - "{_ABOUT}" {HOME} /usr/sbin/nologin'
    return [
        ["systemd-sysusers", "--inline", entry],
        ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", HOME,
         "--shell", "/usr/sbin/nologin", "--comment", _ABOUT, ACCOUNT],
    ]  # fmt: skip


def remove() -> str | None:
    """Remove the account, if we made it; what was done."""
    account = find()
    if account is None or account.pw_gecos != _ABOUT:
        return None
    try:
        subprocess.run(["userdel", ACCOUNT], check=True, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        why = getattr(error, "stderr", "") or error
        return f"The account {ACCOUNT} could not be removed ({str(why).strip()})."
    return f"Removed the account {ACCOUNT}, which had the number {account.pw_uid}."


def make_home() -> None:
    """The home, of the account alone. A folder that someone else has put there is refused."""
    account = _account()
    if not os.path.lexists(HOME):
        os.mkdir(HOME, 0o700)
        os.chown(HOME, account.pw_uid, account.pw_gid)
        os.chmod(HOME, 0o700)  # whatever the umask has taken away
    check_home()


def check_home() -> None:
    status = os.lstat(HOME)
    account = find()
    if account is None or status.st_uid != account.pw_uid or not os.path.isdir(HOME):
        what = "is a link of" if os.path.islink(HOME) else "belongs to"
        give = "" if account is None else f", or give it over with chown -RP {ACCOUNT}: {HOME}"
        raise Refused(
            f"{HOME} {what} {name_of(status.st_uid)}, not to the account {ACCOUNT}: "
            f"move it away{give}, then install again."
        )
    if status.st_mode & 0o077:
        raise Refused(f"{HOME} is open to others: chmod 0700 {HOME}, then install again.")


def _account() -> struct_passwd:
    account = find()
    assert account is not None
    return account
