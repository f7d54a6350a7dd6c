"""`svcq completion`: what a shell needs to complete commands, options, jobs and queues.

Made from the parsers, so that it is never out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from svcq.cli import all_commands, parser_of
from svcq.cli.parser import Namespace, Parser
from svcq.jobs import State

_ABOUT = """
  bash:  svcq completion bash > ~/.local/share/bash-completion/completions/svcq
  zsh:   svcq completion zsh > a file named _svcq in a directory of $fpath
  fish:  svcq completion fish > ~/.config/fish/completions/svcq.fish
"""


_SYSTEM = "the queue of the whole machine"


class Option(NamedTuple):
    names: list[str]
    about: str
    metavar: str | None  # None where no value follows
    choices: list[str]


class Command(NamedTuple):
    words: tuple[str, ...]  # ("queue", "set")
    about: str
    options: list[Option]
    choices: list[str]  # of its positional argument: shells, commands of a group
    target: str | None  # what its positional argument names: JOB, QUEUE, FILE


def _completion_parser(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_ABOUT}"
    parser.add_argument("shell", metavar="SHELL", choices=list(_WRITERS), help="bash, zsh or fish")
    parser.set_defaults(run=_completion)


def _completion(options: Namespace) -> None:
    print(_WRITERS[options.shell](list(commands())))


def commands() -> Iterator[Command]:
    """Every command, those of groups after their group."""
    for name, (_, about) in all_commands().items():
        parser = parser_of(name)
        yield _describe((name,), about, parser)
        for word, (sub, sub_about) in parser.subcommands.items():
            yield _describe((name, word), sub_about, sub)


def _describe(words: tuple[str, ...], about: str, parser: Parser) -> Command:
    options, choices, target = [], list(parser.subcommands), None
    for action in parser.arguments():
        values = [str(choice) for choice in action.choices or ()]
        if action.option_strings:
            metavar = None if action.nargs == 0 else str(action.metavar or "VALUE")
            if action.option_strings[-1] == "--state":
                values = [state.value for state in State]
            options.append(Option(list(action.option_strings), action.help or "", metavar, values))
        else:
            choices += values
            target = target or str(action.metavar)
    return Command(words, about, options, choices, target)


_DYNAMIC = {
    # The name if it has one; newest first, and never so many that pressing a key takes long.
    "JOB": "svcq list --limit 50 --columns id",
    "QUEUE": "svcq queue list",
    "SCHEDULE": "svcq schedule list --limit 200",
}


def _bash(found: list[Command]) -> str:
    cases, values = [], []
    for command in found:
        key = " ".join(command.words)
        words = [name for option in command.options for name in option.names]
        cases.append(
            f'    "{key}") options="{" ".join(words)}"; words="{" ".join(command.choices)}"; '
            f'target="{command.target or ""}" ;;'
        )
        values += [
            f'    "{key} {name}") {_bash_value(option)} ;;'
            for option in command.options
            if option.metavar is not None
            for name in option.names
        ]
    groups = "|".join(sorted({c.words[0] for c in found if len(c.words) > 1}))
    names = " ".join(all_commands())
    dynamic = "\n".join(
        f"  elif [[ $target == {target} ]]; then\n    words=$(_svcq_first_column {listing})"
        for target, listing in _DYNAMIC.items()
    )
    return f"""\
