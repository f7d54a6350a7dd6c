"""`svcq worker` and `svcq up`."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import Column, ago, print_json, print_table, tell

if TYPE_CHECKING:
    from svcq.store import Worker


def _worker_parser(parser: Parser) -> None:
    add_json(parser.command("list", "list the workers that run, on all machines", _list))
    start = parser.command("start", "start workers that go on by themselves", _start)
    start.add_argument("--count", type=int, default=1, metavar="N", help="how many (1)")
    _add_how(start)
    add_json(start)
    run = parser.command("run", "run one worker here until it is stopped", _run)
    _add_how(run)
    run.add_argument("--kept", action="store_true", help=argparse.SUPPRESS)  # by the service
    stop = parser.command("stop", "let workers finish what they hold and end", _stop)
    stop.add_argument("ids", nargs="*", type=int, metavar="ID", help="which (all)")
    stop.add_argument("--now", action="store_true", help="interrupt what they run: it goes back")
    add_json(stop)


def _add_how(parser: Parser) -> None:
    parser.add_argument("--slots", type=int, metavar="N", help="how many jobs at a time")
    parser.add_argument(
        "--queue", action="append", metavar="NAME", dest="queues",
        help="serve this queue, or those a pattern such as video-* fits (all)",
    )  # fmt: skip
    parser.add_argument(
        "--accept", choices=("tasks", "commands", "both"), metavar="WHAT",
        help="run tasks, commands or both (as set in workers.accept)",
    )  # fmt: skip
    parser.add_argument(
        "--import", action="append", metavar="MODULE", dest="imports",
        help="run the tasks of this module, in this interpreter",
    )  # fmt: skip


def _list(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        workers = client.workers()
    if options.json:
        print_json([worker.as_json() for worker in workers])
        return
    if not workers:
        print("No worker runs: start one with svcq worker start.")
        return
    now = datetime.now(UTC)
    known = any(worker.heard_at is not None for worker in workers)
    print_table(
        _COLUMNS if known else _COLUMNS[:-1],
        [
            [w.id, w.host, w.pid, w.state, w.running, w.slots,
             ago(datetime.fromtimestamp(w.started_at / 1000, UTC), now), w.version,
             *([_heard(w, now)] if known else [])]
            for w in workers
        ],
    )  # fmt: skip


def _heard(worker: Worker, now: datetime) -> str:
    if worker.heard_at is None:
        return ""
    return ago(datetime.fromtimestamp(worker.heard_at / 1000, UTC), now)


_COLUMNS = [
    Column("id", right=True),
    Column("host", least=6, dispensable=3),
    Column("pid", right=True, dispensable=2),
    Column("state", least=4),
    Column("running", right=True, dispensable=1),
    Column("slots", right=True, dispensable=1),
    Column("started", dispensable=4),
    Column("version", dispensable=5),
    Column("heard of", dispensable=4),  # where machines share a store
]


def _how(options: Namespace) -> list[str]:
    said = [] if options.slots is None else ["--slots", str(_slots(options))]
    said += [word for queue in options.queues or () for word in ("--queue", queue)]
    said += [] if options.accept is None else ["--accept", options.accept]
    return said + [word for module in options.imports or () for word in ("--import", module)]


def _slots(options: Namespace) -> int:
    from svcq.policy import check_int

    return check_int(options.slots, "number of slots", 1, 10_000)


def _start(options: Namespace) -> None:
    from svcq.config import load
    from svcq.policy import check_int
    from svcq.worker.program import start_detached, worker_log

    config = load()
    count = check_int(options.count, "number of workers", 1, 256)
    pids = [start_detached(config, _how(options)) for _ in range(count)]
    noun, logs = ("worker", "it logs") if count == 1 else ("workers", "they log")
    named, log = ", ".join(map(str, pids)), str(worker_log(config))
    says = f"Started {count} {noun} (pid {named}); {logs} to {log}."
    tell(says, as_json=options.json, pids=pids, log=log)


def _run(options: Namespace) -> None:
    import os

    from svcq.config import Project, load
    from svcq.worker.loop import Settings, run_worker
    from svcq.worker.program import slots_of, worker_log

    config = load()
    if options.kept:
        from svcq.host import service

        service.answer(worker_log(config))
    projects = config.projects
    if options.imports:
        here = Project("here", sys.executable, (os.getcwd(),), tuple(options.imports))
        projects = (here, *projects)
    settings = Settings(
        slots=slots_of(config) if options.slots is None else _slots(options),
        queues=tuple(options.queues or ("*",)),
        projects=projects,
        say=say,
        kept=options.kept,
        accept=options.accept or config.workers.accept,
    )
    run_worker(config, settings)


def _stop(options: Namespace) -> int:
    from svcq.client import Client

    with Client() as client:
        living = [worker.id for worker in client.workers()]
        ids = options.ids or living
        for worker in ids:
            client.stop_worker(worker, now=options.now)
    if not ids:
        tell("No worker runs.", as_json=options.json, workers=[], now=options.now)
        return 1
    who = f"Worker {ids[0]} is" if len(ids) == 1 else f"Workers {', '.join(map(str, ids))} are"
    how = "now: what runs goes back" if options.now else "when what runs has ended"
    tell(f"{who} to end {how}.", as_json=options.json, workers=ids, now=options.now)
    return 0


def say(message: str) -> None:
    import time

    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}", file=sys.stderr, flush=True)


def _up_parser(parser: Parser) -> None:
    parser.add_argument("--count", type=int, metavar="N", help="how many workers")
    _add_how(parser)
    parser.set_defaults(run=_up)


def _up(options: Namespace) -> None:
    from svcq.config import load
    from svcq.passwords import hide_password
    from svcq.service.announce import Announcer
    from svcq.service.clock import Clock
    from svcq.service.foreground import Foreground
    from svcq.service.janitor import Janitor
    from svcq.service.when_done import WhenDone
    from svcq.service.wishes import Wishes
    from svcq.version import __version__
    from svcq.web.server import Web

    config, wishes = load(), Wishes()
    slots = None if options.slots is None else _slots(options)
    with Foreground(
        config, say, count=options.count, slots=slots, arguments=_how(options), wishes=wishes
    ) as foreground:
        count, each = foreground.size(config)
        noun = "worker" if count == 1 else "workers"
        store = hide_password(config.store)
        print(f"svcq {__version__}: {count} {noun} with {each} slots each on {store}.")
        print(_NEXT, flush=True)
        with (
            Janitor(config, say), Clock(config, say), WhenDone(config, say),
            Announcer(config, say),
            Web(config, say, wishes),
        ):  # fmt: skip
            foreground.run()
    print("Stopped. What was running goes on at the next start.")


_NEXT = """\
Try, in another terminal:

    svcq add -- echo hello
    svcq list
    svcq log -f 1

Ctrl-C stops it; nothing is lost."""

PARSERS = {"worker": _worker_parser, "up": _up_parser}
