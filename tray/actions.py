"""Doing what was clicked: it goes in at the front, through the service's API, as anyone's would."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

from svcq.client.remote import RemoteClient
from svcq.ends import plain
from svcq.errors import Refused

from .door import WRONG, Door, says
from .model import Action, Icon, Note
from .service import Service
from .state import State

_AT_ONCE = 4
_DIALOGS = ("add", "clipboard", "settings", "about")
_OPENING = 30.0
_CLOSING = 1.0


class Actions:
    """Calls `changed` when something was done, `tell` when it was not."""

    def __init__(
        self,
        door: Door,
        kept: State,
        changed: Callable[[], None],
        tell: Callable[[Note], None],
        leave: Callable[[], None],
    ) -> None:
        self._door = door
        self._kept = kept
        self._changed = changed
        self._tell = tell
        self._leave = leave
        self._service = Service(door)
        self._hands = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="act")
        self._dialogs: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def __call__(self, action: Action) -> None:
        """From whichever thread a click comes; it waits for nothing."""
        if action.verb == "quit":
            self._leave()
            return
        with suppress(RuntimeError):  # we are leaving
            self._hands.submit(self._do, action)

    def close(self) -> None:
        self._hands.shutdown(wait=False, cancel_futures=True)

    def _do(self, action: Action) -> None:
        try:
            self._carry_out(action.verb, action.what)
        except WRONG as error:
            said = plain(says(error, self._door), 300)
            self._tell(Note("error", "That did not work", said, Action("page"), (),
                            icon=Icon("idle", failed=True)))  # fmt: skip
        self._changed()

    def _carry_out(self, verb: str, what: Any) -> None:
        if verb in _DIALOGS:
            self._dialog(verb)
        elif verb in ("page", "output"):
            self._open_page(what)
        elif verb == "seen":
            self._seen(None)
        elif verb in ("start", "halt", "restart"):
            {"start": self._service.start, "halt": self._service.stop,
             "restart": self._service.restart}[verb]()  # fmt: skip
        else:
            with closing(self._door.client()) as client:
                self._ask(client, verb, what)

    def _ask(self, client: RemoteClient, verb: str, what: Any) -> None:
        match verb:
            case "stop":
                client.cancel(what)
            case "suspend":
                client.suspend(what)
            case "go on":
                client.suspend(what, paused=False)
            case "retry":
                client.retry(what)
                self._seen(what)
            case "fire":
                client.fire_schedule(what)
            case "pause schedule":
                client.pause_schedule(what)
            case "resume schedule":
                client.resume_schedule(what)
            case "pause":
                self._pause_all(client)
            case "resume":
                self._resume_all(client)
            case _:
                raise Refused(f"The tray knows no way to {verb!r}: use the page.")

    def _pause_all(self, client: RemoteClient) -> None:
        """Those that someone has paused by themselves stay so when all go on."""
        known = {queue.name: queue.paused for queue in client.queues()}
        # The usual queue comes to be with its first job, which is to wait, too.
        names = [
            name for name, paused in {client.config.queue: False, **known}.items() if not paused
        ]
        for name in names:
            client.queue(name, paused=True)
        self._kept.paused = names
        self._kept.save()

    def _resume_all(self, client: RemoteClient) -> None:
        paused = [queue.name for queue in client.queues() if queue.paused]
        ours = [name for name in paused if name in self._kept.paused]
        for name in ours or paused:
            client.resume(name)
        self._kept.paused = []
        self._kept.save()

    def _seen(self, job: int | None) -> None:
        if job is None:
            self._kept.unseen.clear()
        else:
            self._kept.unseen.discard(job)
        self._kept.save()

    # In processes of their own

    def _open_page(self, job: int | None) -> None:
        """The page lets a browser in by a code, which `svcq open` hands over."""
        self._seen(job)
        self._changed()
        command = [sys.executable, "-m", "svcq"]
        command += ["--system"] if self._door.whose == "machine" else []
        command += ["open", *([] if job is None else [str(job)])]
        ran = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_OPENING,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if ran.returncode:
            lines = ran.stderr.strip().splitlines() or ["The page could not be opened."]
            raise Refused(lines[-1].removeprefix("svcq: "))

    def _dialog(self, which: str) -> None:
        with self._lock:
            before = self._dialogs.get(which)
            if before is not None and not _has_ended(before):
                return  # it is open already
            command = [sys.executable, "-m", "svcq_tray.dialog", which]
            env = {**os.environ, "SVCQ_HOME": str(self._door.home)}
            if self._door.whose != "own":
                env["SVCQ_SOCKET"] = str(self._door.socket)
            self._dialogs[which] = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)


def _has_ended(dialog: subprocess.Popen[bytes]) -> bool:
    """One that was closed just now takes a moment."""
    with suppress(subprocess.TimeoutExpired):
        dialog.wait(_CLOSING)
    return dialog.returncode is not None
