"""`svcq list` and `svcq show`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from svcq.cli.jobs import add_filters, add_search, all_jobs, filters_of
from svcq.cli.parser import Namespace, Parser, add_json, whole, words_of
from svcq.cli.text import (
    Column,
    ago,
    clean,
    command_line,
    local,
    paint,
    plural,
    print_facts,
    print_json,
    print_table,
    without_empty,
)
from svcq.errors import InvalidInput
from svcq.jobs import FINISHED, Job, Run, State
from svcq.sizes import format_size
from svcq.times import format_duration

if TYPE_CHECKING:
    from svcq.client import Client

_LIMIT = 100


def _what(job: Job) -> str:
    if job.task is None:
        return command_line(job.command or "")
    args = [repr(arg) for arg in job.args]
    args += [f"{name}={value!r}" for name, value in job.kwargs.items()]
    return f"{job.task}({', '.join(args)})"


def _when(job: Job, now: datetime) -> str:
    """The time that matters in its state."""
    if job.state in FINISHED:
        return ago(job.finished_at, now)
    if job.state is State.PROCESSING:
        return f"for {ago(job.started_at, now).removesuffix(' ago')}"
    if job.state in (State.SCHEDULED, State.RETRYING):
        return ago(job.run_at, now)
    return ago(job.created_at, now)


def _note(job: Job, _: datetime) -> str:
    if job.state is State.PROCESSING:
        return _progress(job)
    return job.reason or (job.error or "").partition("\n")[0]


def _progress(job: Job) -> str:
    share = "" if job.progress is None else f"{job.progress:.0%}"
    stop = "stopping" if job.cancel_requested else ""
    return " ".join(filter(None, (stop, share, job.progress_note)))


# Each with the value of a job; what a narrow terminal can do without has the higher number.
_COLUMNS: dict[str, tuple[Column, Callable[[Job, datetime], object]]] = {
    "id": (Column("id", right=True), lambda job, _: job.id),
    "state": (Column("state", least=4), lambda job, _: job.state.value),
    "queue": (Column("queue", least=5, dispensable=5), lambda job, _: job.queue),
    "priority": (Column("prio", right=True, dispensable=8), lambda job, _: job.priority),
    "tries": (
        Column("tries", dispensable=6),
        lambda job, _: f"{job.attempts}/{job.max_attempts}",
    ),
    "when": (Column("when", dispensable=3), _when),
    "name": (Column("name", least=6, dispensable=4), lambda job, _: job.name),
    "what": (Column("what", least=6), lambda job, _: _what(job)),
    "note": (Column("note", least=8, dispensable=7), _note),
    "exit": (Column("exit", right=True, dispensable=8), lambda job, _: _text(job.exit_code)),
    "run": (Column("run", right=True, dispensable=8), lambda job, _: job.run),
    "tags": (Column("tags", least=6, dispensable=8), lambda job, _: ",".join(job.tags)),
    "owner": (Column("owner", least=6, dispensable=8), lambda job, _: job.owner),
    "created": (Column("created", dispensable=8), lambda job, _: local(job.created_at)),
    "started": (Column("started", dispensable=8), lambda job, _: local(job.started_at)),
    "finished": (Column("finished", dispensable=8), lambda job, _: local(job.finished_at)),
}
_USUAL = ["id", "state", "queue", "tries", "when", "name", "note", "what"]


def _text(value: object) -> str:
    return "" if value is None else str(value)


def list_parser(parser: Parser) -> None:
    add_filters(parser)
    add_listing(parser)
    parser.set_defaults(run=list_jobs)


def add_listing(parser: Parser) -> None:
    add_search(parser)
    parser.add_argument(
        "-n", "--limit", metavar="N", type=lambda text: whole(text, "limit"),
        help=f"at most so many, newest first; {_LIMIT} by default",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="without a limit")
    parser.add_argument(
        "--columns", metavar="NAMES", type=words_of,
        help=f"which columns, with commas: {', '.join(_COLUMNS)}",
    )  # fmt: skip
    add_json(parser)


def list_jobs(options: Namespace) -> None:
    from svcq.client import Client

    columns = _chosen_columns(options.columns)
    if options.all and options.limit is not None:
        raise InvalidInput("Both --all and --limit are given: give one.")
    limit = _LIMIT if options.limit is None else options.limit
    if limit < 1:
        raise InvalidInput(f"The limit {limit} is too small: give at least 1.")
    with Client() as client:
        found = all_jobs(client, **filters_of(options))
        jobs = list(found if options.all else islice(found, limit + 1))
    more = not options.all and len(jobs) > limit
    _print_jobs(jobs[:limit] if more else jobs, columns, options)
    if more and sys.stdout.isatty():
        print(f"There are more than {limit}: see them with --all or --limit.", file=sys.stderr)


def _chosen_columns(names: Sequence[str] | None) -> list[str]:
    for name in names or ():
        if name not in _COLUMNS:
            raise InvalidInput(f"There is no column {name!r}: use {', '.join(_COLUMNS)}.")
    return list(names or _USUAL)


def _print_jobs(jobs: Sequence[Job], names: list[str], options: Namespace) -> None:
    if options.json:
        print_json([job.as_json() for job in jobs])
        return
    now = datetime.now(UTC)
    columns = [_COLUMNS[name][0] for name in names]
    rows: list[list[object]] = [[_COLUMNS[name][1](job, now) for name in names] for job in jobs]
    if options.columns is None:
        columns, rows = without_empty(columns, rows)
    if jobs:
        print_table(columns, rows)
    elif sys.stdout.isatty():
        print("There are no such jobs." if filters_of(options) else "There are no jobs.")


def show_parser(parser: Parser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="an id or a name")
    parser.add_argument(
        "--env", action="store_true", help="with the environment of a command, secrets masked"
    )
    add_json(parser)
    parser.set_defaults(run=show)


def show(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        found = [(client.get(job), client.runs(job)) for job in options.jobs]
        if options.json:
            shown = [_job_json(client, *one, env=options.env) for one in found]
            print_json(shown[0] if len(shown) == 1 else shown)
            return
        for n, (job, runs) in enumerate(found):
            if n:
                print()
            _print_job(client, job, runs, env=options.env)


def _job_json(client: Client, job: Job, runs: Sequence[Run], *, env: bool) -> dict[str, Any]:
    shown = {**job.as_json(), "runs": [run.as_json() for run in runs]}
    fired = client.firing_of(job.id)
    shown["schedule"] = None if fired is None else fired.schedule
    if env:
        shown["env"] = _environment(client, job)
    return shown


def _environment(client: Client, job: Job) -> dict[str, str]:
    from svcq.environment import masked

    return masked(client.environment(job) or {})


def _print_job(client: Client, job: Job, runs: Sequence[Run], *, env: bool) -> None:
    now = datetime.now(UTC)
    print_facts([*_facts(job, runs, now), ("schedule", _schedule(client, job))])
    if runs:
        print(f"\n{plural(len(runs), 'run')}")
        print_table(*without_empty(_RUN_COLUMNS, [_run_row(run) for run in runs]))
        _print_end(runs[-1])
    if env:
        print("\nenvironment")
        for name, value in _environment(client, job).items():
            print(f"  {clean(name)}={clean(value)}")


def _facts(job: Job, runs: Sequence[Run], now: datetime) -> list[tuple[str, object]]:
    def at(moment: datetime | None) -> str:
        return f"{local(moment)} ({ago(moment, now)})" if moment else ""

    tallies = [
        plural(n, thing)
        for n, thing in (
            (job.losses, "loss") if job.losses == 1 else (job.losses, "losse"),
            (job.interruptions, "interruption"),
            (job.snoozes, "snooze"),
        )
        if n
    ]
    return [
        ("job", job.id),
        ("name", job.name),
        ("state", job.state.value),
        ("reason", job.reason),
        ("progress", _progress(job)),
        ("command" if job.task is None else "task", _what(job)),
        ("directory", job.cwd),
        ("queue", job.queue),
        ("priority", job.priority or None),
        ("tags", ", ".join(job.tags)),
        ("owner", job.owner),
        ("attempts", f"{job.attempts} of {job.max_attempts}"),
        ("besides", ", ".join(tallies)),
        ("added", at(job.created_at)),
        ("not before", at(job.run_at)),
        ("expires", at(job.expires_at)),
        ("started", at(job.started_at)),
        ("finished", at(job.finished_at)),
        *_use(runs),
        ("exit code", _text(job.exit_code)),
        ("error", job.error),
        ("result", _json(job.result)),
        ("after", ", ".join(map(str, job.after))),
        ("only on", job.host),
        ("only when", _condition(job)),
        ("key", job.concurrency_key),
        ("unique", job.unique_key),
        ("copy of", job.copy_of),
        ("options", ", ".join(f"{name} {value}" for name, value in job.options.items())),
    ]


def _use(runs: Sequence[Run]) -> list[tuple[str, object]]:
    """What the newest run took of the machine, where anyone measured it."""
    if not runs:
        return []
    return [("took", _took(runs[-1])), ("cpu time", _cpu(runs[-1])), ("memory", _memory(runs[-1]))]


def _took(run: Run) -> str:
    return format_duration(max(int((run.ended_at - run.started_at).total_seconds() * 1000), 0))


def _cpu(run: Run) -> str:
    return "" if run.cpu_ms is None else format_duration(run.cpu_ms)


def _memory(run: Run) -> str:
    return "" if run.peak_bytes is None else f"{format_size(run.peak_bytes)} at most"


def _schedule(client: Client, job: Job) -> str:
    """Where a job comes from that nobody added."""
    fired = client.firing_of(job.id)
    if fired is None:
        return ""
    return f"{fired.schedule}, {f'for {local(fired.nominal)}' if fired.nominal else 'as asked for'}"


def _condition(job: Job) -> str | None:
    """With what this machine says of it, while the job waits for it."""
    if job.condition is None or job.state is not State.PENDING:
        return job.condition
    from svcq.conditions import judge
    from svcq.host.facts import fact

    return f"{job.condition} ({judge(job.condition, fact).says})"


def _json(value: Any) -> str:
    import json

    return "" if value is None else json.dumps(value, ensure_ascii=False)


_RUN_COLUMNS = [
    Column("run", right=True),
    Column("how", least=6),
    Column("exit", right=True, dispensable=2),
    Column("took", dispensable=3),
    Column("cpu", dispensable=7),
    Column("memory", right=True, dispensable=8),
    Column("started", dispensable=4),
    Column("worker", dispensable=5, right=True),
    Column("host", least=6, dispensable=6),
    Column("error", least=8, dispensable=1),
]


def _run_row(run: Run) -> list[object]:
    error = (run.error or "").partition("\n")[0]
    return [
        run.run, run.how.value, _text(run.exit_code), _took(run), _cpu(run),
        _memory(run).removesuffix(" at most"), local(run.started_at), run.worker, run.host, error,
    ]  # fmt: skip


def _print_end(run: Run) -> None:
    if run.tail:
        print(f"\n{paint('cancelled', f'the last lines of run {run.run}')}")
        print(clean(run.tail.rstrip("\n"), lines=True))


PARSERS = {"list": list_parser, "show": show_parser}
