"""`svcq purge` and `svcq cleanup`: removing jobs."""

from __future__ import annotations

from svcq.cli.parser import Namespace, Parser, add_json, add_yes, confirm, flat, words_of
from svcq.cli.text import plural, tell
from svcq.errors import InvalidInput


def _purge_parser(parser: Parser) -> None:
    parser.add_argument(
        "--state", metavar="STATE", action="append", type=words_of,
        help="jobs in this state; several with commas",
    )  # fmt: skip
    parser.add_argument("--queue", metavar="QUEUE", help="only of this queue")
    add_yes(parser)
    add_json(parser)
    parser.set_defaults(run=purge)


def purge(options: Namespace) -> int:
    from svcq.client import Client

    states = list(dict.fromkeys(flat(options.state)))
    if not states:
        raise InvalidInput("Say what to remove: --state completed, for example.")
    with Client() as client:
        if options.queue is not None:
            client.queue(options.queue)  # says so when there is none
        counts = client.counts(options.queue)
        n = sum(counts.get(state, 0) for state in states)
        where = "" if options.queue is None else f" of queue {options.queue}"
        what = plural(n, f"{' and '.join(states)} job")
        question = f"This would remove {what}{where} for good."
        if n and not confirm(question, yes=options.yes):
            return 1
        removed = client.purge(states, options.queue)
    tell(f"Removed {plural(removed, 'job')}.", as_json=options.json, removed=removed)
    return 0


def _cleanup_parser(parser: Parser) -> None:
    add_json(parser)
    parser.set_defaults(run=_cleanup)


def _cleanup(options: Namespace) -> None:
    from svcq.client import Client
    from svcq.service.janitor import tidy

    with Client() as client:
        # The service looks after its files itself.
        asked = client.remote
        jobs, files = (client.cleanup(), 0) if asked else tidy(client.store, client.config)
    output = f", and {plural(files, 'file')} of output that belonged to no job" if files else ""
    says = f"Removed {plural(jobs, 'job')} past retention{output}."
    tell(says, as_json=options.json, removed=jobs, files=files)


PARSERS = {"purge": _purge_parser, "cleanup": _cleanup_parser}
