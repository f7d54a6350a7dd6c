"""`svcq schedule run` and `fire`: now, and as the system's scheduler does it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser
from svcq.cli.text import clean
from svcq.cli.wait import ended, exit_code

if TYPE_CHECKING:
    from svcq.client import Client

_FIRE = """
What the system's scheduler calls for a schedule that was handed over: fires it for the time that
has come, or beside its times where none has. A worker is started if none lives on this machine.
With --wait it exits as the job did.
"""


def add_commands(command: Callable[[str, str, Callable[[Namespace], int | None]], Parser]) -> None:
    run = command("run", "queue the job of a schedule now, beside its times", _run)
    fire = command("fire", "fire a schedule that is due, as the system's scheduler does", _fire)
    fire.description = f"{fire.description}\n{_FIRE}"
    fire.add_argument("--due", action="store_true", help="do nothing where no time has come")
    # By ourselves: keep a worker at hand until these jobs have ended.
    fire.add_argument("--attend", action="append", type=int, help=argparse.SUPPRESS)
    for parser in (run, fire):
        parser.add_argument("schedule", metavar="SCHEDULE", help="its name")
        parser.add_argument("--wait", action="store_true", help="until the job has ended")


def _run(options: Namespace) -> int:
    import sys

    from svcq.client import Client

    with Client() as client:
        job = client.fire_schedule(options.schedule)
        if options.wait:
            last = client.wait(job)
            print(ended(last))
            return exit_code(last)
    print(f"Job {job.id} is {job.state}." if sys.stdout.isatty() else job.id)
    return 0


def _fire(options: Namespace) -> int:
    from svcq.client import Client
    from svcq.schedules import How

    with Client() as client:
        if options.attend:
            return _see_through(client, options, options.attend)
        fired = client.fire_if_due(options.schedule)
        for one in fired:
            print(clean(f"{one.schedule}: {one.says}."), flush=True)
        jobs = [one.job for one in fired if one.job is not None]
        if not fired and options.due:
            print(f"{client.get_schedule(options.schedule).name}: none of its times has come.")
            return 0
        if not fired:
            jobs = [client.fire_schedule(options.schedule).id]
            print(f"{options.schedule}: queued job {jobs[0]}.", flush=True)
        if jobs and options.wait:
            code = _see_through(client, options, jobs)
        else:
            code = int(any(one.how is How.FAILED for one in fired))
            _let_attend(client, options, jobs)
    return code


def _see_through(client: Client, options: Namespace, jobs: Sequence[int]) -> int:
    from svcq.host.service import manager
    from svcq.service.attend import Attendant

    if client.remote:  # there is a service, or nobody had answered
        seen = [client.wait(job) for job in jobs]
    else:
        with Attendant(client, manager(system=options.system)) as attendant:
            seen = attendant.see_through(jobs)
    for job in seen:
        print(ended(job), flush=True)
    return next(filter(None, map(exit_code, seen)), 0)


def _let_attend(client: Client, options: Namespace, jobs: Sequence[int]) -> None:
    """Where no service sees to workers, a process of ours does while we go."""
    import sys

    from svcq.host import processes
    from svcq.worker.places import Places
    from svcq.worker.program import worker_environment, worker_log

    places = Places(client.config.home)
    if not jobs or client.remote or processes.lock_is_held(places.service_lock):
        return
    places.prepare()
    system = ["--system"] if options.system else []
    numbers = [word for job in jobs for word in ("--attend", str(job))]
    processes.spawn_detached(
        [sys.executable, "-m", "svcq", *system, "schedule", "fire", *numbers, "--",
         options.schedule],
        log=worker_log(client.config), env=worker_environment(client.config), cwd="/",
    )  # fmt: skip
