"""Linux: our children, from their start to their end, and what they leave behind."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from svcq.host.linux_trees import has_brand

if TYPE_CHECKING:
    import asyncio

# Jobs are work in the background.
BELOW_NORMAL = 5


class Exit(NamedTuple):
    """How a process ended: an exit code, negative for a signal; what it and its children used.

    The peak counts from the fork on, when it still was a copy of us: None where it is no higher
    than our own, and so may not be its.
    """

    code: int
    cpu_ms: int
    peak_bytes: int | None


class Child:
    """A process of ours in a session of its own. `ended` tells of its end, without a thread and
    without asking."""

    known: ClassVar[set[int]] = set()  # the pids of those that have not been waited for

    def __init__(self, pid: int) -> None:
        # Whoever starts processes has it by now; `svcq why`, which starts none, need not wait.
        from asyncio import get_running_loop

        self.pid = pid
        loop = get_running_loop()
        self.ended: asyncio.Future[Exit] = loop.create_future()
        try:
            _ends_of(loop).expect(self)
        except OSError:
            # No handle is left for it: a process that nobody hears of must not go on.
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        Child.known.add(pid)

    def step_back(self) -> None:
        """Whoever sits at the machine goes first: below the usual priority, with its group."""
        with suppress(OSError):  # it may have ended already
            if os.getpriority(os.PRIO_PROCESS, self.pid) < BELOW_NORMAL:
                os.setpriority(os.PRIO_PGRP, self.pid, BELOW_NORMAL)

    def bury(self) -> None:
        """It has ended."""
        _, status, used = os.wait4(self.pid, 0)
        Child.known.discard(self.pid)
        cpu_ms = round((used.ru_utime + used.ru_stime) * 1000)
        if not self.ended.done():
            code = os.waitstatus_to_exitcode(status)
            self.ended.set_result(Exit(code, cpu_ms, _peak_of_child(used.ru_maxrss)))


class _Ends:
    """Of all children of one event loop, which waits for one descriptor in place of one for each:
    to tell it of each costs more than to wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._poll = select.epoll()
        self._children: dict[int, Child] = {}  # by the descriptor that tells of its end
        loop.add_reader(self._poll.fileno(), self._some_have_ended)

    def expect(self, child: Child) -> None:
        descriptor = os.pidfd_open(child.pid)
        try:
            self._poll.register(descriptor, select.EPOLLIN)
        except OSError:
            os.close(descriptor)
            raise
        self._children[descriptor] = child

    def _some_have_ended(self) -> None:
        for descriptor, _ in self._poll.poll(0):
            child = self._children.pop(descriptor)
            self._poll.unregister(descriptor)
            os.close(descriptor)
            child.bury()


_ends: dict[asyncio.AbstractEventLoop, _Ends] = {}


def _ends_of(loop: asyncio.AbstractEventLoop) -> _Ends:
    if loop not in _ends:
        for closed in [one for one in _ends if one.is_closed()]:
            del _ends[closed]
        _ends[loop] = _Ends(loop)
    return _ends[loop]


def adopt_orphans() -> None:
    """From now on, what our children leave behind when they end is a child of ours, not init's."""
    import ctypes

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def left_behind(brand: int) -> bool:
    """Whether one of those is branded so: a sign that costs little, where a look at all processes
    costs more than most commands."""
    return any(has_brand(pid, brand) for pid in bury_orphans())


def bury_orphans() -> list[int]:
    """Wait for those that have ended; the pids of the others."""
    return [pid for pid in _orphans() if not _has_been_buried(pid)]


def _orphans() -> list[int]:
    """Our children that we did not start: what a thread of ours may run is of our own session."""
    try:
        children = os.pread(_list_of_children(os.getpid()), 1 << 16, 0).split()
    except OSError:  # not every kernel tells
        return []
    unknown = {int(pid) for pid in children}.difference(Child.known)
    return [pid for pid in unknown if _session_of(pid) not in (None, os.getsid(0))]


@cache
def _list_of_children(pid: int) -> int:
    """Open for good: a look at it is cheap, to open it is not. Whoever is forked has another."""
    return os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC)


def _session_of(pid: int) -> int | None:
    with suppress(ProcessLookupError):
        return os.getsid(pid)
    return None


def _has_been_buried(pid: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return True


def _peak_of_child(peak: int) -> int | None:
    """In bytes, of what the kernel says in KiB; None where it may be what the child had of us."""
    if peak <= _own_peak(int(time.monotonic())) + _INEXACT:
        return None
    # We may have grown since we looked.
    return peak * 1024 if peak > own_peak() + _INEXACT else None


_INEXACT = 512  # KiB: the kernel counts by processor, and adds up now and then


def own_peak() -> int:
    """In KiB. What getrusage says would count our own parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


@lru_cache(1)
def _own_peak(_: int) -> int:
    """Looked up once a second."""
    return own_peak()
