"""`svcq man`: the manual page, made from the parsers."""

from __future__ import annotations

import argparse

from svcq.cli import COMMANDS, overview, parser_of
from svcq.cli.parser import Namespace, Parser, name_of
from svcq.version import __version__


def _man_parser(parser: Parser) -> None:
    parser.set_defaults(run=_man)


def _man(_: Namespace) -> None:
    print(manual())


def manual() -> str:
    lines = [
        f'.TH SVCQ 1 "" "svcq {__version__}" "User Commands"',
        ".SH NAME",
        "svcq \\- a job queue that a computer runs as a service",
        ".SH SYNOPSIS",
        ".B svcq",
        ".I COMMAND",
        "\\&...",
    ]
    for title, group in COMMANDS.items():
        lines.append(f".SH {_quoted(title.upper())}")
        for name in group:
            lines += _command(parser_of(name))
    lines += [".SH NOTES", *_as_is(overview().partition("\n\nsvcq COMMAND --help")[2])]
    return "\n".join(lines)


def _command(parser: Parser) -> list[str]:
    lines = [f".SS {_quoted(parser.prog)}", *_as_is(parser.format_usage())]
    lines += _as_is(parser.description or "")
    for action in parser.arguments():
        lines += [".TP", f"\\fB{_escaped(invocation(action))}\\fR", _escaped(action.help or "")]
    for sub, _ in parser.subcommands.values():
        lines += _command(sub)
    return lines


def invocation(action: argparse.Action) -> str:
    names = name_of(action).replace("/", ", ")
    if not action.option_strings or action.nargs == 0:
        return names
    return f"{names} {action.metavar or '|'.join(map(str, action.choices or ()))}"


def _as_is(text: str) -> list[str]:
    return [".PP", ".nf", *(_escaped(line) for line in text.strip().splitlines()), ".fi"]


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "\\(dq") + '"'


PARSERS = {"man": _man_parser}
