"""`svcq notify`: where ends are told beyond the desktop."""

from __future__ import annotations

import getpass
import sys
from importlib.util import find_spec

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import print_json
from svcq.config import Config, Target, add_target, load, remove_target
from svcq.config.targets import TELL
from svcq.errors import InvalidInput, NotFound, Refused
from svcq.policy import check_name

_ABOUT = """
The addresses are those of Apprise (mailto://, ntfy://, tgram://, ...). They hold passwords, so they
are asked for or read from standard input, one a line, and never shown again. The service sends, and
tries again until it has worked; on this machine svcq tray tells of ends by itself.
"""


def _parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    add_json(parser.command("list", "where ends are told", _list))
    add = parser.command("add", "tell a target, in place of one of the same name", _add)
    add.add_argument("name", metavar="NAME", help="what it is called, such as phone")
    add.add_argument(
        "--queue", action="append", default=[], metavar="QUEUE", help="only of this queue"
    )
    add.add_argument(
        "--tell", choices=TELL, default=TELL[0],
        help="failures, all ends, or what was asked for with --notify",
    )  # fmt: skip
    remove = parser.command("remove", "tell a target no more", _remove)
    remove.add_argument("name", metavar="NAME", help="what it is called")
    test = parser.command("test", "send a message to a target, now", _test)
    test.add_argument("name", metavar="NAME", help="what it is called")


def _list(options: Namespace) -> None:
    from svcq.service.announce import masked

    targets = load().targets
    if options.json:
        print_json([
            {"name": one.name, "urls": list(map(masked, one.urls)), "queues": list(one.queues),
             "tell": one.tell} for one in targets
        ])  # fmt: skip
        return
    if not targets:
        print("Nothing is told beyond the desktop: svcq notify add NAME.")
    for one in targets:
        of = f" of {', '.join(one.queues)}" if one.queues else ""
        print(f"{one.name}  {one.tell}{of}  {' '.join(map(masked, one.urls))}")


def _add(options: Namespace) -> None:
    name = check_name(options.name, "target")
    if sys.stdin.isatty():
        urls = [getpass.getpass("Address of Apprise (not shown): ").strip()]
    else:
        urls = [line.strip() for line in sys.stdin if line.strip()]
    if not urls or not all("://" in url for url in urls):
        raise InvalidInput("There is no address of Apprise: give one such as ntfy://topic a line.")
    queues = tuple(check_name(queue, "queue") for queue in options.queue)
    add_target(load().home, Target(name, tuple(urls), queues, options.tell))
    print(f"{name} is told; svcq notify test {name} tries it.")
    if find_spec("apprise") is None:
        print("svcq: Nothing is sent without Apprise: pip install svcq[notify].", file=sys.stderr)


def _remove(options: Namespace) -> None:
    remove_target(load().home, options.name)
    print(f"{options.name} is told no more.")


def _test(options: Namespace) -> None:
    from svcq.service.announce import EXTRA, Message, masked, post

    target = _named(load(), options.name)
    if find_spec(EXTRA) is None:
        raise Refused("Nothing is sent without Apprise: pip install svcq[notify].")
    failed = post(target.urls, Message("svcq", "This is how svcq tells you of ends.", False))
    if failed:
        said = ", ".join(f"{masked(target.urls[n])} ({why})" for n, why in failed)
        raise Refused(f"{target.name} could not be told by {said}: check its address.")
    print(f"{target.name} was told.")


def _named(config: Config, name: str) -> Target:
    found = next((one for one in config.targets if one.name == name), None)
    if found is None:
        raise NotFound(f"There is no target {name!r}: svcq notify list shows those there are.")
    return found


PARSERS = {"notify": _parser}
