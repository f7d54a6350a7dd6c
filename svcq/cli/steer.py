"""`svcq cancel`, `retry`, `hold`, `release` and `move`: what people do with jobs."""

from __future__ import annotations

from svcq.cli.jobs import act, add_targets
from svcq.cli.parser import Namespace, Parser, add_json
from svcq.jobs import UNFINISHED, WAITING, State


def _cancel_parser(parser: Parser) -> None:
    add_targets(parser)
    parser.set_defaults(run=_cancel)


def _cancel(options: Namespace) -> int:
    return act(options, "cancel", "Cancelled", UNFINISHED, lambda client, job: client.cancel(job))


def _retry_parser(parser: Parser) -> None:
    add_targets(parser)
    parser.add_argument(
        "--copy", action="store_true", help="make a new job like it; the old one stays as it is"
    )
    parser.epilog = "Filters choose among dead jobs, unless --state says otherwise."
    parser.set_defaults(run=retry)


def retry(options: Namespace) -> int:
    return act(
        options, "retry", "Retried", {State.DEAD},
        lambda client, job: client.retry(job, copy=options.copy),
    )  # fmt: skip


def _hold_parser(parser: Parser) -> None:
    add_targets(parser)
    parser.set_defaults(run=_hold)


def _hold(options: Namespace) -> int:
    states = WAITING - {State.HELD}
    return act(options, "hold", "Held", states, lambda client, job: client.hold(job))


def _release_parser(parser: Parser) -> None:
    add_targets(parser)
    parser.set_defaults(run=_release)


def _release(options: Namespace) -> int:
    return act(
        options, "release", "Released", {State.HELD}, lambda client, job: client.release(job)
    )


def _move_parser(parser: Parser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="an id or a name")
    parser.add_argument("--last", action="store_true", help="put it last instead of first")
    add_json(parser)
    parser.set_defaults(run=_move, state=None)


def _move(options: Namespace) -> int:
    # Each goes to the very front, so the one named first must go there last.
    if not options.last:
        options.jobs.reverse()
    return act(
        options, "move", "Moved", {State.PENDING},
        lambda client, job: client.move(job, to_front=not options.last),
    )  # fmt: skip


PARSERS = {
    "cancel": _cancel_parser,
    "retry": _retry_parser,
    "hold": _hold_parser,
    "release": _release_parser,
    "move": _move_parser,
}
