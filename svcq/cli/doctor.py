"""`svcq doctor`."""

from __future__ import annotations

from svcq.cli.parser import Namespace, Parser, add_json, add_system
from svcq.cli.text import clean, paint, print_json


def _doctor_parser(parser: Parser) -> None:
    parser.epilog = "Exits with 1 when something is wrong. Nothing is changed."
    add_system(parser)
    add_json(parser)
    parser.set_defaults(run=_doctor)


def _doctor(options: Namespace) -> int:
    from svcq.doctor import examine
    from svcq.host import service

    found = []
    for finding in examine(manager=service.manager(system=options.system)):
        found.append(finding)
        if options.json:
            continue
        word = paint("completed", "ok") if finding.ok else paint("dead", "problem")
        pad = " " * (7 - len("ok" if finding.ok else "problem"))
        remedy = f": {finding.remedy}" if finding.remedy else ""
        says = clean(f"{finding.check}: {finding.says}{remedy}").rstrip(".")
        print(f"{word}{pad}  {says}.", flush=True)
    wrong = sum(not finding.ok for finding in found)
    if options.json:
        print_json([finding.as_json() for finding in found])
    return 1 if wrong else 0


PARSERS = {"doctor": _doctor_parser}
