"""Windows: a program and its arguments as the one line of text that a process is started with.

Programs take that line apart themselves. Most do it as Microsoft's C library does; cmd.exe and the
batch files that it runs have rules of their own, in which a quote does not protect a percent sign.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_BATCH = (".bat", ".cmd")
_RUN = ("/c", "/k")
_EXTENSIONS = ".COM;.EXE;.BAT;.CMD"
# Expands to nothing, and so parts a percent sign from a name that it would make a variable of.
_NOTHING = "%cd:~,%"


class Program(NamedTuple):
    executable: str
    line: str


def shell(line: str) -> list[str]:
    """cmd.exe, told to take what stands between the outer quotes as it is."""
    return [os.environ.get("COMSPEC") or "cmd.exe", "/d", "/s", "/c", line]


def program_of(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> Program:
    """What is started, as it is found by the job's own PATH; FileNotFoundError where it is not."""
    found = find(argv[0], env, cwd)
    if found.lower().endswith(_BATCH):
        return Program(_cmd(env), batch_line(_cmd(env), found, argv[1:]))
    if os.path.basename(found).lower() == "cmd.exe":
        return Program(found, cmd_line(found, argv[1:]))
    return Program(found, subprocess.list2cmdline([found, *argv[1:]]))


def find(name: str, env: Mapping[str, str], cwd: str | None) -> str:
    """Windows itself would look beside the program that starts it, and in its folder, first."""
    if os.path.dirname(name):
        folders = [os.path.join(cwd or os.getcwd(), os.path.dirname(name))]
    else:
        folders = [folder.strip('"') for folder in env.get("PATH", "").split(os.pathsep) if folder]
    extensions = (env.get("PATHEXT") or _EXTENSIONS).split(";")
    base = os.path.basename(name)
    has_one = base.lower().endswith(tuple(one.lower() for one in extensions if one))
    names = [base] if has_one else [base + one.lower() for one in extensions if one]
    for folder in folders:
        for one in names if has_one or not os.path.dirname(name) else [*names, base]:
            path = os.path.join(folder, one)
            if os.path.isfile(path):
                return os.path.normpath(path)
    raise FileNotFoundError(2, "there is no such program", name)


def _cmd(env: Mapping[str, str]) -> str:
    root = env.get("SYSTEMROOT") or os.environ.get("SYSTEMROOT") or r"C:\Windows"
    return os.path.join(root, "System32", "cmd.exe")


def cmd_line(cmd: str, words: Sequence[str]) -> str:
    """cmd.exe with its options, and what it is to run: one text stands for itself."""
    at = next((n for n, word in enumerate(words) if word.lower() in _RUN), None)
    if at is None:
        return subprocess.list2cmdline([cmd, *words])
    options = [word for word in words[:at] if word.lower() != "/s"]
    rest = words[at + 1 :]
    text = rest[0] if len(rest) == 1 else subprocess.list2cmdline(rest)
    return f'{subprocess.list2cmdline([cmd, *options, "/s", words[at]])} "{text}"'


def batch_line(cmd: str, script: str, words: Sequence[str]) -> str:
    """A batch file with arguments that arrive as they are: nothing in them is run or expanded.

    `%~1` in it gives each without its quotes. Delayed expansion is off, so that `!` is a letter.
    """
    for word in (script, *words):
        if any(sign in word for sign in "\r\n\0"):
            raise OSError(22, "an argument of a batch file cannot hold the end of a line", script)
    if '"' in script or script.endswith("\\"):
        raise OSError(22, "this cannot be the name of a batch file", script)
    quoted = " ".join([f'"{_without_variables(script)}"', *map(_batch_word, words)])
    return f'{subprocess.list2cmdline([cmd])} /e:on /v:off /d /s /c "{quoted}"'


def _batch_word(word: str) -> str:
    """In quotes, whatever it is: so that no sign of it means anything to cmd.exe."""
    text = _without_variables(word.replace('"', '""'))
    # What the batch file starts takes backslashes before a quote for escapes of it.
    backslashes = len(text) - len(text.rstrip("\\"))
    return '"' + text + "\\" * backslashes + '"'


def _without_variables(text: str) -> str:
    return text.replace("%", f"%{_NOTHING}")
