"""The client's second door: the same verbs, asked of the service.

For callers who do not own the store. Each verb of the table is sent as it was called, and checked
where it is carried out; the few that are more than a question and an answer stand below.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from svcq.adder import account, with_directory
from svcq.changes import Follower
from svcq.client import wire
from svcq.client.client import Client, JobId, check_found
from svcq.client.connection import Connection, LocalConnection
from svcq.client.verbs import VERBS, Verb
from svcq.config import Config
from svcq.config.load import build, default_home
from svcq.door import find_socket
from svcq.errors import InvalidInput, NotPermitted, WaitTimeout, shown
from svcq.jobs import FINISHED, Change, Job
from svcq.logs import Log, LogReader
from svcq.policy import NewJob, Options, read_options
from svcq.schedules import Schedule
from svcq.times import Duration, parse_duration
from svcq.words import words_of

if TYPE_CHECKING:
    from svcq.store import Added

_PAGE = 1000
_LONGEST_WAIT = 30  # seconds, of one question
# Who we are here, and not where the job runs.
_OURS = ("HOME", "USER", "LOGNAME", "MAIL", "SHELL")


class RemoteClient(Client):
    """A client of a service that someone else owns."""

    remote = True

    def __init__(
        self,
        *,
        home: str | os.PathLike[str] | None = None,
        socket: str | os.PathLike[str] | None = None,
        connection: Connection | None = None,
        **_: Any,
    ) -> None:
        found = find_socket(home, socket)
        self._door = connection or LocalConnection(Path(found or ""))
        self._home = os.fspath(home or default_home())
        self._owner = account()
        self._sees_directories = True
        self._connection = None
        self._like = {}

    def close(self) -> None:
        self._door.close()

    def __getattr__(self, name: str) -> NoReturn:
        if name == "store":
            raise NotPermitted(
                "Only the owner of a store can open it, or run its jobs: "
                "this is asked of the service, which does not do that for others."
            )
        raise AttributeError(name)

    @cached_property
    def config(self) -> Config:  # type: ignore[override]
        """The settings of the service, by which what we say is understood."""
        said = self._door.ask("GET", "/config")["settings"]
        return build(self._home, {key: one["value"] for key, one in said.items()})

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        verb = _fitting(name, arguments)
        path = verb.path.format_map(_Quoted(arguments))
        rest = {key: value for key, value in arguments.items() if f"{{{key}}}" not in verb.path}
        query = {key: rest.pop(key) for key in list(rest) if key in verb.query}
        body = None if verb.body is None else {key: wire.said(value) for key, value in rest.items()}
        return verb.answers.read(self._door.ask(verb.method, path, wire.said(query), body))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What no verb of the table says, such as how the service stands."""
        return self._door.ask(method, path, body=body)

    # Queueing

    def add(self, jobs: Sequence[NewJob]) -> list[Added]:
        body = {"jobs": [_words(new) for new in jobs]}
        said = self._door.ask("POST", "/jobs/batch", body=body, headers=_once())
        return [wire.ADDED.read(one) for one in said["jobs"]]

    def as_job(self, added: Added, new: NewJob) -> Job:
        del new
        return self.get(added.id)

    def _declared(self, task: str) -> Options:
        """For the service to know."""
        del task
        return Options()

    def schedule(self, name: str, what: Any = None, /, **said: Any) -> Schedule:
        options: Options = said.pop("options", None) or Options()
        if what is not None and hasattr(what, "said"):
            options = options.over(what.said)
            what.task.check_arguments(said.get("args", ()), said.get("kwargs") or {})
            said["task"] = what.task.name
        elif what is not None:
            said["command"] = what
            said["cwd"] = with_directory(read_options({"cwd": said.get("cwd")})).cwd
        body = {**said, "name": name, "options": options.said() or None}
        given = {key: wire.said(value) for key, value in body.items() if value is not None}
        made: Schedule = wire.SCHEDULE.read(self._door.ask("POST", "/schedules", body=given))
        return made

    # Watching

    def environment(self, job: JobId) -> dict[str, str] | None:
        found: dict[str, str] | None = self._call("environment", {"job": job, "masked": False})
        return found

    def schedule_environment(self, name: str) -> dict[str, str] | None:
        said = {"name": name, "masked": False}
        found: dict[str, str] | None = self._call("schedule_environment", said)
        return found

    def output(self, job: JobId, run: int) -> Log:
        return RemoteLog(self._door, self._id(job), run)

    def output_elsewhere(self, job: JobId, run: int) -> None:
        """The service has looked on other machines already."""

    def wait(self, job: JobId, timeout: Duration | None = None) -> Job:
        limit = None if timeout is None else parse_duration(timeout, "timeout") / 1000
        deadline = None if limit is None else time.monotonic() + limit
        follower = self.follow()
        while True:
            found = self.get(job)
            if found.state in FINISHED:
                return found
            left = float(_LONGEST_WAIT) if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeout(
                    f"Job {found.id} is still {found.state} after {timeout}: "
                    "wait longer, or ask why it has not ended."
                )
            until = time.monotonic() + left
            while time.monotonic() < until:
                news = follower.next(until - time.monotonic())
                if any(change.job == found.id for change in news):
                    break

    def changes(self, after: int = 0, *, limit: int = 1000) -> list[Change]:
        said = self._door.ask("GET", "/changes", {"after": after, "limit": limit})
        return [wire.CHANGE.read(one) for one in said["changes"]]

    def follow(self, after: int | None = None) -> Follower:
        return _RemoteFollower(self._door, after)

    def mark(self) -> tuple[int, int]:
        return int(self._door.ask("GET", "/changes/last")["n"]), 0

    def _id(self, job: JobId) -> int:
        return job.id if isinstance(job, Job) else self.get(job).id

    # Not for others

    def using(self, connection: Any) -> NoReturn:
        del connection
        raise _owners_alone("add jobs in a transaction of their own")

    def backup(self, target: Any, *, environments: bool = False) -> NoReturn:
        del target, environments
        raise _owners_alone("copy it")

    def export(self, *, environments: bool = False) -> NoReturn:
        del environments
        raise _owners_alone("export it")

    def import_lines(self, lines: Any) -> NoReturn:
        del lines
        raise _owners_alone("import into it")

    def acting_for(self, owner: str | None) -> NoReturn:
        del owner
        raise _owners_alone("act for others")

    # Last in the class: its name hides the built-in one from what follows.

    def list(self, **filters: Any) -> list[Job]:
        left, found = filters.pop("limit", 100), []
        while left > 0:
            size = min(left, _PAGE)
            page = self._call("list", {**_given(filters), "limit": size})
            found += page
            left -= size
            if len(page) < size:
                break
            filters["before"] = page[-1].id
        return found


