"""Other users of this machine, for real: a process that has become one asks the service.

What they need is imported before: the interpreter of whoever runs the tests may be closed to them.
"""

from __future__ import annotations

import io
import json
import os
import pkgutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from http.client import HTTPConnection
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import svcq.cli
import svcq.client.remote
import svcq.host.service
from svcq import errors, later
from svcq.cli import run
from svcq.client import Client
from svcq.host import peers

for _module in pkgutil.iter_modules(svcq.cli.__path__):
    import_module(f"svcq.cli.{_module.name}")
for _name in ("difflib", "encodings.idna", "json.tool", "svcq.environment", "svcq.when"):
    import_module(_name)
later.import_all()

# Accounts that every Debian has, and that nobody uses.
DAEMON, BIN, GAMES = 1, 2, 5


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Other:
    """A user who is neither root nor the owner of the home."""

    def __init__(self, uid: int, socket: Path, folder: Path) -> None:
        self.uid = uid
        self._socket = socket
        self._folder = folder

    def client(self, act: Callable[[Client], Any]) -> Any:
        """What `act` answers, as JSON has it; what it raises is raised here, too."""

        def child() -> dict[str, Any]:
            try:
                with Client(socket=self._socket) as client:
                    return {"answer": act(client)}
            except errors.SvcqError as error:
                return {"error": type(error).__name__, "says": str(error)}

        said = self._become(child)
        if "error" in said:
            raise getattr(errors, said["error"])(said["says"])
        return said["answer"]

    def svcq(self, *arguments: object) -> Said:
        def child() -> dict[str, Any]:
            os.environ["SVCQ_SOCKET"] = str(self._socket)
            out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
            with redirect_stdout(out), redirect_stderr(err):
                code = run([str(argument) for argument in arguments])
            texts = [text.buffer.getvalue().decode() for text in (out, err)]  # type: ignore[attr-defined]
            return {"code": code, "out": texts[0], "err": texts[1]}

        return Said(**self._become(child))

    def page(self, path: str) -> str:
        """A view of the page, as this user is shown it."""

        def child() -> dict[str, Any]:
            http = HTTPConnection("svcq")
            http.sock = peers.connect_local(self._socket, 20)
            http.request("GET", path)
            return {"answer": http.getresponse().read().decode()}

        return str(self._become(child)["answer"])

    def _become(self, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        to_us, from_child = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.chdir(self._folder)
                os.environ.update(HOME="/nonexistent", LOGNAME=str(self.uid), USER=str(self.uid))
                os.setgroups([])
                os.setgid(self.uid)
                os.setuid(self.uid)
                said = act()
            except BaseException as error:  # noqa: BLE001  the parent tells of it
                said = {"error": "SvcqError", "says": f"The child failed: {error!r}"}
            os.write(from_child, json.dumps(said).encode())
            sys.stdout = sys.stderr = None  # type: ignore[assignment]
            os._exit(0)
        os.close(from_child)
        with os.fdopen(to_us, "rb") as told:
            data = told.read()
        os.waitpid(pid, 0)
        answer: dict[str, Any] = json.loads(data)
        return answer
