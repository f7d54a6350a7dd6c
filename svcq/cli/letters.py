"""`svcq dlq`: the dead letters, what ran out of attempts or was rejected."""

from __future__ import annotations

from svcq.cli import look, steer, tidy
from svcq.cli.jobs import add_targets
from svcq.cli.parser import Namespace, Parser, add_yes
from svcq.jobs import State


def _dlq_parser(parser: Parser) -> None:
    listing = parser.command("list", "list dead jobs", look.list_jobs)
    listing.add_argument("--queue", metavar="QUEUE", help="only of this queue")
    listing.add_argument("--tag", metavar="TAG", help="only with this tag")
    listing.add_argument("--task", metavar="NAME", help="only of this task")
    look.add_listing(listing)
    listing.set_defaults(state=[[State.DEAD]])
    look.show_parser(parser.command("show", "show a dead job with its runs", look.show))
    again = parser.command("retry", "run dead jobs again", steer.retry)
    add_targets(again)
    again.add_argument("--all", action="store_true", help="every dead job")
    again.set_defaults(run=_retry, copy=False)
    purge = parser.command("purge", "remove dead jobs for good", tidy.purge)
    purge.add_argument("--queue", metavar="QUEUE", help="only of this queue")
    add_yes(purge)
    purge.set_defaults(state=[[State.DEAD]])


def _retry(options: Namespace) -> int:
    if options.all and options.state is None:
        options.state = [[State.DEAD]]
    return steer.retry(options)


PARSERS = {"dlq": _dlq_parser}
