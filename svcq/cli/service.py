"""`svcq install`, `uninstall`, `start`, `stop`, `restart`: svcq as a service of this system."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser, add_system, add_yes, confirm
from svcq.errors import InvalidInput, Refused, StoreError, SvcqError
from svcq.passwords import need_no_password

if TYPE_CHECKING:
    from pathlib import Path

    from svcq.host.service import Manager

# What the service needs to know of the session it was installed from.
_OF_A_USER = ("PATH", "LANG")
_OF_THE_MACHINE = ("LANG",)
_PATIENCE = 60.0  # seconds for jobs to go back


def _manager(options: Namespace) -> Manager:
    from svcq.host import service

    return service.manager(system=options.system)


def _as_account(options: Namespace) -> AbstractContextManager[None]:
    """Whose home and store it is; root may not open those of the machine's service."""
    from svcq.host import service

    return service.acting_as_account() if options.system else nullcontext()


def _install_parser(parser: Parser) -> None:
    add_system(parser, "for the whole machine, as an account of its own, and not for you alone")
    parser.add_argument(
        "--no-linger", action="store_true",
        help="let it end when you log out, instead of going on and starting with the machine",
    )  # fmt: skip
    parser.add_argument(
        "--account", metavar="NAME",
        help="with --system, on Windows: run as this account; its password is asked for",
    )  # fmt: skip
    parser.add_argument("--no-start", action="store_true", help="do not start it yet")
    parser.add_argument(
        "--no-tray", action="store_true", help="do not let the tray start with your session"
    )
    parser.set_defaults(run=_install)


def _install(options: Namespace) -> None:
    from svcq.host import service

    if options.system and options.no_linger:
        raise InvalidInput(
            "Both --system and --no-linger are given: a service of the whole machine has no "
            "session to end with, so give one."
        )
    manager = service.manager(system=options.system, linger=not options.no_linger)
    if options.account is not None:
        manager.use_account(options.account)
    names = _OF_THE_MACHINE if options.system else _OF_A_USER
    env = {name: os.environ[name] for name in names if name in os.environ}
    if not options.system:
        env |= _home_of_a_user()
    for sentence in manager.install(sys.executable, env):
        print(sentence)
    if not options.no_start:
        _begin(options, manager.restart)
        print(f"It runs: svcq{manager.option} status tells how it is.")
    if not (options.system or options.no_tray):
        print(_add_tray())


def _add_tray() -> str:
    """The tray starts with each session of this user."""
    from svcq.cli.tray import missing_extra
    from svcq.config import home
    from svcq.host.autostart import TRAY_IS_HERE, add_to_session

    if not TRAY_IS_HERE:
        return "There is no tray for this system yet: svcq open shows the page."
    if missing_extra():
        return "The tray is not installed: pip install svcq[tray], then svcq install again."
    file = add_to_session([sys.executable, "-m", "svcq_tray"], str(home()))
    if file is None:
        return "The tray does not start with your session: another file of its name is there."
    return f"The tray starts with your next session ({file}); svcq tray starts it now."


def _home_of_a_user() -> dict[str, str]:
    from svcq.config import load
    from svcq.host.filesystems import check_local
    from svcq.worker.places import Places

    config = load()
    check_local(config.home)
    Places(config.home).prepare()
    said = {"SVCQ_HOME": str(config.home)}
    if "SVCQ_STORE" in os.environ:
        need_no_password(config.store)
        said["SVCQ_STORE"] = config.store
    return said


def _uninstall_parser(parser: Parser) -> None:
    add_system(parser)
    parser.add_argument(
        "--purge", action="store_true",
        help="remove the home too: all jobs, settings and output, for good",
    )  # fmt: skip
    add_yes(parser)
    parser.set_defaults(run=_uninstall)


def _uninstall(options: Namespace) -> int:
    from svcq.config import home

    manager = _manager(options)
    manager.need_right("remove")
    with _as_account(options):
        place = home()
    if options.purge and not confirm(
        f"This would remove {place} with all jobs, settings and output.", yes=options.yes
    ):
        return 1
    _take_schedules_back(options, place)
    manager.end_all()
    _end_the_rest(options)
    for sentence in manager.uninstall():
        print(sentence)
    if not options.system:
        _remove_tray()
    if not options.purge:
        print(f"Jobs and settings are still there, in {place}.")
        return 0
    for sentence in manager.purge(place):
        print(sentence)
    return 0


