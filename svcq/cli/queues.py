"""`svcq queue`, `pause` and `resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svcq.cli.parser import Namespace, Parser, add_json, number, whole, words_of
from svcq.cli.text import (
    Column,
    plural,
    print_facts,
    print_json,
    print_table,
    tell,
    without_empty,
)
from svcq.errors import InvalidInput
from svcq.times import format_duration

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.store import Queue

_SETTINGS = """
Settings of a queue:
  paused=yes|no        start nothing from it
  weight=N             how many turns it gets among the queues; 1 by default
  concurrency=N        how many of its jobs run at once
  rate=N/TIME          how many start in a time, such as 10/1m
  aging=TIME|never     the wait that lifts a job by one level of priority
  when=CONDITION       start its jobs only while this holds, as with svcq add --when
  dead_letter=QUEUE    gets a copy of what dies here
  keep_completed=TIME, keep_dead=TIME, keep_cancelled=TIME
and, where a job is silent: max_attempts, backoff, backoff_base, backoff_cap, jitter, timeout,
grace, on_lost, max_losses, max_interruptions, success, retry_on, reject, notify, tty,
max_output, when_over, nice, cpus, memory, keep_awake.

An empty value (concurrency=) returns a setting to its default.
"""
_WHOLE = {
    "weight",
    "concurrency",
    "max_attempts",
    "max_losses",
    "max_interruptions",
    "nice",
    "cpus",
}
_NUMBERS = {"backoff_base", "jitter"}
_CODES = {"success", "retry_on", "reject"}
_YES_OR_NO = {"paused", "notify", "tty"}


def _queue_parser(parser: Parser) -> None:
    add_json(parser.command("list", "list the queues", _list))
    show = parser.command("show", "show a queue's settings and counts", _show)
    show.add_argument("queue", metavar="QUEUE", help="its name")
    add_json(show)
    change = parser.command("set", "change settings of a queue, or make one", _set)
    change.description = f"{change.description}\n{_SETTINGS}"
    change.add_argument("queue", metavar="QUEUE", help="its name")
    change.add_argument("settings", nargs="+", metavar="SETTING=VALUE", help="see above")
    add_json(change)
    delete = parser.command("delete", "forget an empty queue", _delete)
    delete.add_argument("queue", metavar="QUEUE", help="its name")


def _list(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        found = [(queue, client.counts(queue.name)) for queue in client.queues()]
    if options.json:
        print_json([_json(queue, counts) for queue, counts in found])
    elif found:
        print_table(*without_empty(_COLUMNS, [_row(queue, counts) for queue, counts in found]))
    else:
        print("There are no queues yet: a queue comes to be with its first job or setting.")


def _json(queue: Queue, counts: dict[str, int]) -> dict[str, Any]:
    return {**queue.as_json(), "counts": counts}


_COLUMNS = [
    Column("queue", least=8),
    Column("state", least=4, dispensable=1),
    Column("pending", right=True),
    Column("running", right=True, dispensable=1),
    Column("dead", right=True, dispensable=2),
    Column("all", right=True, dispensable=3),
    Column("limit", right=True, dispensable=4),
    Column("rate", dispensable=5),
    Column("weight", right=True, dispensable=6),
    Column("aging", dispensable=7),
    Column("dead letters to", least=8, dispensable=8),
]


def _row(queue: Queue, counts: dict[str, int]) -> list[object]:
    shown = queue.as_json()
    return [
        queue.name, "paused" if queue.paused else "open", counts["pending"],
        counts["processing"], counts["dead"], sum(counts.values()), queue.concurrency,
        shown["rate"], queue.weight, shown["aging"], queue.dead_letter,
    ]  # fmt: skip


def _show(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        _print(client, client.queue(options.queue), as_json=options.json)


def _print(client: Client, queue: Queue, *, as_json: bool) -> None:
    counts = client.counts(queue.name)
    if as_json:
        print_json(_json(queue, counts))
        return
    told = ", ".join(f"{n:,} {state}" for state, n in counts.items() if n)
    shown: dict[str, object] = {**queue.as_json(), "paused": "yes" if queue.paused else "no"}
    print_facts([*((name, _text(name, value)) for name, value in shown.items()), ("jobs", told)])


def _text(name: str, value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and name not in _NUMBERS:
        return format_duration(round(value * 1000))
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _set(options: Namespace) -> None:
    from svcq.client import Client

    settings: dict[str, Any] = {}
    for given in options.settings:
        name, separator, value = given.partition("=")
        name = name.replace("-", "_")
        if not separator:
            raise InvalidInput(f"{given!r} is no setting: write {given}=VALUE.")
        if name in settings:
            raise InvalidInput(f"The setting {name} is given twice: give it once.")
        settings[name] = _read(name, value) if value else None
    with Client() as client:
        _print(client, client.queue(options.queue, **settings), as_json=options.json)


def _read(name: str, value: str) -> Any:
    if name in _WHOLE:
        return whole(value, name)
    if name in _NUMBERS:
        return number(value, name)
    if name in _CODES:
        return [whole(word, name) for word in words_of(value)]
    if name in _YES_OR_NO:
        return _yes(name, value)
    return value


def _yes(name: str, value: str) -> bool:
    answers = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
    if value.lower() not in answers:
        raise InvalidInput(f"The setting {name} is {value!r}: give yes or no.")
    return answers[value.lower()]


def _delete(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        client.delete_queue(options.queue)
    print(f"The queue {options.queue} is forgotten.")


def _pause_parser(parser: Parser) -> None:
    parser.description = (
        "Start nothing more from a queue; what runs goes on. With --job, let a command that runs "
        "stand still; its timeout stands still, too."
    )
    _add_which(parser)
    parser.set_defaults(run=_pause)


def _resume_parser(parser: Parser) -> None:
    _add_which(parser)
    parser.set_defaults(run=_resume)


def _add_which(parser: Parser) -> None:
    parser.add_argument("queues", nargs="*", metavar="QUEUE", help="its name")
    parser.add_argument("--all", action="store_true", help="every queue there is")
    parser.add_argument("--job", metavar="JOB", help="a command that runs, instead of a queue")
    add_json(parser)


def _pause(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        if options.job and not (options.queues or options.all):
            job = client.suspend(options.job)
            says = f"Job {job.id} stands still: svcq resume --job {job.id} lets it go on."
            tell(says, as_json=options.json, job=job.id, paused=True)
            return
        names = _which(client, options)
        for name in names:
            client.pause(name)
    tell(f"{plural(len(names), 'queue')} paused.", as_json=options.json, queues=names, paused=True)


def _resume(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        if options.job and not (options.queues or options.all):
            job = client.suspend(options.job, paused=False)
            tell(f"Job {job.id} goes on.", as_json=options.json, job=job.id, paused=False)
            return
        names = _which(client, options)
        for name in names:
            client.resume(name)
    says = f"{plural(len(names), 'queue')} resumed."
    tell(says, as_json=options.json, queues=names, paused=False)


def _which(client: Client, options: Namespace) -> list[str]:
    """The queues named; each is looked up before any is changed."""
    if options.job or bool(options.queues) == options.all:
        raise InvalidInput("Name queues, or give --all for every one, or --job for one job.")
    if options.all:
        return [queue.name for queue in client.queues()]
    return [client.queue(name).name for name in dict.fromkeys(options.queues)]


PARSERS = {"queue": _queue_parser, "pause": _pause_parser, "resume": _resume_parser}
