"""`svcq stats` and `svcq activity`: numbers about what happened."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import Column, ago, print_json, print_table
from svcq.errors import InvalidInput
from svcq.times import MINUTE, format_duration, parse_duration

if TYPE_CHECKING:
    from svcq.store import QueueStats, Times


def _minutes_of(text: str) -> int:
    minutes = parse_duration(text, "time") // MINUTE
    if minutes < 1:
        raise InvalidInput(f"The time {text!r} is too short: give at least 1m.")
    return minutes


def _add_window(parser: Parser) -> None:
    parser.add_argument("--queue", metavar="QUEUE", help="this queue alone")
    parser.add_argument(
        "--last", metavar="TIME", type=_minutes_of, default=60, dest="minutes",
        help="over so long, such as 1d; 1h by default",
    )  # fmt: skip
    add_json(parser)


def _stats_parser(parser: Parser) -> None:
    _add_window(parser)
    parser.set_defaults(run=_stats)


def _stats(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        if options.queue is not None:
            client.queue(options.queue)
        found = client.stats(options.queue, minutes=options.minutes)
    if options.json:
        print_json([one.as_json() for one in found])
    elif found:
        print_table(_STATS_COLUMNS, [_stats_row(one) for one in found])
    else:
        print("There are no numbers yet.")


_STATS_COLUMNS = [
    Column("queue", least=6),
    Column("pending", right=True),
    Column("running", right=True, dispensable=1),
    Column("dead", right=True, dispensable=2),
    Column("added", right=True, dispensable=5),
    Column("completed", right=True, dispensable=3),
    Column("failed", right=True, dispensable=4),
    Column("oldest", right=True, dispensable=6),
    Column("wait p50", right=True, dispensable=7),
    Column("wait p95", right=True, dispensable=8),
    Column("run p50", right=True, dispensable=7),
    Column("run p95", right=True, dispensable=8),
]


def _stats_row(stats: QueueStats) -> list[object]:
    counts = stats.counts
    numbers = [counts.get(state, 0) for state in ("pending", "processing", "dead")]
    return [
        stats.queue, *numbers, stats.added, stats.completed, stats.failed, _span(stats.oldest),
        *_percentiles(stats.wait), *_percentiles(stats.run),
    ]  # fmt: skip


def _percentiles(times: Times) -> list[str]:
    return [_span(times.p50), _span(times.p95)]


def _span(seconds: float | None) -> str:
    if seconds is None:
        return ""
    ms = round(seconds * 1000)
    return format_duration(ms if ms < 1000 else ms // 1000 * 1000)


def _activity_parser(parser: Parser) -> None:
    _add_window(parser)
    parser.set_defaults(run=_activity)


def _activity(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        if options.queue is not None:
            client.queue(options.queue)
        found = client.activity(options.queue, minutes=options.minutes)
    if options.json:
        print_json([one.as_json() for one in found])
        return
    if not found:
        print(f"Nothing happened in the last {format_duration(options.minutes * MINUTE)}.")
        return
    kinds = sorted({kind for one in found for kind in one.counts}, key=_in_order)
    columns = [Column("minute", least=5), Column("when", dispensable=9), Column("queue", least=5)]
    columns += [
        Column(kind.replace("_", " "), right=True, dispensable=n) for n, kind in enumerate(kinds, 1)
    ]
    now = datetime.now(UTC)
    print_table(
        columns,
        [
            [one.minute.astimezone().strftime("%H:%M"), ago(one.minute, now), one.queue,
             *(one.counts.get(kind, "") for kind in kinds)]
            for one in found
        ],
    )  # fmt: skip


def _in_order(kind: str) -> tuple[int, str]:
    known = ("added", "started", "completed", "failed", "timed_out", "rejected", "cancelled")
    return (known.index(kind) if kind in known else len(known), kind)


PARSERS = {"stats": _stats_parser, "activity": _activity_parser}
