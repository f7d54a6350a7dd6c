"""Windows: svcq as a service, of a user's own session or of the machine.

A user's is a task that starts with their log-on; the machine's is a service of Windows, as an
account of its own. The workers of both are detached processes, which no end of the service touches.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from svcq.errors import Refused, Unreachable
from svcq.host.standing import Standing, Trouble
from svcq.host.windows_account import acting as acting_as_account
from svcq.host.windows_account import become as become_account
from svcq.host.windows_processes import (
    ask_process_to_end,
    lock_is_held,
    spawn_detached,
)
from svcq.host.windows_trees import process_born

__all__ = [
    "Manager",
    "acting_as_account",
    "answer",
    "become_account",
    "manager",
    "notify",
]

PATIENCE = 120.0  # seconds: a service that stops may have jobs to put back
_LOOK = 0.1
_LOCK = "service.lock"
_LEAVING = "service.leaving"
"""Written for a service that is to end: whether it will be started anew at once."""


class Manager(ABC):
    """What starts svcq here, and what svcq is to it."""

    name = "Windows"
    system: bool
    option: str  # what a command of svcq needs to mean this one
    way_to_units = "svcq restart"
    _where: str

    @abstractmethod
    def install(self, python: str, env: Mapping[str, str]) -> list[str]:
        """Register the service, as what this Python has of svcq; what was done, in sentences."""

    @abstractmethod
    def uninstall(self) -> list[str]:
        """Remove what `install` has made; data stays."""

    @abstractmethod
    def purge(self, home: Path) -> list[str]:
        """Remove the data too."""

    @abstractmethod
    def start(self) -> None:
        """Let it run; it does when this returns."""

    @abstractmethod
    def stop(self) -> None:
        """Let it end, and wait for that."""

    @abstractmethod
    def is_installed(self) -> bool:
        """Whether `install` has been here."""

    @abstractmethod
    def standing(self) -> Standing:
        """How the service is."""

    @abstractmethod
    def troubles(self, python: str) -> Iterator[Trouble]:
        """What is wrong with it, compared with what `install` would make."""

    @abstractmethod
    def host(self, run: Callable[[], int]) -> int:
        """Be the service, in the process that Windows has started for it."""

    @abstractmethod
    def home(self) -> Path | None:
        """The home of the service that is installed."""

    def use_account(self, name: str) -> None:
        """Have the service run as another account than its own."""
        raise Refused(
            f"A service of your own cannot run as {name}: add --system, or drop --account."
        )

    def restart(self) -> None:
        self.need_right("start anew")
        if self.standing().running:
            self._leave_word("restart")
            self.stop()
        self.start()

    def end_all(self) -> None:
        """Stop the service; its workers end as they are asked to by the store."""
        if self.standing().running:
            self.stop()

    def need_right(self, doing: str) -> None:
        """Refuse what cannot be done to a service that is not there."""
        if not self.is_installed():
            raise Refused(
                f"svcq is not installed as a service {self._where}, so there is nothing to "
                f"{doing}: run svcq install{self.option}, or svcq up."
            )

    def absence(self) -> str | None:
        """Why there is nobody to run a service, if so."""
        return None

    def why_leaving(self) -> Literal["stop", "restart", "down"]:
        """Why it is asked to end: for itself alone, to be started anew, or because the session or
        the machine ends."""
        if ending.is_session_over:
            return "down"
        home = os.environ.get("SVCQ_HOME")
        if home is None:
            return "stop"
        word = Path(home, _LEAVING)
        with suppress(OSError):
            said = word.read_text()
            word.unlink()
            return "restart" if said == "restart" else "stop"
        return "stop"

    def _leave_word(self, word: str) -> None:
        home = self.home()
        if home is not None:
            with suppress(OSError):
                (home / _LEAVING).write_text(word)

    def start_worker(
        self, program: Sequence[str], env: Mapping[str, str], log: Path, number: int, /
    ) -> int | None:
        """Start a worker that outlives the service; its pid."""
        del number
        return spawn_detached(program, log=log, env=env)

    def is_sandboxed(self) -> bool:
        """Whether this process may do less than its account may."""
        return False

    def is_inside(self, pid: int) -> bool:
        """Windows ends nothing with a service but its own process."""
        del pid
        return False


class Ending:
    """What a service that runs here has heard of its own end."""

    def __init__(self) -> None:
        self.is_session_over = False

    def session_over(self) -> None:
        self.is_session_over = True
        ask_process_to_end(os.getpid())


ending = Ending()


def manager(*, system: bool = False, linger: bool = True) -> Manager:
    """Of the whole machine, or of the user who asks; that one's goes with their session."""
    if system:
        from svcq.host.windows_system import SystemManager

        return SystemManager()
    from svcq.host.windows_user import UserManager

    return UserManager(linger=linger)


def answer(log: Path) -> None:
    """Nothing to do: nobody has to be told who a worker is."""
    del log


_hear: Callable[[str], None] = lambda _: None  # noqa: E731 (a name for what is replaced below)


def notify(text: str) -> None:
    """Tell whoever started us how we are."""
    _hear(text)


def tell(hear: Callable[[str], None]) -> None:
    """Have someone hear what is notified in this process."""
    global _hear  # noqa: PLW0603 (a process is one service)
    _hear = hear


# A service told by its home


def holder(home: Path) -> int | None:
    """The pid of the service of a home, if one runs."""
    lock = home / _LOCK
    with suppress(OSError, ValueError):
        if lock_is_held(lock):
            pid = int(lock.read_text())
            return pid if process_born(pid) is not None else None
    return None


def wait_until(holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise Unreachable(f"{what} within {patience:g} s: svcq log --service may say why.")
        time.sleep(_LOOK)
