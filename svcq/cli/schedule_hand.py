"""`svcq schedule handoff` and `takeback`: who fires a schedule, svcq or the system's scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser
from svcq.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.schedules import Schedule

_HANDOFF = """
Your own systemd then wakes it by a timer, though no service of svcq runs: for a machine that is
switched off now and then (what passed meanwhile is made up for as --missed says), or, with --wake,
one that sleeps. The timer starts `svcq schedule fire`, which queues the job, starts a worker if
none lives, and ends as the job did: systemctl --user list-timers and --failed show it.

What systemd's calendar cannot say, such as --every 7m, is refused. svcq schedule takeback undoes
it.
"""


def add_commands(command: Callable[[str, str, Callable[[Namespace], int | None]], Parser]) -> None:
    handoff = command("handoff", "let the system's scheduler fire schedules", _handoff)
    handoff.description = f"{handoff.description}\n{_HANDOFF}"
    handoff.add_argument("schedules", nargs="+", metavar="SCHEDULE", help="its name")
    handoff.add_argument("--wake", action="store_true", help="wake the machine for it")
    takeback = command("takeback", "let svcq fire schedules again", _takeback)
    takeback.add_argument("schedules", nargs="*", metavar="SCHEDULE", help="its name")
    takeback.add_argument("--all", action="store_true", help="every one that was handed over")


@contextmanager
def opened(options: Namespace) -> Iterator[Client]:
    """The client, as whom the home and the store belong to."""
    from svcq.client import Client
    from svcq.host.service import acting_as_account

    with acting_as_account() if options.system else nullcontext(), Client() as client:
        yield client


def is_handed(schedule: Schedule) -> bool:
    from svcq.schedules import OURS

    return schedule.fired_by != OURS


def _handoff(options: Namespace) -> None:
    from svcq.handoff import SCHEDULER, hand_over, wake_now

    with opened(options) as client:
        config = client.config
        found = [client.get_schedule(name) for name in dict.fromkeys(options.schedules)]
    for schedule in found:
        if schedule.over and not schedule.paused:
            raise Refused(f"{schedule.name} is over, so that there is nothing to hand over.")
        for sentence in hand_over(schedule, config, wake=options.wake, system=options.system):
            print(sentence)
        with opened(options) as client:
            client.hand_off(schedule.name, SCHEDULER)
        wake_now(schedule.name, config.home, system=options.system)


def _takeback(options: Namespace) -> None:
    if bool(options.schedules) == options.all:
        raise InvalidInput("Name schedules, or give --all for every one that was handed over.")
    if options.all:
        names = take_all_back(options)
        if not names:
            print("No schedule was handed over.")
    else:
        with opened(options) as client:
            names = [client.get_schedule(name).name for name in dict.fromkeys(options.schedules)]
        for name in names:
            _take_back(options, name)
    for name in names:
        print(f"svcq fires {name} again.")


def take_all_back(options: Namespace) -> list[str]:
    """Those that were handed over; timers of schedules that are gone are removed as well."""
    from svcq.handoff import strays

    with opened(options) as client:
        handed = [one for one in client.schedules(limit=1_000_000) if is_handed(one)]
        home = client.config.home
    for name in strays(handed, home, system=options.system):
        forget(options, name)
    for schedule in handed:
        _take_back(options, schedule.name)
    return [schedule.name for schedule in handed]


def _take_back(options: Namespace, name: str) -> None:
    forget(options, name)
    with opened(options) as client:
        client.take_back(name)


def forget(options: Namespace, name: str) -> None:
    """Let the system's scheduler forget a schedule."""
    from svcq.handoff import end

    with opened(options) as client:
        home = client.config.home
    end(name, home, system=options.system)


def renewed(options: Namespace, schedule: Schedule) -> str | None:
    """After a change: what was handed over is handed over anew, or taken back where that cannot be
    done; what there is to say of it."""
    from svcq.handoff import SCHEDULER, renew

    if schedule.fired_by != SCHEDULER:
        return None
    with opened(options) as client:
        config = client.config
    try:
        renew(schedule, config, system=options.system)
    except Refused as refused:
        _take_back(options, schedule.name)
        return f"svcq fires it again, since it cannot be handed over any more: {refused}"
    return f"{SCHEDULER} fires it at its new times."