def _owners_alone(what: str) -> NotPermitted:
    return NotPermitted(f"Only the owner of a store can {what}: ask them, or become that account.")


class _Quoted(dict[str, Any]):
    """The arguments as they stand in a path."""

    def __missing__(self, name: str) -> NoReturn:
        raise InvalidInput(f"There is no {name} given: give one.")

    def __getitem__(self, name: str) -> str:
        value = super().__getitem__(name)
        named = value.id if isinstance(value, Job) else getattr(value, "name", value)
        if isinstance(named, bool) or not isinstance(named, int | str):
            raise InvalidInput(f"The {name} {shown(value)} is neither a number nor a name.")
        # As the client has it for the store: no job has such a name.
        text = check_found(named) if name == "job" and isinstance(named, str) else str(named)
        return quote(text, safe="")


def _fitting(name: str, arguments: Mapping[str, Any]) -> Verb:
    """Of those with the name, the one that takes just these arguments."""
    for verb in VERBS:
        named = {key for key in arguments if f"{{{key}}}" in verb.path}
        known = named | verb.query.keys() | (verb.body or {}).keys()
        fits = verb.path.count("{") == len(named) and (verb.rest or arguments.keys() <= known)
        if verb.name == name and fits and not (verb.rest and arguments.keys() == named):
            return verb
    same = [verb for verb in VERBS if verb.name == name]
    return same[-1]


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value is not None}