# Completion of svcq for bash; made by `svcq completion bash`.
_svcq_first_column() {{ "$@" 2>/dev/null | tail -n +2 | awk '{{print $1}}'; }}
_svcq() {{
  if [[ ${{COMP_WORDS[1]}} == --system ]] && ((COMP_CWORD > 1)); then
    COMP_WORDS=(svcq "${{COMP_WORDS[@]:2}}")
    ((COMP_CWORD--))
  fi
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local key=${{COMP_WORDS[1]}} options="" words="" target=""
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{names} --system --help --version" -- "$current"))
    return
  fi
  case $key in {groups}) ((COMP_CWORD > 2)) && key="$key ${{COMP_WORDS[2]}}" ;; esac
  case "$key $previous" in
{chr(10).join(values)}
  esac
  case $key in
{chr(10).join(cases)}
  esac
  if [[ $current == -* ]]; then
    words=$options
{dynamic}
  elif [[ -n $target && -z $words ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
    return
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _svcq svcq"""


def _bash_value(option: Option) -> str:
    if option.metavar == "QUEUE":
        words = f"$(_svcq_first_column {_DYNAMIC['QUEUE']})"
    elif option.metavar in ("FILE", "DIR"):
        kind = "-f" if option.metavar == "FILE" else "-d"
        return f'COMPREPLY=($(compgen {kind} -- "$current")); return'
    else:
        words = " ".join(option.choices)
    return f'COMPREPLY=($(compgen -W "{words}" -- "$current")); return'


def _zsh(found: list[Command]) -> str:
    cases = []
    for command in found:
        lines = [
            f"        {_quoted(f'{name}:{_colons(option.about)}')}"
            for option in command.options
            for name in option.names
        ]
        cases.append(
            f'    ("{" ".join(command.words)}")\n      options=(\n'
            + "\n".join(lines)
            + f"\n      )\n      words=({' '.join(command.choices)}); "
            f"target='{command.target or ''}' ;;"
        )
    names = "\n".join(
        f"      {_quoted(f'{name}:{_colons(about)}')}"
        for name, (_, about) in all_commands().items()
    )
    groups = "|".join(sorted({c.words[0] for c in found if len(c.words) > 1}))
    dynamic = "\n".join(
        f"  elif [[ $target == {target} ]]; then\n    {_zsh_column(target)}" for target in _DYNAMIC
    )
    return f"""\
#compdef svcq
# Completion of svcq for zsh; made by `svcq completion zsh`.
_svcq() {{
  local -a options words names
  local target key=$words[2]
  local -a line; line=("${{words[@]}}"); local at=$CURRENT
  words=()
  if [[ $line[2] == --system ]] && ((at > 2)); then
    line[2]=()
    ((at--))
  fi
  if ((at == 2)); then
    names=(
{names}
    )
    _describe command names
    return
  fi
  key=$line[2]
  case $key in ({groups}) ((at > 3)) && key="$key $line[3]" ;; esac
  case $key in
{chr(10).join(cases)}
  esac
  if [[ $line[at] == -* ]]; then
    _describe option options
  elif [[ $line[at-1] == --queue ]]; then
    {_zsh_column("QUEUE")}
  elif [[ $line[at-1] == --state ]]; then
    compadd -- {" ".join(state.value for state in State)}
{dynamic}
  elif (($#words)); then
    compadd -- $words
  else
    _files
  fi
}}
compdef _svcq svcq"""


def _zsh_column(target: str) -> str:
    return f"""compadd -- ${{(f)"$({_DYNAMIC[target]} 2>/dev/null | awk 'NR > 1 {{print $1}}')"}}"""


def _colons(text: str) -> str:
    return text.replace(":", "\\:")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(found: list[Command]) -> str:
    lines = [
        "# Completion of svcq for fish; made by `svcq completion fish`.",
        "complete -c svcq -f",
        f"complete -c svcq -n __fish_use_subcommand -l system -d {_quoted(_SYSTEM)}",
    ]
    for command in found:
        first, *second = command.words
        if second:
            others = " ".join(c.words[1] for c in found if c.words[0] == first and c.words[1:])
            seen = f"__fish_seen_subcommand_from {first}"
            unseen = f"not __fish_seen_subcommand_from {others}"
            lines.append(
                f"complete -c svcq -n {_quoted(f'{seen}; and {unseen}')} "
                f"-a {second[0]} -d {_quoted(command.about)}"
            )
        else:
            lines.append(
                f"complete -c svcq -n __fish_use_subcommand -a {first} -d {_quoted(command.about)}"
            )
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
        lines += [_fish_option(seen, option) for option in command.options]
        dynamic = _DYNAMIC.get(command.target or "")
        if dynamic:
            values = f"({dynamic} 2>/dev/null | awk 'NR > 1 {{print $1}}')"
            lines.append(f"complete -c svcq -n {_quoted(seen)} -a {_quoted(values)}")
        elif command.target in ("FILE", "COMMAND"):
            lines.append(f"complete -c svcq -n {_quoted(seen)} -F")
    return "\n".join(lines)


def _fish_option(seen: str, option: Option) -> str:
    line = f"complete -c svcq -n {_quoted(seen)}"
    for name in option.names:
        line += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
    if option.metavar is not None:
        line += " -r"
    if option.choices:
        line += f" -a {_quoted(' '.join(option.choices))}"
    return f"{line} -d {_quoted(option.about)}"


_WRITERS = {"bash": _bash, "zsh": _zsh, "fish": _fish}

PARSERS = {"completion": _completion_parser}
