"""`svcq open` and `svcq token`: the page, and what lets programs in."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import print_json
from svcq.errors import Refused

_ABOUT = """
The address holds a code that is good for one login within half a minute. It is handed to the
browser in a file that only you can read, since others can see the arguments of a program.
"""


def _open_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.add_argument("job", nargs="?", metavar="JOB", help="show this job, by its id or name")
    parser.add_argument("--print", action="store_true", help="print the address, open nothing")
    parser.add_argument("--read-only", action="store_true", help="a page that can only look")
    parser.add_argument(
        "--beyond", action="store_true", help="at the address for other machines (web.address)"
    )
    add_json(parser)
    parser.set_defaults(run=_open)


def _open(options: Namespace) -> None:
    from svcq.client.connection import OWN_SOCKET, LocalConnection
    from svcq.config import home
    from svcq.door import find_socket

    socket = find_socket()
    path = home() / OWN_SOCKET if socket is None else Path(socket)
    connection = LocalConnection(path)
    wanted = {"read_only": options.read_only, "beyond": options.beyond}
    with closing(connection):
        said = connection.ask("POST", "/login-codes", body=wanted)
        if options.job is not None:
            job = connection.ask("GET", f"/jobs/{quote(options.job, safe='')}")["id"]
            said["url"] += f"&job={job}"
    if options.json:
        print_json(said)
    elif options.print:
        print(said["url"])
    else:
        _show(said["url"], said["seconds"])


def _show(url: str, seconds: float) -> None:
    import webbrowser

    from svcq import host

    folder = Path(host.data_directory(), "svcq")  # the caller's own, whose page it may be
    host.private_directory(folder)
    file = folder / "open.html"
    host.write_private(file, _PAGE.format(address=json.dumps(url)))
    try:
        if not webbrowser.open(file.as_uri()):
            raise Refused("No browser could be opened: svcq open --print prints the address.")
        print(f"The page opens in your browser, at {url.partition('/login')[0]}.", flush=True)
        time.sleep(min(seconds, _LEISURE))
    finally:
        file.unlink(missing_ok=True)


_LEISURE = 10.0  # seconds for the browser to read the file
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>svcq</title>
<script>location.replace({address})</script>
"""


def _token_parser(parser: Parser) -> None:
    add_json(parser.command("list", "say where the tokens are, and what each is for", _list))
    rotate = parser.command("rotate", "make new tokens; the old ones and all logins end", _rotate)
    rotate.add_argument("--read-only", action="store_true", help="the one for looking alone")


def _list(options: Namespace) -> None:
    from svcq.config import load
    from svcq.web.tokens import FILES

    home = load().home
    found = {name: home / name for name in FILES if (home / name).exists()}
    if options.json:
        print_json([{"file": str(file), "for": _FOR[name]} for name, file in found.items()])
    elif found:
        for name, file in found.items():
            print(f"{file}  {_FOR[name]}")
    else:
        print("There are no tokens yet: the service makes them when it starts.")


_FOR = {"token": "everything", "token-read": "looking alone"}


def _rotate(options: Namespace) -> None:
    from svcq import host
    from svcq.config import load
    from svcq.web.tokens import FILES, rotate

    home = load().home
    host.private_directory(home)
    names = ["token-read"] if options.read_only else list(FILES)
    for file in rotate(home, names):
        print(f"{file} is new; whoever had the old one is no longer let in.")


PARSERS = {"open": _open_parser, "token": _token_parser}
