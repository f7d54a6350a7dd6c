"""Whether a project can be imported: asked of a runner, which does it as it will for a worker.

What its modules print meanwhile goes nowhere, and what they start ends with the runner.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from svcq.config import Project
from svcq.errors import InvalidInput
from svcq.host import processes
from svcq.host.lines import Line
from svcq.worker.runners import PROTOCOL, RUNNER

PATIENCE = 30.0  # seconds


def tasks_of(project: Project, patience: float = PATIENCE) -> list[str]:
    """The tasks that its modules declare; refused when they cannot be imported."""
    line = Line()
    try:
        runner = processes.start_with_line(
            [project.python, str(RUNNER), line.word, str(os.getpid())],
            project.path[0] if project.path else None, line,
        )  # fmt: skip
    except BaseException:
        line.close()
        raise
    try:
        with line.taken(lambda: runner.poll() is None) as ours:
            said = _ask(ours, project, patience)
    except ConnectionError:
        said = {}
    finally:
        code = processes.kill_with_its_own(runner)
    if "ready" in said:
        return sorted(said["ready"]["tasks"])
    raise _refusal(project, said.get("failed") or _how_it_ended(code))


def _ask(line: socket.socket, project: Project, patience: float) -> dict[str, Any]:
    """What the runner answers; nothing when it ended without an answer."""
    hello = {
        "protocol": PROTOCOL, "mode": "plain", "path": project.path, "import": project.imports,
        "max_payload": 0,
    }  # fmt: skip
    line.settimeout(patience)
    try:
        line.sendall(json.dumps({"hello": hello}).encode() + b"\n")
        with line.makefile("rb") as answers:
            answer: dict[str, Any] = json.loads(answers.readline() or b"{}")
            return answer
    except TimeoutError:
        return {"failed": f"it took longer than {patience:g} s"}
    except (OSError, ValueError):
        return {}


def _how_it_ended(code: int) -> str:
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return f"it ended the interpreter {how}"


def _refusal(project: Project, why: str) -> InvalidInput:
    modules = ", ".join(project.imports)
    line = why.strip().partition("\n")[0].rstrip(".")
    return InvalidInput(
        f"{project.python} cannot import {modules} ({line}): mend that, name the interpreter that "
        "can with --python, or add it as it is with --no-check."
    )
