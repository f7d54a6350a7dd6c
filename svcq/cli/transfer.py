"""`svcq backup`, `export`, `import` and `upgrade-store`: the store as a whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import clean, plural, tell
from svcq.errors import InvalidInput


def _add_environments(parser: Parser) -> None:
    parser.add_argument(
        "--with-environments", action="store_true",
        help="with the environments of commands, which may hold secrets",
    )  # fmt: skip


def _backup_parser(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a new file")
    _add_environments(parser)
    add_json(parser)
    parser.set_defaults(run=_backup)


def _backup(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        client.backup(options.file, environments=options.with_environments)
    says = f"The store was copied to {clean(options.file)}."
    tell(says, as_json=options.json, file=options.file)


def _export_parser(parser: Parser) -> None:
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="a new file; standard output without"
    )
    _add_environments(parser)
    parser.set_defaults(run=_export)


def _export(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        lines = client.export(environments=options.with_environments)
        if options.file == "-":
            for line in lines:
                print(line)
            return
        written = write_whole(Path(options.file), lines)
    print(f"Wrote {plural(written, 'line')} to {clean(options.file)}.")


def write_whole(file: Path, lines: Iterator[str]) -> int:
    """A new file of ours alone, all of it or nothing."""
    from svcq import host

    try:
        descriptor = host.create_private(file)
    except FileExistsError:
        raise InvalidInput(f"{file} exists already: name a new file.") from None
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"The folder {file.parent} does not exist: make it first.") from None
    written = 0
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as out:
            for line in lines:
                out.write(f"{line}\n")
                written += 1
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return written


def _import_parser(parser: Parser) -> None:
    parser.description = (
        "Add what an export wrote, all or none. A store that never had a job keeps the ids."
    )
    parser.add_argument("file", metavar="FILE", help="what svcq export wrote; - is standard input")
    add_json(parser)
    parser.set_defaults(run=_import)


def _import(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        n = client.import_lines(_lines(options.file))
    tell(f"Added {plural(n, 'job')}.", as_json=options.json, added=n)


def _lines(name: str) -> Iterator[str]:
    try:
        source = sys.stdin.buffer if name == "-" else open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read ({error.strerror}).") from None
    with source:
        for number, line in enumerate(source, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InvalidInput(f"{name}, line {number}, is not UTF-8.") from None


def _upgrade_store_parser(parser: Parser) -> None:
    parser.description = "Bring the store up to date with this program, after a backup copy."
    parser.set_defaults(run=_upgrade_store)


def _upgrade_store(_: Namespace) -> None:
    from svcq.config import load
    from svcq.store import upgrade_store

    before, after = upgrade_store(load())
    if before == after:
        print(f"The store has schema {after}: there is nothing to do.")
    else:
        print(f"The store was brought from schema {before} to {after}; a backup stands beside it.")


PARSERS = {
    "backup": _backup_parser,
    "export": _export_parser,
    "import": _import_parser,
    "upgrade-store": _upgrade_store_parser,
}
