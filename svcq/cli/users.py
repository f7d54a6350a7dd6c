"""`svcq user`: whom the owner of a store lets in."""

from __future__ import annotations

from pathlib import Path

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import Column, print_json, print_table

_ABOUT = """
Others reach the service through its local socket, which tells it who they are. Readers look at
jobs and their output; users also add jobs, and steer their own; admins may do everything. All jobs
run as the account of the service, whoever added them: let in only whom you trust with that
account. Members of the group svcq are users without being named.
"""


def _user_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    add = parser.command("add", "let a user of this machine in, or give them another role", _add)
    add.add_argument("name", metavar="USER", help="the name they log in with")
    add.add_argument(
        "--role", metavar="ROLE", choices=("reader", "user", "admin"), default="user",
        help="reader, user or admin; user by default",
    )  # fmt: skip
    remove = parser.command("remove", "let a user in no more", _remove)
    remove.add_argument("name", metavar="USER", help="the name they log in with")
    add_json(parser.command("list", "list the users who are let in", _list))


def _add(options: Namespace) -> None:
    from svcq.web.users import add_user

    user = add_user(_home(), options.name, options.role)
    print(f"{user.name} is let in as {user.role}.")


def _remove(options: Namespace) -> None:
    from svcq.web.users import remove_user

    remove_user(_home(), options.name)
    print(f"{options.name} is let in no more; their jobs stay.")


def _list(options: Namespace) -> None:
    from svcq.web.users import read_users

    users = read_users(_home())
    if options.json:
        print_json([one._asdict() for one in users])
    elif users:
        print_table(
            [Column("user"), Column("role"), Column("number", right=True)],
            [[one.name, one.role, one.uid] for one in users],
        )
    else:
        print("Nobody is let in by name; members of the group svcq are, where there is one.")


def _home() -> Path:
    from svcq import host
    from svcq.config import home

    path = home()
    if path.exists():
        host.check_private(path)  # says so when it is someone else's
    return path


PARSERS = {"user": _user_parser}
