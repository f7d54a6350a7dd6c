"""`svcq log`: the output of a job, also while it is written; and what svcq itself noted."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from svcq.cli.output import Harmless
from svcq.cli.parser import Namespace, Parser, add_json, whole
from svcq.cli.text import clean, coloured, print_json
from svcq.errors import InvalidInput, NotFound
from svcq.jobs import FINISHED, Job, Run, State
from svcq.logs import Log

if TYPE_CHECKING:
    from svcq.client import Client

_LOOK = 0.2  # seconds between looks at a file that grows
_FAR = 1.0  # at one on another machine
_LONG = 60.0  # between looks at a store in which nothing is written


def _log_parser(parser: Parser) -> None:
    parser.add_argument("job", nargs="?", metavar="JOB", help="an id or a name")
    parser.add_argument(
        "-f", "--follow", action="store_true",
        help="print what comes, through all attempts, until the job has ended",
    )  # fmt: skip
    parser.add_argument(
        "--run", metavar="N", dest="number", type=lambda text: whole(text, "run"),
        help="of this run; the newest by default",
    )  # fmt: skip
    parser.add_argument(
        "--tail", metavar="N", type=lambda text: whole(text, "number of lines"),
        help="only the last N lines",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="of all runs, oldest first")
    parser.add_argument(
        "--service", action="store_true", help="what the service has noted, instead of a job's"
    )
    parser.add_argument("--workers", action="store_true", help="what the workers have noted")
    add_json(parser)
    parser.set_defaults(run=_log)


def _log(options: Namespace) -> None:
    from svcq.client import Client

    _check(options)
    if options.service or options.workers:
        from svcq.cli.own_log import print_own_log

        print_own_log(options)
        return
    if options.job is None:
        raise InvalidInput("JOB is missing: see svcq log --help.")
    with Client() as client:
        job = client.get(options.job)
        runs = _chosen(job, options)
        printer = _Printer(headers=options.all)
        if options.json:
            shown = [_json(client, job, run, options.tail) for run in runs]
            print_json(shown if options.all else shown[0] if shown else None)
        elif options.follow:
            _Following(client, job, printer, options.tail).go_on(runs)
        else:
            _print_runs(client, job, runs, printer, options.tail)


def _check(options: Namespace) -> None:
    if options.all and options.number is not None:
        raise InvalidInput("Both --all and --run are given: give one.")
    if options.follow and (options.number is not None or options.json):
        other = "--json" if options.json else "--run"
        raise InvalidInput(f"Both --follow and {other} are given: give one.")
    if options.tail is not None and options.tail < 0:
        raise InvalidInput(f"The number of lines {options.tail} is below 0: give 0 or more.")


def _chosen(job: Job, options: Namespace) -> list[int]:
    if options.number is not None:
        if not 1 <= options.number <= job.run:
            had = f"runs 1 to {job.run}" if job.run > 1 else "run 1" if job.run else "no run yet"
            raise NotFound(f"Job {job.id} has no run {options.number}: it has {had}.")
        return [options.number]
    if options.all:
        return list(range(1, job.run + 1))
    return [job.run] if job.run else []


def _print_runs(
    client: Client, job: Job, runs: Iterable[int], printer: _Printer, tail: int | None
) -> None:
    if not job.run:
        _say(f"Job {job.id} has not run yet: svcq why {job.id} says why.")
    for run in runs:
        printer.begin(run)
        log = client.output(job, run)
        size = log.size()
        if size is None:
            _print_kept(client, job, run, printer, tail)
        else:
            for chunk in log.read(0 if tail is None else log.start_of_tail(tail)):
                printer.write(chunk)
        printer.end()
        if size == 0 and sys.stdout.isatty():
            _say(_nothing(job, run))


def _nothing(job: Job, run: int) -> str:
    yet = " yet" if run == job.run and job.state is State.PROCESSING else ""
    return f"Run {run} of job {job.id} has written nothing{yet}."


def _print_kept(client: Client, job: Job, run: int, printer: _Printer, tail: int | None) -> None:
    """The file is not here: print what the store has of it, and say so."""
    kept = _kept(client, job, run)
    where = _host_of(client, job, run, kept)
    text = None if kept is None else kept.tail
    if text is None:
        if where is not None:
            there = _whereabouts(client, job, run, where, last_lines=False)
            _say(f"The output of run {run} of job {job.id} {there}")
        elif sys.stdout.isatty():
            _say(_nothing(job, run))
        return
    _say(f"The log of run {run} of job {job.id} {_whereabouts(client, job, run, where)}")
    lines = text.splitlines()
    if tail is not None:
        lines = lines[len(lines) - min(tail, len(lines)) :]
    printer.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def _whereabouts(
    client: Client, job: Job, run: int, where: str | None, *, last_lines: bool = True
) -> str:
    """What has become of the file, and what is printed instead of it."""
    printed = "these are its last lines" if last_lines else "look there"
    if where is None:
        return f"is no longer there: {printed}."
    elsewhere = None if client.remote else client.output_elsewhere(job, run)
    if elsewhere is None:
        return f"is on {where}: {printed}."
    file = "" if elsewhere.file is None else f" ({elsewhere.file})"
    why = f", and {elsewhere.why}" if elsewhere.why else ""
    return f"is on {where}{file}{why}: {printed}."


def _kept(client: Client, job: Job, run: int) -> Run | None:
    return next((one for one in client.runs(job) if one.run == run), None)


def _host_of(client: Client, job: Job, run: int, kept: Run | None) -> str | None:
    """The other machine on which a run took place; None for this one."""
    host = None if kept is None else kept.host
    if host is None and run == job.run and job.worker is not None:
        host = next((w.host for w in client.workers(ended=True) if w.id == job.worker), None)
    return None if host == socket.gethostname() else host


def _json(client: Client, job: Job, run: int, tail: int | None) -> dict[str, Any]:
    log = client.output(job, run)
    file = None if log.path is None else str(log.path)
    shown: dict[str, Any] = {"job": job.id, "run": run, "file": file, "whole": True}
    if log.size() is not None:
        data = b"".join(log.read(0 if tail is None else log.start_of_tail(tail)))
        return {**shown, "output": data.decode("utf-8", "replace")}
    kept = _kept(client, job, run)
    text = (kept and kept.tail) or ""
    lines = text.splitlines()[-tail:] if tail else text.splitlines() if tail is None else []
    output = "".join(f"{line}\n" for line in lines)
    return {**shown, "file": None, "whole": not text, "output": output}


class _Following:
    """One job, from the run that is named on, until it has ended."""

    def __init__(self, client: Client, job: Job, printer: _Printer, tail: int | None) -> None:
        self._client = client
        self._follower = client.follow()  # before the look: what happens after it is not missed
        self._job = client.get(job)
        self._printer = printer
        self._tail = tail
        self._said = False

    def go_on(self, runs: Iterable[int]) -> None:
        first = next(iter(runs), 1)
        done = first - 1
        while self._job.state not in FINISHED or self._job.run > done:
            if self._job.run > done:
                done += 1
                self._printer.headers = self._printer.headers or done > first
                self._through(done)
            else:
                self._say_that_it_waits()
                self._wait(_LONG)
        if sys.stdout.isatty():
            _say(f"Job {self._job.id} is {self._job.state}.")

    def _through(self, run: int) -> None:
        """One run, until it has ended."""
        log = self._client.output(self._job, run)
        host = _host_of(self._client, self._job, run, None)
        self._printer.begin(run)
        if host is not None and log.size() is None:
            _say(f"The output of run {run} is on {host}: its last lines come when it has ended.")
        reader = log.reader(self._start(log))
        wrote = False
        while True:
            # The look at the state comes first: what ended has written all it had to.
            ended = self._job.run != run or self._job.state is not State.PROCESSING
            for chunk in reader.read():
                wrote = True
                self._printer.write(chunk)
            self._printer.flush()
            if ended:
                break
            if not wrote and host is None:
                self._say_once(_nothing(self._job, run))
            self._wait(_LOOK if host is None else _LONG if log.size() is None else _FAR)
        if log.size() is None:
            _print_kept(self._client, self._job, run, self._printer, self._tail)
        self._printer.end()

    def _start(self, log: Log) -> int:
        tail, self._tail = self._tail, None  # of later runs everything is new
        return 0 if tail is None or log.size() is None else log.start_of_tail(tail)

    def _wait(self, seconds: float) -> None:
        news = self._follower.next(seconds)
        if self._follower.missed or any(change.job == self._job.id for change in news):
            self._follower.missed = False
            self._job = self._client.get(self._job)

    def _say_that_it_waits(self) -> None:
        if self._job.run == 0:
            self._say_once(
                f"Job {self._job.id} is {self._job.state}: "
                f"waiting for it to start (svcq why {self._job.id})."
            )

    def _say_once(self, sentence: str) -> None:
        if not self._said and sys.stdout.isatty():
            _say(sentence)
        self._said = True


class _Printer:
    """Bytes as they are for a pipe, harmless for a terminal; a line in front of each run."""

    def __init__(self, *, headers: bool) -> None:
        self.headers = headers
        self._began = False
        self._at_line_start = True
        self._harmless = Harmless(colours=coloured(sys.stdout)) if sys.stdout.isatty() else None

    def begin(self, run: int) -> None:
        if self.headers:
            between = "" if not self._began else "\n" if self._at_line_start else "\n\n"
            self._put(f"{between}==> run {run} <==\n".encode())
        self._began = True

    def write(self, data: bytes) -> None:
        if data:
            self._at_line_start = data.endswith(b"\n")
        if self._harmless is None:
            self._put(data)
        else:
            sys.stdout.write(self._harmless.feed(data))

    def end(self) -> None:
        if self._harmless is not None:
            sys.stdout.write(self._harmless.end())
            if not self._at_line_start:
                sys.stdout.write("\n")  # the prompt of the shell begins a line of its own
                self._at_line_start = True
        self.flush()

    def flush(self) -> None:
        sys.stdout.flush()

    def _put(self, data: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _say(sentence: str) -> None:
    sys.stdout.flush()
    print(clean(sentence), file=sys.stderr, flush=True)


PARSERS = {"log": _log_parser}
