"""`svcq enqueue`: jobs as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from svcq.cli.command import captured_environment
from svcq.cli.parser import Namespace, Parser, add_json, read_source
from svcq.errors import InvalidInput, SvcqError

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
_OWN_KEYS = ("command", "task", "args", "kwargs", "id", "max_retries")


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
        environment = captured_environment()
        if file is None:
            new = [_new_job(_parse(options.object), client, environment)]
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
            new.append(_new_job(given, client, environment))
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
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"This is not JSON ({error}).") from None


def _new_job(given: Any, client: Client, environment: Mapping[str, str]) -> NewJob:
    if not isinstance(given, dict):
        raise InvalidInput('A job is a JSON object, such as {"command": "echo hi"}.')
    _check_keys(given)
    said = {k: v for k, v in given.items() if k not in _OWN_KEYS and v is not None}
    _translate(given, said)
    if ("command" in given) == ("task" in given):
        raise InvalidInput("A job has either a command or a task: give one of them.")
    if "task" in given:
        args, kwargs = given.get("args", []), given.get("kwargs", {})
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise InvalidInput("The args of a task are an array, its kwargs an object.")
        return client.new_task(given["task"], args, kwargs, **said)
    if "args" in given or "kwargs" in given:
        raise InvalidInput("args and kwargs are for a task: put them into the command.")
    own = said.pop("env", {})
    if not isinstance(own, dict):
        raise InvalidInput('The env is not an object of texts: give {"NAME": "value"}.')
    return client.new_command(given["command"], env={**environment, **own}, **said)


def _translate(given: Mapping[str, Any], said: dict[str, Any]) -> None:
    """Words of other queues, as ours."""
    if "id" in given:
        if "name" in said:
            raise InvalidInput("Both id and name are given: give one.")
        if not isinstance(given["id"], str):
            raise InvalidInput(f"The id {given['id']!r} is not text: it becomes the job's name.")
        said["name"] = given["id"]
    if "max_retries" in given:
        retries = given["max_retries"]
        if "max_attempts" in said:
            raise InvalidInput("Both max_retries and max_attempts are given: give one.")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InvalidInput(f"The max_retries {retries!r} is not a whole number from 0 on.")
        said["max_attempts"] = retries + 1


def _check_keys(given: Mapping[str, Any]) -> None:
    from svcq.policy import OPTION_NAMES

    known = [*_OWN_KEYS, *OPTION_NAMES]
    unknown = next((key for key in given if key not in known), None)
    if unknown is not None:
        from difflib import get_close_matches

        near = get_close_matches(unknown, known, 1)
        hint = f"did you mean {near[0]}?" if near else "svcq enqueue --help says what there is."
        raise InvalidInput(f"A job has no key {unknown!r}: {hint}")


PARSERS = {"enqueue": _enqueue_parser}
