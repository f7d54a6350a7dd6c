"""`svcq when-done`: what is to happen once, when all work is done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from svcq.cli.add import set_command_aside, words_given
from svcq.cli.command import captured_environment, read_command
from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import ago, clean, plural, print_json
from svcq.errors import InvalidInput, NotPermitted
from svcq.times import MINUTE, format_duration, iso, parse_duration

if TYPE_CHECKING:
    from svcq.client import Client
    from svcq.service.plans import Plan, Plans

_ABOUT = """
With sleep or shutdown, the machine goes to sleep or is shut down; anything else is a command, which
is queued as a job. It happens once, and the service or svcq up sees to it, not this terminal.

Done is all when no job is processing, pending, retrying, scheduled or blocked, in the queues named
or in any. What is held, and what is pending in a paused queue, is waited for by nobody. Work that
comes before the time of --in has passed comes first.

  svcq when-done sleep
  svcq when-done --queue video --in 5m shutdown
  svcq when-done -- notify-send 'The queue is empty'
  svcq when-done             shows what is planned
  svcq when-done --cancel
"""
_OF_THE_MACHINE = ("sleep", "shutdown")


def _when_done_parser(parser: Parser) -> None:
    parser.usage = (
        "svcq when-done [OPTIONS] sleep|shutdown\n"
        "       svcq when-done [OPTIONS] [--] COMMAND...\n"
        "       svcq when-done [--cancel] [--json]"
    )
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.add_argument("command", nargs="...", metavar="COMMAND", help="what is to happen")
    parser.add_argument(
        "--queue", action="append", metavar="QUEUE", default=[],
        help="when the work of this queue is done; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--in", metavar="TIME", dest="wait",
        help="so long after; 1m by default, and 0 for a command",
    )  # fmt: skip
    parser.add_argument("--cancel", action="store_true", help="nothing is to happen")
    add_json(parser)
    parser.set_defaults(run=_when_done, after_dashes=None)
    parser.prepare = lambda arguments: set_command_aside(parser, arguments)


def _when_done(options: Namespace) -> int:
    from svcq.client import Client
    from svcq.service.plans import Plans

    words = words_given(options)
    if not words and (options.queue or options.wait is not None):
        raise InvalidInput("Say what is to happen: sleep, shutdown or a command.")
    if words and options.cancel:
        raise InvalidInput(f"Both --cancel and {words[0]!r} are given: give one.")
    with Client() as client:
        if client.remote:
            raise NotPermitted(
                "Only the owner of a queue may plan for its end: ask who runs the service."
            )
        plans = Plans(client.config.home)
        if options.cancel:
            return _cancel(plans, as_json=options.json)
        if words:
            plans.write(_plan(options, words, client))
        _show(plans, client, as_json=options.json)
    return 0


def _plan(options: Namespace, words: list[str], client: Client) -> Plan:
    from os import getcwd

    from svcq.host import processes
    from svcq.service.plans import Plan
    from svcq.times import now_ms

    queues = tuple(dict.fromkeys(client.queue(name).name for name in options.queue))
    of_machine = options.after_dashes is None and len(words) == 1 and words[0] in _OF_THE_MACHINE
    wait = MINUTE if of_machine else 0
    if options.wait is not None:
        wait = parse_duration(options.wait, "time")
    if of_machine:
        return Plan(words[0], now_ms(), wait, queues, processes.boot_id())
    command, env = read_command(words), captured_environment()
    client.new_command(command, env=env)  # what cannot be queued then is refused now
    return Plan("command", now_ms(), wait, queues, None, command, getcwd(), env)


def _cancel(plans: Plans, *, as_json: bool) -> int:
    plan = plans.take()
    if as_json:
        print_json(None if plan is None else plan.as_json())
    else:
        print("Nothing was planned." if plan is None else f"svcq is not to {_verb(plan)} any more.")
    return 1 if plan is None else 0


def _show(plans: Plans, client: Client, *, as_json: bool) -> None:
    plan = plans.read()
    if as_json:
        print_json(None if plan is None else plan_json(plans, plan, client))
        return
    if plan is not None:
        print(planned(plans, plan, client))
        return
    last = plans.last()
    before = ""
    if last is not None:
        when = ago(datetime.fromtimestamp(last.at / 1000, UTC), datetime.now(UTC))
        before = f" The last time, {when}: {clean(last.says)}"
    print(f"Nothing is planned for when all is done.{before}")


def plan_json(plans: Plans, plan: Plan, client: Client) -> dict[str, Any]:
    from svcq.service.plans import left_to_do

    return {
        **plan.as_json(), "left": left_to_do(client, plan.queues),
        "due_at": iso(plans.due()), "someone_will": plans.someone_will(),
    }  # fmt: skip


def planned(plans: Plans, plan: Plan, client: Client) -> str:
    """What is planned, what it waits for, and whether anyone will do it."""
    from svcq.service.plans import left_to_do

    left, due = left_to_do(client, plan.queues), plans.due()
    where = f" of {_and(plan.queues)}" if plan.queues else ""
    after = f" {format_duration(plan.wait)} later" if plan.wait else ""
    if left:
        states = ", ".join(f"{n:,} {state}" for state, n in left.items())
        waits = f"{plural(sum(left.values()), 'job')} left ({states})"
        says = f"When all work{where} is done, svcq is to {_verb(plan)}{after}: {waits}."
    elif due is not None:
        coming = ago(datetime.fromtimestamp(due / 1000, UTC), datetime.now(UTC))
        says = (
            f"All work{where} is done, and svcq is to {_verb(plan)} {coming}: "
            "svcq when-done --cancel prevents it."
        )
    else:
        says = f"All work{where} is done, and svcq is to {_verb(plan)}{after}."
    if not plans.someone_will():
        says += " Nobody is there to do it: svcq start or svcq up."
    return says


def _verb(plan: Plan) -> str:
    from svcq.service.when_done import verb

    return clean(verb(plan))


def _and(words: tuple[str, ...]) -> str:
    return " and ".join(words)


PARSERS = {"when-done": _when_done_parser}
