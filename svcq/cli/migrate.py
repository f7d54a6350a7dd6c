"""`svcq migrate`: the whole store, moved to another database."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser
from svcq.cli.text import clean, plural
from svcq.passwords import has_password, hide_password

if TYPE_CHECKING:
    from svcq.config import Config
    from svcq.migrate import Moved

_ABOUT = """
Everything goes along: jobs with their ids and history, schedules, queues, counters, environments.
The copy is checked before it is used, and made in one transaction: what breaks off leaves nothing
behind, and can be repeated. The old store stays as it is. Nobody may work on it meanwhile: stop the
service and the workers first.

  svcq migrate --to postgresql://svcq@db.example.org/svcq --switch
  svcq migrate --to /var/tmp/svcq.db

The password is taken from PGPASSWORD or ~/.pgpass, as psql takes it; else it is asked for.
"""


def _migrate_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.add_argument(
        "--to", metavar="ADDRESS", required=True, help="a postgresql:// URL, or a new file"
    )
    parser.add_argument(
        "--switch", action="store_true", help="use the new store from then on (sets store)"
    )
    parser.set_defaults(run=_migrate)


def _migrate(options: Namespace) -> None:
    from svcq.config import load

    config = load()
    to = _address(options.to)
    warn_of_password(to)
    moved, asked = _move(config, to)
    shown = clean(hide_password(to))
    print(f"Moved {plural(moved.jobs, 'job')} ({plural(moved.rows, 'row')}) to {shown}; "
          "the copy was checked.")  # fmt: skip
    if options.switch:
        _switch(config, to)
    else:
        print(f"To use it: svcq config set store {shown}")
    print(f"The old store, {clean(hide_password(config.store))}, is as it was.")
    if asked:
        print("The password was not kept: put it in ~/.pgpass, where the service finds it, too.")


def warn_of_password(address: str) -> None:
    """Of one that was given as an argument."""
    if has_password(address):
        print(
            "svcq: The address holds a password, which others on this machine could have read in "
            "the list of processes: change it, and put it in ~/.pgpass.", file=sys.stderr,
        )  # fmt: skip


def _address(given: str) -> str:
    from svcq.config.check import checked

    address = str(checked("store", given, "--to"))
    return address if "://" in address else os.path.realpath(os.path.expanduser(address))


def _move(config: Config, to: str) -> tuple[Moved, bool]:
    """What was moved, and whether a password was asked for."""
    from svcq.errors import PasswordMissing
    from svcq.migrate import migrate

    progress = _Progress()
    try:
        return migrate(config, to, progress), False
    except PasswordMissing:
        progress.clear()
        if not sys.stdin.isatty():
            raise
    finally:
        progress.clear()
    from getpass import getpass
    from urllib.parse import quote

    password = getpass(f"Password for {clean(hide_password(to))}: ")
    sign = "&" if "?" in to else "?"
    try:
        return migrate(config, f"{to}{sign}password={quote(password, safe='')}", progress), True
    finally:
        progress.clear()


def _switch(config: Config, to: str) -> None:
    from svcq.config import set_value

    set_value(config.home, "store", to)
    if os.environ.get("SVCQ_STORE"):
        print("It is set as the store, but SVCQ_STORE is set, too, and goes first: unset it.")
    else:
        print("This home uses it from now on: svcq start.")


class _Progress:
    """One line that is written anew, where someone is there to see it."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, table: str, rows: int) -> None:
        if self._shown:
            print(f"\r\x1b[KCopying {table}: {rows:,}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


PARSERS = {"migrate": _migrate_parser}