def _words(new: NewJob) -> dict[str, Any]:
    words = words_of(new)
    if "env" in words:
        words["env"] = {
            key: value
            for key, value in words["env"].items()
            if key not in _OURS or os.environ.get(key) != value
        }
    return words


def _once() -> dict[str, str]:
    """So that it can be said again when the answer is lost."""
    return {"Idempotency-Key": token_urlsafe(18)}


def _verb(name: str) -> Callable[..., Any]:
    plain = getattr(Client, name)
    signature = inspect.signature(plain)

    @wraps(plain)
    def ask(self: RemoteClient, *args: Any, **kwargs: Any) -> Any:
        bound = dict(signature.bind(self, *args, **kwargs).arguments)
        del bound["self"]
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound |= bound.pop(parameter.name, {})
            elif parameter.name in bound and bound[parameter.name] is parameter.default:
                del bound[parameter.name]
        if bound.get("cwd") is not None:
            bound["cwd"] = with_directory(read_options({"cwd": bound["cwd"]})).cwd
        return self._call(name, bound)

    return ask


for _name in {verb.name for verb in VERBS} - RemoteClient.__dict__.keys():
    setattr(RemoteClient, _name, _verb(_name))


class _RemoteFollower(Follower):
    """Changes from a cursor on, asked of the service, which answers when there are any."""

    def __init__(self, door: Connection, cursor: int | None) -> None:
        self._door = door
        self.missed = False
        self._gaps = []  # the service keeps them open
        last = door.ask("GET", "/changes/last")["n"] if cursor is None else cursor
        self.newest = int(last)

    def next(self, timeout: float, limit: int = 1000) -> list[Change]:
        deadline = time.monotonic() + timeout
        while True:
            wait = max(0, min(_LONGEST_WAIT, round(deadline - time.monotonic())))
            said = self._door.ask(
                "GET", "/changes", {"after": self.cursor, "limit": limit, "wait": wait}
            )
            found = [wire.CHANGE.read(one) for one in said["changes"]]
            self.missed = self.missed or said["missed"]
            if found:
                self.newest = found[-1].seq
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            if left < 1:
                time.sleep(min(left, 0.2))


class RemoteLog(Log):
    def __init__(self, door: Connection, job: int, run: int) -> None:
        self.path = None
        self._door = door
        self._place = f"/jobs/{job}/output"
        self._run = run

    def size(self) -> int | None:
        size: int | None = self._ask()["size"]
        return size

    def start_of_tail(self, lines: int) -> int:
        return int(self._ask(tail=lines)["start"])

    def _ask(self, **query: Any) -> Any:
        if not self._run:
            return {"size": None, "start": 0}
        return self._door.ask("GET", f"{self._place}/place", {"run": self._run, **query})

    def reader(self, position: int = 0) -> LogReader:
        return _RemoteReader(self, position)

    def since(self, position: int) -> tuple[int, Iterator[bytes]]:
        """What was written after a position, and where that ends."""
        query = {"run": self._run, "start": position}
        response, blocks = self._door.read(self._place, query, {})
        return int(response.headers.get("svcq-end", position)), blocks


class _RemoteReader(LogReader):
    def __init__(self, log: RemoteLog, position: int) -> None:
        super().__init__(Path(), position)
        self._log = log

    def read(self) -> Iterator[bytes]:
        size = self._log.size()
        if size is None or size == self.position:
            return
        end, blocks = self._log.since(self.position)
        yield from blocks
        self.position = end
