"""Adding jobs: the part of the client that the quickest command, `svcq add`, is made of."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from svcq.config import load
from svcq.config.check import checked
from svcq.environment import is_text, rescued
from svcq.errors import InvalidArguments, InvalidInput, shown
from svcq.policy import (
    OPTION_NAMES,
    NewJob,
    Options,
    clean_text,
    encode_json,
    make_plan,
    read_options,
)
from svcq.store import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any, Self

    import psycopg

    from svcq.config import Config
    from svcq.store import Added

    Lent = sqlite3.Connection | psycopg.Connection[Any]
    """The caller's own connection, as the store's engine wants it."""


class Adder:
    """Opens a store and adds jobs to it."""

    def __init__(
        self,
        *,
        home: str | os.PathLike[str] | None = None,
        store: str | os.PathLike[str] | None = None,
        config: Config | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        config = config or load(home)
        if store is not None:
            config = config._replace(store=_store_address(store))
        self.config = config
        self.store = open_store(config, clock=clock)
        self._connection: Lent | None = None
        self._owner = account()
        self._sees_directories = True

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_command(self, command: Sequence[str] | str, /, **options: Any) -> NewJob:
        """A command, checked, for `add`."""
        said = self._in_directory(read_options(options))
        plan = make_plan(said, default_queue=self.config.queue, owner=self._owner)
        return NewJob(plan, command=encode_command(command, self.config.jobs.max_payload))

    def new_task(
        self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], /, **options: Any
    ) -> NewJob:
        """A call of a task by its name alone, for `add`: nobody here can check the arguments.

        What its declaration says holds, as far as a worker has told of it; what it says of runs
        also if one does so later.
        """
        said = read_options(options).over(self._declared(clean_text(task, "task name")))
        plan = make_plan(said, default_queue=self.config.queue, owner=self._owner)
        text = encode_json((args, kwargs), f"arguments of {task}", self.config.jobs.max_payload)
        return NewJob(plan, task, text)

    def _in_directory(self, said: Options) -> Options:
        return with_directory(said, look=self._sees_directories)

    def _declared(self, task: str) -> Options:
        import json

        words = json.loads(self.store.declared(task).options)
        # A newer program may have written options this one does not know.
        return Options(**{name: value for name, value in words.items() if name in OPTION_NAMES})

    def add(self, jobs: Sequence[NewJob]) -> list[Added]:
        """Queue jobs of any kind, all or none, in one transaction."""
        return self.store.enqueue(jobs, self._connection)


def encode_command(command: Sequence[str] | str, limit: int) -> str:
    """A command as the store keeps it."""
    words = [command] if isinstance(command, str) else command
    if not isinstance(words, Sequence) or not words or not all(isinstance(w, str) for w in words):
        raise InvalidInput(
            f"The command {shown(command)} is not a command: "
            "give a list of words, or a line of text."
        )
    if not words[0].strip():
        raise InvalidInput(f"The command {shown(command)} is empty: name a program to run.")
    if foreign := next((word for word in words if not is_text(word)), None):
        raise InvalidArguments(
            f"The command holds {shown(foreign)}, which is not UTF-8 text: name such a file by a "
            "pattern in a line for the shell, as in 'wc caf*', or rename it."
        )
    return encode_json(
        command if isinstance(command, str) else list(words), "words of the command", limit
    )


def with_directory(options: Options, *, look: bool = True) -> Options:
    """A command runs where it was queued from; a directory that is not there is refused now."""
    try:
        given = os.getcwd() if options.cwd is None else os.fspath(options.cwd)
        directory = os.path.abspath(given)
    except FileNotFoundError:
        raise InvalidInput(
            "The current directory was removed: go to one that exists, or name it as cwd."
        ) from None
    except TypeError:
        raise InvalidInput(f"The directory {options.cwd!r} is not a path: give one.") from None
    if look and not os.path.isdir(given):
        wanted = directory if given else given
        raise InvalidInput(f"There is no directory {shown(wanted)}: name one that exists.")
    return options._replace(cwd=rescued(directory))


def _store_address(store: str | os.PathLike[str]) -> str:
    given = os.fspath(store) if isinstance(store, os.PathLike) else store
    address = str(checked("store", given, "Client(store=...)"))
    return address if "://" in address else os.path.abspath(address)


def account() -> str | None:
    # As getpass does it, which brings the terminal along.
    named = os.environ.get("LOGNAME") or os.environ.get("USER")
    if named:
        return named
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a bare number, as containers have it
        return None
