"""`svcq status`: how things are, on one screen."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from svcq.cli.parser import Namespace, Parser, add_json, add_system
from svcq.cli.text import ago, paint, plural, print_json
from svcq.passwords import hide_password

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.host import service
    from svcq.store import Worker
    from svcq.store.clocks import Standing


def _status_parser(parser: Parser) -> None:
    parser.add_argument("--queue", metavar="QUEUE", help="the jobs of this queue alone")
    add_system(parser)
    add_json(parser)
    parser.set_defaults(run=_status)


def _status(options: Namespace) -> None:
    from svcq.client import Client

    with Client() as client:
        if options.queue is not None:
            client.queue(options.queue)  # says so when there is none
        counts = client.counts(options.queue)
        workers = client.workers()
        now = time.time() * 1000 if client.remote else client.store.engine.clock()
        paused = [queue.name for queue in client.queues() if queue.paused]
        clock = client.clock()
        stands = _standing(client, system=options.system)
        awake = None if client.remote else _awake(client, workers)
        at_the_end = None if client.remote else _at_the_end(client)
        store = hide_password(client.config.store)
    if options.json:
        shown = [worker.as_json() for worker in workers]
        print_json(
            {"counts": counts, "workers": shown, "service": stands._asdict(),
             "clock": clock.as_json(), "paused": paused, "store": store,
             "awake": awake, "when_done": at_the_end and at_the_end[0]}
        )  # fmt: skip
        return
    _print_counts(counts)
    told = [
        _who_works(workers, now),
        awake and _how_awake(awake),
        stands.installed and _how_it_stands(stands),
        clock.schedules and _who_fires(clock),
        paused and f"Paused: {', '.join(paused)}.",
        at_the_end and at_the_end[1],
    ]
    for sentence in filter(None, told):
        print(sentence)


def _standing(client: Client, *, system: bool) -> service.Standing:
    from svcq.host import service

    # Who answers, runs; and what our own manager knows is of our own service.
    if client.remote and not system:
        return service.Standing(installed=True, running=True)
    return service.manager(system=system).standing()


def _how_it_stands(stands: service.Standing) -> str:
    text = f": {stands.text}" if stands.text else "."
    return f"The service {'runs' if stands.running else 'does not run'}{text}"


def _print_counts(counts: dict[str, int]) -> None:
    told = [(state, n) for state, n in counts.items() if n]
    width = max([len(f"{n:,}") for _, n in told], default=0)
    for state, n in told:
        print(f"{n:>{width},} {paint(state)}")
    if not told:
        print("There are no jobs.")


def _who_works(workers: list[Worker], now: float) -> str:
    """`now`: by the clock of the store."""
    if not workers:
        return "No worker is running."
    slots = sum(worker.slots for worker in workers)
    running = sum(worker.running for worker in workers)
    told = f"{plural(len(workers), 'worker')} with {plural(slots, 'slot')}, {running} in use"
    machines = Counter(worker.host for worker in workers)
    if len(machines) > 1:
        each = ", ".join(f"{n} on {host}" for host, n in sorted(machines.items()))
        told = f"{told}: {each}"
    return f"{told}.{_who_is_silent(workers, now)}"


def _who_is_silent(workers: list[Worker], now: float) -> str:
    """Those on machines that may be gone, or cut off."""
    silent = [
        f"{one.id} on {one.host}" for one in workers
        if one.heard_at is not None and now - one.heard_at > (one.silence_ms or 0) / 2
        and one.silence_ms
    ]  # fmt: skip
    if not silent:
        return ""
    noun = "Worker" if len(silent) == 1 else "Workers"
    return (
        f" {noun} {', '.join(silent)} {'has' if len(silent) == 1 else 'have'} been silent lately."
    )


def _awake(client: Client, workers: list[Worker]) -> dict[str, Any] | None:
    """Whether this machine is kept awake for what runs on it; None when nothing asks for it."""
    if not any(worker.running for worker in workers):
        return None
    from svcq.worker.places import awake_notes

    troubles = awake_notes(client.config.home, workers)
    if not troubles:
        return None
    return {"held": "" in troubles, "trouble": next(filter(None, troubles), None)}


def _how_awake(awake: dict[str, Any]) -> str:
    if awake["held"]:
        return "The machine is kept awake meanwhile."
    return f"The machine may go to sleep meanwhile; it is not kept awake ({awake['trouble']})."


def _at_the_end(client: Client) -> tuple[dict[str, Any], str] | None:
    """What is planned for when all is done, for programs and for people."""
    from svcq.service.plans import Plans

    plans = Plans(client.config.home)
    plan = plans.read()
    if plan is None:
        return None
    from svcq.cli.when_done import plan_json, planned

    return plan_json(plans, plan, client), planned(plans, plan, client)


def _who_fires(clock: Standing) -> str:
    some = plural(clock.schedules, "schedule")
    if clock.next_due is None:
        return f"{some}, none of which svcq is to fire."
    coming = ago(datetime.fromtimestamp(clock.next_due / 1000, UTC), datetime.now(UTC))
    if not (clock.clocks or clock.elsewhere):
        return f"{some}, but no clock runs: svcq start (or svcq up) runs one."
    told = f"{some}; the next, {clock.next_name}, fires {coming}."
    if clock.elsewhere:
        here = ["this machine"] if clock.clocks else []
        told = f"{told} Clocks run on {' and '.join([*here, *clock.elsewhere])}."
    return told


PARSERS = {"status": _status_parser}
