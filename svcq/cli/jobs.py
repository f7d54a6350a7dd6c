"""Which jobs a command is about: given one by one, or chosen by filters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from svcq.cli.parser import Namespace, add_json, add_yes, confirm, flat, words_of
from svcq.errors import InvalidInput, SvcqError, WrongState

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.jobs import Job

PAGE = 1000


def add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", metavar="STATE", action="append", type=words_of,
        help="only in this state; several with commas",
    )  # fmt: skip
    parser.add_argument("--queue", metavar="QUEUE", help="only of this queue")
    parser.add_argument("--tag", metavar="TAG", help="only with this tag")
    parser.add_argument("--task", metavar="NAME", help="only of this task")


def add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since", metavar="TIME", type=_since,
        help="only added since: 2h, today, yesterday 09:00, 2031-05-01",
    )  # fmt: skip
    parser.add_argument(
        "--grep", metavar="TEXT", help="only with this text in name, command, task or arguments"
    )
    parser.add_argument("--owner", metavar="USER", help="only of this user")


def _since(text: str) -> float:
    from svcq.when import parse_past

    return parse_past(text).timestamp()


def filters_of(options: Namespace) -> dict[str, Any]:
    """What the filters say, as Client.list takes it."""
    names = ("queue", "tag", "task", "since", "grep", "owner")
    said = {name: value for name in names if (value := getattr(options, name, None)) is not None}
    if states := flat(options.state):
        said["state"] = states
    return said


def all_jobs(client: Client, **filters: Any) -> Iterator[Job]:
    """Every job that the filters let through, page by page."""
    if filters.get("state") is not None and len(filters["state"]) == 1:
        # One state is listed by its time, where an id is no place to go on from.
        yield from client.list(**filters, limit=100_000)
        return
    before = None
    while True:
        page = client.list(**filters, before=before, limit=PAGE)
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1].id


def add_targets(parser: argparse.ArgumentParser) -> None:
    """Jobs by id or name, or many by filters."""
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="an id or a name")
    add_filters(parser)
    add_yes(parser)
    add_json(parser)


def act(
    options: Namespace,
    verb: str,
    done: str,
    states: Collection[str],
    action: Callable[[Client, Any], Job],
) -> int:
    """Do one thing with each job; what cannot be done is said, and the others are done still."""
    from svcq.client import Client

    with Client() as client:
        targets, chosen = _targets(options, client, verb, states)
        if targets is None:
            return 1
        jobs, codes = [], []
        for target in targets:
            try:
                jobs.append(action(client, target))
            except SvcqError as error:
                # What a filter chose may have moved on since, and is then no longer meant.
                if not (chosen and isinstance(error, WrongState)):
                    codes.append(_complain(error))
        _report(options, jobs, done, chosen)
        return codes[0] if codes else 0


def _targets(
    options: Namespace, client: Client, verb: str, states: Collection[str]
) -> tuple[list[Any] | None, bool]:
    """The jobs, None when the answer was no; and whether filters chose them."""
    filters = filters_of(options)
    if options.jobs:
        if filters:
            raise InvalidInput("Both jobs and filters are given: give one of them.")
        return list(dict.fromkeys(options.jobs)), False
    if not filters:
        raise InvalidInput(
            f"There is nothing to {verb}: name jobs, or choose them with --queue, --state, --tag "
            "or --task."
        )
    filters.setdefault("state", sorted(states))
    found = [job.id for job in all_jobs(client, **filters)]
    from svcq.cli.text import plural

    agreed = not found or confirm(
        f"This would {verb} {plural(len(found), 'job')}.", yes=options.yes
    )
    return (found if agreed else None), True


def _complain(error: SvcqError) -> int:
    from svcq.cli.text import sentence

    print(f"svcq: {sentence(error)}", file=sys.stderr)
    return error.exit_code


def _report(options: Namespace, jobs: list[Job], done: str, chosen: bool) -> None:
    from svcq.cli.text import plural, print_json

    if options.json:
        print_json([job.as_json() for job in jobs])
    elif chosen:
        print(f"{done} {plural(len(jobs), 'job')}.")
    else:
        for job in jobs:
            asked = " and asked to stop" if job.cancel_requested else ""
            print(f"Job {job.id} is {job.state}{asked}.")
