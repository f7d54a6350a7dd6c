"""Telling of ends beyond the desktop: each target of the configuration in a thread of its own, off
the way that jobs take, again and again until it was told.

How far each target has been told is kept in the home: what ended while nobody could be reached is
told afterwards, at least once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Self

from svcq import host
from svcq.changes import Follower
from svcq.config import Config, Followed, Target
from svcq.ends import detail, headline, is_told, rule_of, summary, titles
from svcq.errors import NotFound, SvcqError
from svcq.jobs import FINISHED, Change, Job, State
from svcq.store import Store, open_store

FILE = "notify.json"
EXTRA = "apprise"
LOOK = 1.0
_TOGETHER = 3
"""More than so many at once are told as one."""
_TIMEOUT = 120.0
_FIRST_WAIT = 5.0
_LONGEST_WAIT = 600.0
_MOST_TRIES = 100
_MOST_LOOKED_AT = 1000


class Message(NamedTuple):
    title: str
    body: str
    failed: bool


class Announcer:
    """Tells while it is entered."""

    def __init__(
        self, config: Config, say: Callable[[str], None], first_wait: float = _FIRST_WAIT
    ) -> None:
        self._settings = Followed(config)
        self._say = say
        self._first_wait = first_wait
        self._leaving = threading.Event()
        self._marks = Marks(config.home)
        self._thread = threading.Thread(target=self._run, name="announcer")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        """Those of the settings as they are; with others, others."""
        while not self._leaving.is_set():
            config = self._settings.config
            ended = threading.Event()
            senders = []
            if config.targets and find_spec(EXTRA) is None:
                self._say("Nothing is told beyond the desktop: pip install svcq[notify].")
            elif config.targets:
                senders = [self._begin(config, target, ended) for target in config.targets]
            while not self._leaving.wait(LOOK) and not self._changed(config):
                pass
            ended.set()
            for sender in senders:
                sender.join()

    def _changed(self, before: Config) -> bool:
        with suppress(SvcqError):  # whoever keeps the workers tells of a mistake in the file
            self._settings.changed()
        now = self._settings.config
        return (now.targets, now.store) != (before.targets, before.store)

    def _begin(self, config: Config, target: Target, ended: threading.Event) -> threading.Thread:
        sender = Sender(config, target, self._marks, self._say, ended, self._first_wait)
        thread = threading.Thread(target=sender.run, name=f"announce-{target.name}", daemon=True)
        thread.start()
        return thread


class Marks:
    """How far each target has been told."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE
        self._lock = threading.Lock()

    def get(self, name: str) -> int | None:
        found = self._read().get(name)
        return found if isinstance(found, int) else None

    def put(self, name: str, cursor: int) -> None:
        with self._lock:
            host.write_private(self._file, json.dumps({**self._read(), name: cursor}))

    def _read(self) -> dict[str, object]:
        with suppress(OSError, ValueError):
            said = json.loads(self._file.read_text())
            if isinstance(said, dict):
                return said
        return {}


class Sender:
    """One target."""

    def __init__(
        self,
        config: Config,
        target: Target,
        marks: Marks,
        say: Callable[[str], None],
        ended: threading.Event,
        first_wait: float,
    ) -> None:
        self._config = config
        self._target = target
        self._marks = marks
        self._say = say
        self._ended = ended
        self._first_wait = first_wait

    def run(self) -> None:
        said = ""
        while not self._ended.is_set():
            try:
                with closing(open_store(self._config)) as store:
                    self._follow(store)
            except (SvcqError, OSError) as error:
                if str(error) != said:
                    said = str(error)
                    self._say(f"Target {self._target.name} is told nothing just now: {said}")
                self._ended.wait(LOOK)

    def _follow(self, store: Store) -> None:
        follower = Follower(store, self._marks.get(self._target.name))
        self._marks.put(self._target.name, follower.cursor)
        while not self._ended.is_set():
            changes = follower.next(LOOK)
            if not changes:
                continue
            for message in messages(self._wanted(store, changes)):
                if not self._tell(message):
                    return
            self._marks.put(self._target.name, follower.cursor)

    def _wanted(self, store: Store, changes: Sequence[Change]) -> list[Job]:
        ended = {change.job for change in changes if change.kind in FINISHED}
        queues = {queue.name: queue.options for queue in store.queues()} if ended else {}
        found = []
        for number in sorted(ended)[:_MOST_LOOKED_AT]:
            with suppress(NotFound):
                job = store.get(number)
                if is_for(self._target, job, queues.get(job.queue)):
                    found.append(job)
        return found

    def _tell(self, message: Message) -> bool:
        """Until all addresses have it; False when we are to end before."""
        left, wait = list(self._target.urls), self._first_wait
        for _ in range(_MOST_TRIES):
            failed = post(left, message)
            if not failed:
                return True
            left = [left[n] for n, _ in failed]
            if self._ended.wait(wait):
                return False
            wait = min(2 * wait, _LONGEST_WAIT)
        shown = ", ".join(map(masked, left))
        self._say(f"Target {self._target.name} was not told of {message.title!r} ({shown}).")
        return True


def is_for(target: Target, job: Job, options: Mapping[str, Any] | None) -> bool:
    if target.queues and job.queue not in target.queues:
        return False
    of_queue = rule_of(options)
    if target.tell == "asked":
        return is_told(job, "all" if of_queue == "all" else "never")
    return is_told(job, "all" if target.tell == "all" else of_queue)


def messages(jobs: Sequence[Job]) -> list[Message]:
    """One for each end; many together in one."""
    if len(jobs) <= _TOGETHER:
        return [Message(headline(job), detail(job), job.state is State.DEAD) for job in jobs]
    counts = [sum(job.state is state for job in jobs) for state in _ENDS]
    ordered = sorted(jobs, key=lambda job: job.state is not State.DEAD)
    return [Message(summary(*counts), titles(ordered, 10), counts[0] > 0)]


_ENDS = (State.DEAD, State.COMPLETED, State.CANCELLED)


def post(urls: Sequence[str], message: Message) -> list[tuple[int, str]]:
    """Send it, in a process of its own; which of the addresses did not work, and why."""
    said = {"urls": list(urls), **message._asdict()}
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "svcq.service.post"], input=json.dumps(said), text=True,
            capture_output=True, timeout=_TIMEOUT, check=True,
        )  # fmt: skip
        return [(int(n), str(why)) for n, why in json.loads(ran.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError):
        return [(n, "Apprise did not answer") for n in range(len(urls))]


def masked(url: str) -> str:
    """All of an address but its kind may be secret."""
    return f"{url.partition('://')[0]}://********"
