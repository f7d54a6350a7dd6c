"""`svcq install`, `uninstall`, `start`, `stop`, `restart`: svcq as a service of this system."""

from __future__ import annotations

import os
import sys

from svcq.cli.parser import Namespace, Parser, confirm

# What the service needs to know of the session it was installed from.
_CAPTURED = ("PATH", "LANG")


def _install_parser(parser: Parser) -> None:
    parser.add_argument(
        "--no-linger", action="store_true",
        help="let it end when you log out, instead of going on and starting with the machine",
    )  # fmt: skip
    parser.add_argument("--no-start", action="store_true", help="do not start it yet")
    parser.set_defaults(run=_install)


def _install(options: Namespace) -> None:
    from svcq.config import load
    from svcq.host import service
    from svcq.worker.places import Places

    config = load()
    Places(config.home).prepare()
    env = {name: os.environ[name] for name in _CAPTURED if name in os.environ}
    env["SVCQ_HOME"] = str(config.home)
    if "SVCQ_STORE" in os.environ:
        env["SVCQ_STORE"] = config.store
    program = [sys.executable, "-m", "svcq", "service"]
    for sentence in service.install(program, env, linger=not options.no_linger):
        print(sentence)
    if not options.no_start:
        service.restart()
        print("It runs: svcq status tells how it is.")


def _uninstall_parser(parser: Parser) -> None:
    parser.add_argument(
        "--purge", action="store_true",
        help="remove the home too: all jobs, settings and output, for good",
    )  # fmt: skip
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=_uninstall)


def _uninstall(options: Namespace) -> int:
    from svcq.config import load
    from svcq.host import service

    home = load().home
    if options.purge and not confirm(
        f"This would remove {home} with all jobs, settings and output.", yes=options.yes
    ):
        return 1
    for sentence in service.uninstall():
        print(sentence)
    if options.purge:
        import shutil

        shutil.rmtree(home)
        print(f"Removed {home}.")
    return 0


def _start_parser(parser: Parser) -> None:
    parser.set_defaults(run=_start)


def _start(_: Namespace) -> None:
    from svcq.host import service

    service.start()
    print("The service runs.")


def _stop_parser(parser: Parser) -> None:
    parser.add_argument("--now", action="store_true", help="interrupt what runs: it goes back")
    parser.set_defaults(run=_stop)


def _stop(options: Namespace) -> None:
    from svcq.client import Client
    from svcq.host import service
    from svcq.service.supervisor import Supervisor

    service.stop()
    with Client() as client:
        busy = Supervisor(client.store, client.config, print).drain(now=options.now)
    running = sum(worker.running for worker in busy)
    if options.now or not running:
        print("The service has stopped." + (" What was running goes back." if running else ""))
        return
    goes = (
        "1 job that runs goes on to its end"
        if running == 1
        else (f"{running} jobs that run go on to their end")
    )
    print(f"The service has stopped; {goes} (svcq stop --now interrupts).")


def _restart_parser(parser: Parser) -> None:
    parser.set_defaults(run=_restart)


def _restart(_: Namespace) -> None:
    from svcq.host import service

    service.restart()
    print("The service runs anew; what was running goes on.")


def _service_parser(parser: Parser) -> None:
    parser.set_defaults(run=_service)


def _service(_: Namespace) -> None:
    from svcq.cli.workers import say
    from svcq.config import load
    from svcq.service.run import run_service

    run_service(load(), say)


PARSERS = {
    "install": _install_parser,
    "uninstall": _uninstall_parser,
    "start": _start_parser,
    "stop": _stop_parser,
    "restart": _restart_parser,
    "service": _service_parser,
}
