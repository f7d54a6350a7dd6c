"""`svcq enqueue`: jobs as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from svcq.cli.command import captured_environment
from svcq.cli.parser import Namespace, Parser, add_json, read_source
from svcq.errors import InvalidInput, SvcqError
from svcq.words import new_job

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.policy import NewJob

_ABOUT = """
An object has a "command" (a line for the shell, or a list of words) or a "task" with "args" and
"kwargs", and any option of svcq.Options by its name. "id" is taken as the name, and "max_retries"
of n as "max_attempts" of n + 1.

  svcq enqueue '{"id": "job1", "command": "echo hi", "max_retries": 3, "timeout": 20}'
  svcq enqueue --file jobs.jsonl

A command runs in the directory, and with the environment, it was queued from; "env" adds to it.
A file has one object a line, or one array of objects; - is standard input. All are queued, or
none. The ids are printed, one a line.
"""


def _enqueue_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.add_argument("object", nargs="?", metavar="JSON", help="one job; - reads many")
    parser.add_argument("-f", "--file", metavar="FILE", help="a file of jobs; - is standard input")
    add_json(parser)
    parser.set_defaults(run=_enqueue)


def _enqueue(options: Namespace) -> None:
    from svcq.client import Client

    if (options.object is None) == (options.file is None):
        raise InvalidInput("Give one job as JSON, or a file of jobs with --file.")
    file = "-" if options.object == "-" else options.file
    with Client() as client:
        environment = captured_environment(client)
        if file is None:
            new = [new_job(_parse(options.object), client, environment)]
        else:
            new = _read_jobs(file, client, environment)
        added = client.add(new)
        if options.json:
            from svcq.cli.text import print_json

            jobs = [client.get(one.id).as_json() for one in added]
            print_json(jobs[0] if file is None else jobs)
        else:
            sys.stdout.writelines(f"{one.id}\n" for one in added)


def _read_jobs(file: str, client: Client, environment: Mapping[str, str]) -> list[NewJob]:
    where = "standard input" if file == "-" else file
    new = []
    for place, text in _objects(read_source(file)):
        try:
            given = _parse(text) if isinstance(text, str) else text
            new.append(new_job(given, client, environment))
        except SvcqError as error:
            raise InvalidInput(f"{where}, {place}: {error} Nothing was queued.") from None
    if not new:
        raise InvalidInput(f"There are no jobs in {where}: give one JSON object a line.")
    return new


def _objects(text: str) -> Iterator[tuple[str, Any]]:
    if text.lstrip().startswith("["):
        array = _parse(text)
        yield from ((f"element {n}", element) for n, element in enumerate(array, 1))
        return
    for n, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"line {n}", line


def _parse(text: str) -> Any:
    from svcq.strict import parse_json

    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"This is not JSON ({error}).") from None


PARSERS = {"enqueue": _enqueue_parser}
