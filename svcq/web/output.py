"""The output of a job: whole, by ranges of bytes, or as it is written.

It is read from its file as it is asked for: nothing of it is kept, however long it is and however
slowly someone reads.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svcq.client import Client
from svcq.client.verbs import PREFIX, whole
from svcq.errors import NotFound
from svcq.jobs import FINISHED, Job
from svcq.logs import LogReader, log_file, open_plain_file, read_log, start_of_tail
from svcq.web.api import encoded, json_response
from svcq.web.body import read_query
from svcq.web.desk import Desk
from svcq.web.growth import Growth
from svcq.web.hub import INTERVAL, PING, Hub
from svcq.web.problems import Problem
from svcq.web.routes import Asked, Route
from svcq.web.stream import PING as PING_EVENT
from svcq.web.stream import EventStream, Streams, event

RUN = whole(1, 1 << 31)
POSITION = whole(0, 1 << 53)
OUTPUT_QUERY = {"run": RUN, "tail": whole(0, 100_000), "start": POSITION}
PLACE_QUERY = {"run": RUN, "tail": whole(0, 100_000)}
FOLLOW_QUERY = {"run": RUN, "tail": whole(0, 10_000, 200)}
_BLOCK = 64 << 10
_FAR_BEHIND = 4 << 20  # bytes; a follower that is further behind is taken to the end
_SEND_PATIENCE = 30.0
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class _Place(NamedTuple):
    """A run of a job and its file."""

    job: Job
    run: int
    file: Path


def routes(desk: Desk, hub: Hub, streams: Streams) -> list[Route]:
    growth = Growth()

    async def output(asked: Asked) -> Response:
        said = read_query(asked.request, OUTPUT_QUERY)
        place = await desk.look(lambda client: _place(client, asked.path["job"], said.get("run")))
        size = _size(place.file)
        if size is None:
            return await _from_elsewhere(desk, place, said) or await _kept(desk, place)
        asked_range = asked.request.headers.get("range")
        if asked_range is not None:
            return _part(place.file, size, asked_range)
        start = said.get("start", 0)
        if "tail" in said:
            start = await asyncio.to_thread(start_of_tail, place.file, said["tail"])
        return _Blocks(read_log(place.file, start, size), more={"svcq-end": str(size)})

    async def where(asked: Asked) -> Response:
        said = read_query(asked.request, PLACE_QUERY)
        place = await desk.look(lambda client: _place(client, asked.path["job"], said.get("run")))
        return json_response(encoded(await asyncio.to_thread(_measured, place, said.get("tail"))))

    async def follow(asked: Asked) -> Response:
        said = read_query(asked.request, FOLLOW_QUERY)
        place = await desk.look(
            lambda client: _place(client, asked.path["job"], said.get("run"), 1)
        )
        run, position = _resume_from(asked.request, place)
        if position is None:
            position = await asyncio.to_thread(_tail_of, place.file, said.get("tail", 200))
        following = _Following(desk, hub, growth, place.job, run, position)
        return EventStream(streams, following.events())

    return [
        Route("GET", f"{PREFIX}/jobs/{{job}}/output", output),
        Route("GET", f"{PREFIX}/jobs/{{job}}/output/place", where),
        Route("GET", f"{PREFIX}/jobs/{{job}}/output/stream", follow),
    ]


def _place(client: Client, name: str, run: int | None, first: int = 0) -> _Place:
    job = client.get(name)
    number = run or job.run or first
    if run is not None and run > job.run:
        had = f"{job.run} of them" if job.run else "none yet"
        raise NotFound(f"Job {job.id} has no run {run}: it has {had}.")
    if not number:
        raise NotFound(f"Job {job.id} has not run yet: it has no output.")
    return _Place(job, number, log_file(client.config.home, job.id, number))


def _measured(place: _Place, tail: int | None) -> dict[str, Any]:
    """How long it is, and where its last lines begin; nothing where it is not here."""
    size = _size(place.file)
    start = 0 if size is None or tail is None else start_of_tail(place.file, tail)
    return {"run": place.run, "size": size, "start": start}


def _size(file: Path) -> int | None:
    """None where it is not here, or where something else has been put in its place."""
    try:
        status = file.lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


async def _from_elsewhere(desk: Desk, place: _Place, said: Mapping[str, Any]) -> Response | None:
    """The whole of what another machine keeps, where its service lets us have it."""
    found = await desk.take_time(lambda client: client.output_elsewhere(place.job, place.run))
    if found is None or found.log is None:
        return None
    log, lines = found.log, said.get("tail")
    start = said.get("start", 0)
    if lines is not None:
        start = await asyncio.to_thread(log.start_of_tail, lines)
    return _Blocks(log.read(start), more={"svcq-host": found.host})


async def _kept(desk: Desk, place: _Place) -> Response:
    """What the store has of a run whose file is not here: its last lines."""
    runs = await desk.look(lambda client: client.runs(place.job))
    text = next((run.tail for run in runs if run.run == place.run and run.tail), "")
    headers = {"svcq-output": "last-lines" if text else "none"}
    return Response(text.encode("utf-8", "replace"), media_type="text/plain", headers=headers)


# By ranges of bytes


def _part(file: Path, size: int, asked: str) -> Response:
    """One range, as RFC 9110 has it; where the middle was dropped there are zero bytes."""
    found = _RANGE.fullmatch(asked.strip())
    if found is None or found[1] == found[2] == "":
        raise Problem(400, f"The range {asked[:50]!r} is not one of bytes, such as bytes=0-999.")
    if found[1]:
        first, last = int(found[1]), min(int(found[2] or size), size - 1)
    else:
        first, last = max(size - int(found[2]), 0), size - 1
    if not size and not found[1] and int(found[2]):
        return _Blocks(iter(()))  # its last bytes are none, which a part cannot say
    if first > last:
        headers = {"content-range": f"bytes */{size}"}
        raise Problem(
            416, f"The output has {size:,} bytes: ask for some of those.", headers=headers
        )
    headers = {
        "content-range": f"bytes {first}-{last}/{size}",
        "content-length": str(last - first + 1),
        "accept-ranges": "bytes",
    }
    return _Blocks(_bytes_of(file, first, last + 1), 206, headers)


def _bytes_of(file: Path, start: int, end: int) -> Iterator[bytes]:
    with open(open_plain_file(file), "rb") as opened:
        opened.seek(start)
        while start < end and (block := opened.read(min(_BLOCK, end - start))):
            start += len(block)
            yield block


class _Blocks(Response):
    """Bytes read as they are sent."""

    def __init__(
        self,
        blocks: Iterator[bytes],
        status: int = 200,
        headers: dict[str, str] | None = None,
        more: dict[str, str] | None = None,
    ) -> None:
        super().__init__(status_code=status, media_type="text/plain", headers=headers)
        if headers is None:
            del self.headers["content-length"]
            self.headers["accept-ranges"] = "bytes"
        self.headers.update(more or {})
        self._blocks = blocks

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        if scope["method"] != "HEAD":
            while (block := await asyncio.to_thread(next, self._blocks, None)) is not None:
                try:
                    async with asyncio.timeout(_SEND_PATIENCE):
                        await send({"type": "http.response.body", "body": block, "more_body": True})
                except TimeoutError:
                    scope["connection"].drop()
                    return
        await send({"type": "http.response.body", "body": b""})


# As it is written


def _tail_of(file: Path, lines: int) -> int:
    try:
        return start_of_tail(file, lines)
    except OSError:
        return 0


def _resume_from(request: Request, place: _Place) -> tuple[int, int | None]:
    """The run and the position to go on from; no position where nothing was seen yet."""
    run, _, position = request.headers.get("last-event-id", "").partition(":")
    if all(one.isascii() and one.isdigit() and len(one) < 19 for one in (run, position)):
        return min(int(run), place.job.run), int(position)
    return place.run, None


class _Following:
    """One job, from a place in its output on, through its attempts, until it has ended."""

    def __init__(
        self, desk: Desk, hub: Hub, growth: Growth, job: Job, run: int, position: int
    ) -> None:
        self._desk = desk
        self._hub = hub
        self._growth = growth
        self._job = job
        self._begin(run, position)

    def _begin(self, run: int, position: int) -> None:
        self._run = run
        home = self._desk.settings.now().home
        self._reader = LogReader(log_file(home, self._job.id, run), position)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def events(self) -> AsyncIterator[bytes]:
        async with self._hub.watching(self._job.id) as changed:
            yield self._event("run", {"run": self._run, "position": self._reader.position})
            while True:
                # The look at the job comes first: what has ended has written all it had to.
                changed.clear()
                self._job = await self._desk.look(lambda client: client.get(self._job.id))
                while True:
                    async for one in self._news():
                        yield one
                    if self._over() or changed.is_set():
                        break
                    if not await self._wait(changed):
                        yield PING_EVENT
                if not self._over():
                    continue
                if self._job.run <= self._run:
                    break
                self._begin(self._run + 1, 0)
                yield self._event("run", {"run": self._run, "position": 0})
            yield self._event("end", {"state": self._job.state.value, "run": self._run})

    def _over(self) -> bool:
        """Whether this run writes no more."""
        if self._job.run > self._run:
            return True
        return self._job.state in FINISHED

    async def _news(self) -> AsyncIterator[bytes]:
        reader = self._reader
        behind = (_size(reader.path) or 0) - reader.position
        if behind > _FAR_BEHIND:
            skipped = behind - _BLOCK
            reader.position += skipped
            self._decoder.reset()
            yield self._event("skipped", {"bytes": skipped})
        while blocks := await asyncio.to_thread(self._read):
            text = "".join(self._decoder.decode(block) for block in blocks)
            if text:
                yield self._event("output", {"text": text})
            await asyncio.sleep(INTERVAL)

    def _read(self) -> list[bytes]:
        """At most a block, and what is told of a part that was dropped before it."""
        found: list[bytes] = []
        with suppress(OSError):
            for block in self._reader.read():
                found.append(block)
                if sum(map(len, found)) >= _BLOCK // 2:
                    break
        return found

    async def _wait(self, changed: asyncio.Event) -> bool:
        """Until the file grows or something happens to the job; False when neither did."""
        grown = asyncio.ensure_future(self._growth.wait(self._reader.path, self._reader.position))
        told = asyncio.ensure_future(changed.wait())
        try:
            done, _ = await asyncio.wait({grown, told}, timeout=PING, return_when="FIRST_COMPLETED")
        finally:
            grown.cancel()
            told.cancel()
        return bool(done)

    def _event(self, kind: str, data: dict[str, Any]) -> bytes:
        pending = len(self._decoder.getstate()[0])
        at = f"{self._run}:{self._reader.position - pending}"
        return event(kind, at, json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
