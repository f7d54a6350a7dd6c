"""`svcq why`."""

from __future__ import annotations

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import clean, paint, print_json


def _why_parser(parser: Parser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="an id or a name")
    add_json(parser)
    parser.set_defaults(run=_why)


def _why(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        found = [client.explain(job) for job in options.jobs]
    if options.json:
        shown = [one.as_json() for one in found]
        print_json(shown[0] if len(shown) == 1 else shown)
        return
    for one in found:
        number = f"{one.job} " if len(found) > 1 else ""
        says = clean(one.text.removeprefix(one.state))
        print(f"{number}{paint(one.state)}{says}")


PARSERS = {"why": _why_parser}
