"""Runner processes, seen from the worker: started, fed, watched, replaced."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from svcq.config import Project
from svcq.host import processes
from svcq.host.files import open_log
from svcq.host.lines import Line
from svcq.worker.nursery import NOWHERE, OUT_OF_MEMORY, Nursery
from svcq.worker.trees import Tree

RUNNER = Path(__file__).with_name("runner.py")
PROTOCOL = 1
LAST_WORDS = 1.0  # seconds between the end of a runner and the end of its socket


class Limits(NamedTuple):
    """What sets a runner apart from others: it holds for all that the process does."""

    nice: int | None = None
    cpus: int | None = None
    memory: int | None = None


UNLIMITED = Limits()


class Runner(asyncio.Protocol):
    """One runner process and the calls it holds, by key."""

    def __init__(
        self,
        project: Project,
        mode: str,
        limits: Limits,
        marker: str,
        brand: int,
        nursery: Nursery,
        on_message: Callable[[Runner, Any], None],
    ) -> None:
        self.project = project
        self.mode = mode
        self.limits = limits
        self.ready = False
        self.was_ready = False
        self.doomed = False  # we have begun to kill it
        self.kernel_limits = False  # its memory
        self._marker = marker
        self._brand = brand
        self._nursery = nursery
        self._place = NOWHERE
        self._cut = asyncio.Event()
        self.keys: dict[str, None] = {}  # in the order in which they were sent
        self._on_message = on_message
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self.child: processes.Child | None = None

    async def start(
        self, env: Mapping[str, str], log: Path, worker_lock: int | None, max_payload: int
    ) -> None:
        await self._nursery.free()
        output = open_log(log)
        line = Line()
        inherit = [*line.inherit]
        if worker_lock is not None:
            # Whoever has it open is one of ours: so are found those that a task forks.
            inherit.append(worker_lock)
        # With these limits it is started by a thread that ends at once: it must not end with it.
        in_thread = self.limits.nice is not None or self.limits.cpus is not None
        dies_with = 0 if in_thread else os.getpid()
        try:
            self.child = processes.start_child(
                [self.project.python, str(RUNNER), line.word, str(dies_with)],
                cwd=self.project.path[0] if self.project.path else None,
                env={**env, processes.MARKER: self._marker},
                output=output,
                inherit=inherit,
                stdin=line.stdin,
                nice=self.limits.nice,
                cpus=self.limits.cpus,
                brand=self._brand,
            )
        except BaseException:
            line.close()
            raise
        finally:
            os.close(output)
        self._place = self._nursery.born()
        if self.limits.nice is None:
            self.child.step_back()
        self._tree = Tree(self._marker, self.child.pid, None)
        if self.limits.memory is not None:
            pen = await self._place.settled()
            self.kernel_limits = pen is not None and pen.limit_memory(self.limits.memory)
        await self._open(line)
        self.send(
            {
                "hello": {
                    "protocol": PROTOCOL,
                    "mode": self.mode,
                    "path": self.project.path,
                    "import": self.project.imports,
                    "max_payload": max_payload,
                }
            }
        )

    async def _open(self, line: Line) -> None:
        """Have its end of the line, or see it end without one, which `ended` tells."""
        assert self.child is not None
        child = self.child
        try:
            ours = await asyncio.to_thread(line.taken, lambda: not child.ended.done())
        except ConnectionError:
            self._cut.set()
            return
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, sock=ours)

    def send(self, message: Mapping[str, Any]) -> None:
        if self._transport is not None:
            self._transport.write(json.dumps(message).encode() + b"\n")

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_message(self, json.loads(line))

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self.ready = False
        self._cut.set()

    async def ended(self) -> processes.Exit:
        """The end of the process, when all that it said has been heard.

        Either may come without the other: what a task forks keeps the socket open, and a task
        may close it.
        """
        assert self.child is not None
        ending = self.child.ended
        cut = asyncio.ensure_future(self._cut.wait())
        await asyncio.wait((ending, cut), return_when="FIRST_COMPLETED")
        await asyncio.wait((ending, cut), timeout=LAST_WORDS)
        cut.cancel()
        self.ready = False
        if not ending.done():
            await asyncio.to_thread(self.kill, ())
        return await ending

    def kill(self, markers: Iterable[str]) -> None:
        """End it with whatever its calls have started."""
        self._tree.pen = self._place.pen
        self._tree.kill()
        for marker in markers:
            Tree(marker, None, None).kill()

    def why_killed(self, code: int) -> str:
        """What there is to say of an end by SIGKILL that was none of ours."""
        if code not in processes.KILLED_BY_SYSTEM or self.doomed:
            return ""
        if not self._place.killed_for_memory():
            return ", which svcq did not send: often that is the system, out of memory"
        if self.kernel_limits and self.limits.memory is not None:
            return f"; it needed more than its {self.limits.memory >> 20:,} MiB of memory"
        return f"; {OUT_OF_MEMORY}"

    def forget_place(self) -> None:
        """Its processes are gone."""
        self._nursery.give_back(self._place)

    def memory(self) -> int:
        """The bytes that it and its children have in use."""
        return processes.resident_bytes(self._tree.look())

    def close(self) -> None:
        """Let it end by itself: its socket closes."""
        if self._transport is not None:
            self._transport.close()
