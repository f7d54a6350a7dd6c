"""The reference in Markdown, made from the parsers: `./dev docs` writes it to docs/reference.md."""

from __future__ import annotations

from svcq.cli import COMMANDS, parser_of
from svcq.cli.manual import invocation
from svcq.cli.parser import Parser
from svcq.config import SETTINGS


def reference() -> str:
    lines = ["# Reference", "", "Made from the program itself by `./dev docs`.", ""]
    lines += [
        "`svcq --system COMMAND` is about the queue of the whole machine, for root.",
        "",
    ]
    for title, group in COMMANDS.items():
        lines += [f"## {title}", ""]
        for name in group:
            lines += _command(parser_of(name), 3)
    lines += [
        "## Settings",
        "",
        "`svcq config set SETTING VALUE`; `svcq config path` is the file.",
        "",
    ]
    lines += ["| setting | default | what it is |", "|---|---|---|"]
    lines += [
        f"| `{key}` | `{setting.default!r}` | {_cell(setting.about)} |"
        for key, setting in SETTINGS.items()
    ]
    return "\n".join(lines) + "\n"


def _command(parser: Parser, level: int) -> list[str]:
    lines = [f"{'#' * level} {parser.prog}", "", "```text"]
    usage = parser.format_usage().strip().splitlines()
    lines += [*usage, "```", ""]
    if parser.description:
        lines += ["```text", *parser.description.strip().splitlines(), "```", ""]
    arguments = list(parser.arguments())
    if arguments:
        lines += ["| | |", "|---|---|"]
        lines += [f"| `{_cell(invocation(one))}` | {_cell(one.help or '')} |" for one in arguments]
        lines.append("")
    for sub, _ in parser.subcommands.values():
        lines += _command(sub, level + 1)
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    print(reference(), end="")
