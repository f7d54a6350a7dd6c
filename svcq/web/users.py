"""Whom the owner lets in: users by name, and the members of the group svcq.

They are kept in a file of the home, with their numbers: an account that was removed and made anew
under the same name is someone else.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from svcq import host
from svcq.client.verbs import Role
from svcq.errors import InvalidInput, NotFound, Refused, SvcqError
from svcq.host import peers
from svcq.web.callers import Caller

FILE = "users.json"
GROUP = "svcq"
ROLES = {"reader": Role.READER, "user": Role.USER, "admin": Role.ADMIN}


class User(NamedTuple):
    name: str
    uid: int
    role: str


def read_users(home: Path) -> list[User]:
    file = home / FILE
    if not file.exists():
        return []
    host.check_private(file)
    try:
        return [
            User(str(one["name"]), int(one["uid"]), str(one["role"]))
            for one in json.loads(file.read_text())
            if one["role"] in ROLES
        ]
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"{file} is not what svcq wrote: remove it, and add the users anew."
        ) from None


def add_user(home: Path, name: str, role: str) -> User:
    """Let someone in, or give them another role."""
    uid = peers.uid_named(name)
    if uid is None:
        raise NotFound(f"There is no user {name!r} on this machine: check the name.")
    if uid in (0, peers.own_uid()):
        raise Refused(f"{name} may do everything here already.")
    if uid == peers.NOBODY:
        raise Refused(f"{name} is whoever the system does not know: name a user who is one person.")
    user = User(peers.account_name(uid), uid, role)
    others = [one for one in read_users(home) if one.name != user.name and one.uid != uid]
    _write(home, [*others, user])
    return user


def remove_user(home: Path, name: str) -> None:
    users = read_users(home)
    if all(one.name != name for one in users):
        raise NotFound(f"The user {name!r} was not let in: svcq user list shows who is.")
    _write(home, [one for one in users if one.name != name])


def _write(home: Path, users: list[User]) -> None:
    host.private_directory(home)
    said = [one._asdict() for one in sorted(users)]
    host.write_private(home / FILE, json.dumps(said, indent=2) + "\n")


class Users:
    """Who may do what, as the file and the system have it now."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def caller_of(self, uid: int) -> Caller | None:
        """What the user with this number may do; None for nothing."""
        name = peers.account_name(uid)
        if uid in (0, peers.own_uid()):
            return Caller(name, Role.ADMIN, "peer")
        if uid == peers.NOBODY:
            return None
        with suppress(SvcqError, OSError):
            for user in read_users(self._home):
                if (user.uid, user.name) == (uid, name):
                    return Caller(name, ROLES[user.role], "peer")
        if peers.member_of(uid, GROUP):
            return Caller(name, Role.USER, "peer")
        return None
