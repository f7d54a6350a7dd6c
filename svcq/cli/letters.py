"""`svcq dlq`: the dead letters, what ran out of attempts or was rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svcq.cli import look, tidy
from svcq.cli.jobs import act
from svcq.cli.parser import Namespace, Parser, add_json, add_yes
from svcq.errors import WrongState
from svcq.jobs import Job, State

if TYPE_CHECKING:
    from svcq.client import Client


def _dlq_parser(parser: Parser) -> None:
    listing = parser.command("list", "list dead jobs", look.list_jobs)
    listing.add_argument("--queue", metavar="QUEUE", help="only of this queue")
    listing.add_argument("--tag", metavar="TAG", help="only with this tag")
    listing.add_argument("--task", metavar="NAME", help="only of this task")
    look.add_listing(listing)
    listing.set_defaults(state=[[State.DEAD]])
    show = parser.command("show", "show a dead job with its runs", _show)
    look.show_parser(show)
    show.set_defaults(run=_show)
    again = parser.command("retry", "run dead jobs again", _retry)
    again.add_argument("jobs", nargs="*", metavar="JOB", help="an id or a name")
    again.add_argument("--queue", metavar="QUEUE", help="only of this queue")
    again.add_argument("--tag", metavar="TAG", help="only with this tag")
    again.add_argument("--task", metavar="NAME", help="only of this task")
    again.add_argument("--all", action="store_true", help="every dead job")
    add_yes(again)
    add_json(again)
    purge = parser.command("purge", "remove dead jobs for good", tidy.purge)
    purge.add_argument("--queue", metavar="QUEUE", help="only of this queue")
    add_yes(purge)
    add_json(purge)
    purge.set_defaults(state=[[State.DEAD]])


def _show(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        for target in options.jobs:
            _dead(client, target, "svcq show shows it")
    look.show(options)


def _retry(options: Namespace) -> int:
    options.state = [[State.DEAD]] if options.all else None
    return act(options, "retry", "Retried", {State.DEAD}, _retry_dead)


def _retry_dead(client: Client, target: Any) -> Job:
    return client.retry(_dead(client, target, "svcq retry takes what ended otherwise"))


def _dead(client: Client, target: Any, remedy: str) -> Job:
    job = client.get(target)
    if job.state is not State.DEAD:
        raise WrongState(f"Job {job.id} is {job.state}, not dead: {remedy}.")
    return job


PARSERS = {"dlq": _dlq_parser}