def _remove_tray() -> None:
    from svcq.host.autostart import remove_from_session

    file = remove_from_session()
    if file is not None:
        print(f"Removed {file}.")


def _take_schedules_back(options: Namespace, home: Path) -> None:
    """Timers of ours would wake what is no longer there."""
    from svcq.cli.schedule_hand import take_all_back
    from svcq.handoff import SCHEDULER
    from svcq.host.timers import timers

    ours = timers(home, system=options.system)
    if not ours.there():
        return
    try:
        for name in take_all_back(options):
            print(f"{SCHEDULER} fires {name} no more.")
    except StoreError as error:  # a store that cannot be opened must not keep the timers
        print(f"svcq: {error}", file=sys.stderr)
        for name in ours.there():
            ours.remove(name)


def _end_the_rest(options: Namespace) -> None:
    """Workers that could get no unit of their own are not the manager's to end."""
    from svcq.config import load
    from svcq.service.crew import interrupt
    from svcq.store import open_store
    from svcq.worker.places import Places

    try:
        with _as_account(options):
            config = load()
            if "://" not in config.store and not os.path.exists(config.store):
                return
            store = open_store(config)
            try:
                gone = interrupt(store, Places(config.home), _PATIENCE)
            finally:
                store.close()
    except SvcqError as error:  # a store that cannot be opened must not keep the service
        print(f"svcq: {error}", file=sys.stderr)
        return
    if not gone:
        print("svcq: Some workers have not ended yet: svcq worker list.", file=sys.stderr)


def _start_parser(parser: Parser) -> None:
    add_system(parser)
    parser.set_defaults(run=_start)


def _start(options: Namespace) -> None:
    _begin(options, _manager(options).start)
    print("The service runs.")


def _begin(options: Namespace, start: Callable[[], None]) -> None:
    """Start it; where it could not start, its own last words are the reason."""
    from svcq.config import home
    from svcq.service import starts

    manager = _manager(options)
    manager.need_right("start")
    with _as_account(options):
        place = home()
        starts.forget(place)
    try:
        start()
    except Refused as error:
        with _as_account(options):
            crashes = starts.recent_crashes(place)
        if not crashes.times:
            raise
        raise Refused(
            f"The service could not start: {crashes.last.rstrip('.')} "
            f"(svcq{manager.option} log --service tells more)."
        ) from error


def _stop_parser(parser: Parser) -> None:
    add_system(parser)
    parser.add_argument("--now", action="store_true", help="interrupt what runs: it goes back")
    parser.set_defaults(run=_stop)


def _stop(options: Namespace) -> None:
    from svcq.client import Client
    from svcq.service.crew import drain
    from svcq.worker.places import Places

    _manager(options).stop()
    with _as_account(options), Client() as client:
        # The service has done so, unless it was hanging or is not there.
        busy = drain(client.store, Places(client.config.home), now=options.now)
    running = sum(worker.running for worker in busy)
    if options.now or not running:
        print("The service has stopped." + (" What was running goes back." if running else ""))
        return
    goes = (
        "1 job that runs goes on to its end"
        if running == 1
        else f"{running} jobs that run go on to their end"
    )
    print(f"The service has stopped; {goes} (svcq stop --now interrupts).")


def _restart_parser(parser: Parser) -> None:
    add_system(parser)
    parser.set_defaults(run=_restart)


def _restart(options: Namespace) -> None:
    _begin(options, _manager(options).restart)
    print("The service runs anew; what was running goes on.")


def _service_parser(parser: Parser) -> None:
    parser.set_defaults(run=_service)


def _service(options: Namespace) -> int:
    manager = _manager(options)
    return manager.host(lambda: _serve(manager))


def _serve(manager: Manager) -> int:
    import traceback

    from svcq.config import home
    from svcq.service.log import Log
    from svcq.service.run import run_service
    from svcq.web.server import Web

    place = home()
    log = Log(place)
    try:
        run_service(place, manager, log, Web)
    except SvcqError as error:
        log(str(error))
        return error.exit_code
    except Exception:  # noqa: BLE001 (whatever it is, the log has to have it)
        log(traceback.format_exc().rstrip())
        return 1
    return 0


PARSERS = {
    "install": _install_parser,
    "uninstall": _uninstall_parser,
    "start": _start_parser,
    "stop": _stop_parser,
    "restart": _restart_parser,
    "service": _service_parser,
}
