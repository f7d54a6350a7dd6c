"""`svcq tray`: the icon in the panel of the desktop."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from svcq.cli.parser import Namespace, Parser
from svcq.errors import Refused

_ABOUT = """
Shows how svcq stands, queues, watches and stops jobs, and tells when they end. It runs until Quit
in its menu. svcq install lets it start with your session.
"""


def _tray_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.set_defaults(run=_tray)


def _tray(options: Namespace) -> int:
    del options
    from svcq.host.autostart import TRAY_IS_HERE

    if not TRAY_IS_HERE:
        raise Refused("There is no tray for this system yet: svcq open shows the page instead.")
    missing = missing_extra()
    if missing:
        raise Refused(f"The tray needs {missing}: pip install svcq[tray].")
    from svcq_tray import app

    code: int = app.run(lambda text: print(text, flush=True))
    return code


def missing_extra() -> str:
    """What the tray is made with and is not here; empty when all is."""
    from svcq.host.autostart import TRAY_NEEDS

    return ", ".join(name for name in TRAY_NEEDS if find_spec(name) is None)


def main() -> int:
    """svcq-tray: the same, from a menu of programs."""
    from svcq.cli import run

    return run(["tray", *sys.argv[1:]])


PARSERS = {"tray": _tray_parser}
