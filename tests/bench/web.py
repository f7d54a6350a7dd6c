"""The API and the page: beside a large store, with many who follow, and a log of a gigabyte."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from time import perf_counter

from svcq import Client
from svcq.store import WorkerInfo, open_store
from svcq.web.views import VIEWS
from tests.bench.figures import Figure, Scale, alternate, limit_figure, rate_figure
from tests.bench.flat import SEED, fill_mixed, multiply
from tests.bench.noop import plain
from tests.bench.places import config_in
from tests.bench.worker import TASKS, cpu_seconds, drain, new_task, pss_megabytes
from tests.helpers import eventually
from tests.lifecycle.homes import Home
from tests.web.served import Served

PATIENCE = 60
FIRST_BYTE_MS = 100
A_SECOND = 500  # changes, for those who follow


def web_views(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Each view of a large store beside that of one with a hundred jobs."""
    rows = scale.rows[-1]
    with serving(folder, SEED) as small, serving(folder, rows) as large:
        for path in VIEWS:
            asked = path.replace("{job}", "7")
            sides = [partial(first_byte, served, asked) for served in (small, large)]
            few, many = alternate(scale.rounds, *sides)
            what = f"view {path}, {rows:,} jobs"
            yield Figure(
                "web_views", what, f"{median(many) * 1e3:.1f} ms",
                f"{SEED} jobs {median(few) * 1e3:.1f} ms", median(many) / median(few), at_most=5,
            )  # fmt: skip
            yield limit_figure("web_views", what, median(many) * 1e3, FIRST_BYTE_MS, "ms")


def web_post(scale: Scale, folder: Path) -> Iterator[Figure]:
    """One connection that posts job after job, against the client's own enqueue."""
    n = scale.singles
    with serving(folder, 0) as served, Client(config=config_in(folder, "beside")) as client:
        connection = HTTPConnection("svcq")
        connection.sock = served.local()
        body = b'{"task": "bench.work", "kwargs": {"to": "someone@example.org", "n": 1}}'

        def by_post() -> float:
            start = perf_counter()
            for _ in range(n):
                connection.request("POST", "/api/v1/jobs", body, JSON)
                answer = connection.getresponse()
                assert answer.status == 201, answer.read()
                answer.read()
            return n / (perf_counter() - start)

        def by_client() -> float:
            start = perf_counter()
            for i in range(n):
                client.add([client.new_task("bench.work", [], {"to": "someone", "n": i})])
            return n / (perf_counter() - start)

        ours, other = alternate(scale.rounds, by_post, by_client)
        connection.close()
    yield rate_figure("web_post", "POST /jobs, durable", ours, other, "client.enqueue", 0.4)


def web_streams(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Many follow while the store changes; workers on it go on as if nobody looked."""
    followers, seconds = scale.followers, scale.idle / 2
    with serving(folder, 0) as served, ExitStack() as streams:
        crowd = Crowd([streams.enter_context(closing(follow(served))) for _ in range(followers)])
        before, began = cpu_seconds([served.service.pid]), perf_counter()
        with crowd.reading():
            changes = change_steadily(served.client, seconds)
            eventually(lambda: crowd.have(changes), PATIENCE)
        share = (cpu_seconds([served.service.pid]) - before) / (perf_counter() - began)
        what = f"{followers} streams at {A_SECOND} changes/s, all get all"
        yield limit_figure("web_streams", what, share, 1, "cores")

    with (
        closing(Home(folder / "alone", "")) as alone,
        serving(folder, 0) as served,
        ExitStack() as streams,
    ):
        for home in (alone, served):
            home.worker(*TASKS, "--slots", 2)
            drain(home, [new_task(home, plain.name)] * scale.tasks)

        def tasks(home: Home) -> float:
            return drain(home, [new_task(home, plain.name)] * scale.tasks)

        def beside() -> float:
            with changing(served):
                return tasks(alone)

        sockets = [streams.enter_context(closing(follow(served))) for _ in range(followers)]
        with Crowd(sockets).reading():
            ours, other = alternate(scale.rounds, beside, lambda: tasks(alone))
            # Beyond what was asked: each change that the worker makes goes to all of them, who read
            # it on this machine as well.
            full, alone_again = alternate(scale.rounds, lambda: tasks(served), lambda: tasks(alone))
    what = f"tasks beside {followers} streams"
    at = f"{what} at {A_SECOND}/s"
    yield rate_figure("web_streams", at, ours, other, "nobody looks", 0.9)
    at = f"{what} of all they change"
    yield rate_figure("web_streams", at, full, alone_again, "nobody looks", 0.7)


def web_log(scale: Scale, folder: Path) -> Iterator[Figure]:
    """The end of a very long log, against that of a short one, and what the service keeps of it."""
    with serving(folder, 0) as served:
        jobs = [run_by_hand(served.client) for _ in range(2)]
        for job, size in zip(jobs, (10_000, scale.log_bytes), strict=True):
            write_log(served.log(job), size)
        paths = [f"/api/v1/jobs/{job}/output?tail=200" for job in jobs]
        for path in paths:
            first_byte(served, path)
        before = pss_megabytes(served.service.pid)
        few, many = alternate(scale.rounds, *[partial(first_byte, served, path) for path in paths])
        grown = max(pss_megabytes(served.service.pid) - before, 0)
    what = f"the end of a log of {scale.log_bytes / 1e6:,.0f} MB"
    yield Figure(
        "web_log", what, f"{median(many) * 1e3:.1f} ms", f"10 kB {median(few) * 1e3:.1f} ms",
        median(many) / median(few), at_most=3,
    )  # fmt: skip
    yield limit_figure("web_log", f"{what}: memory more", grown, 10, "MB")


JSON = {"Content-Type": "application/json"}


@contextmanager
def serving(folder: Path, jobs: int) -> Iterator[Served]:
    """A service without workers over a store of so many jobs in all states."""
    folder.mkdir(exist_ok=True)
    number = len(os.listdir(folder))
    settings = ""
    if jobs:
        config = config_in(folder, f"filled-{number}")
        with closing(open_store(config)) as store:
            store.register(WorkerInfo("bench", 1))
            fill_mixed(store, SEED)
        multiply(Path(config.store), jobs // SEED)
        settings = f'store = "{config.store}"\n'
    with closing(Served(folder / f"served-{number}", settings, workers=0)) as served:
        yield served


def first_byte(served: Served, path: str) -> float:
    """Seconds from the request to the first byte of the answer; the rest is read, too."""
    with closing(served.local()) as connection:
        start = perf_counter()
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: svcq\r\nConnection: close\r\n\r\n".encode()
        )
        first = connection.recv(65536)
        took = perf_counter() - start
        assert first.startswith(b"HTTP/1.1 200"), first
        while connection.recv(1 << 20):
            pass
    return took


def follow(served: Served) -> socket.socket:
    stream = served.local()
    stream.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: svcq\r\n\r\n")
    while b"event: ready" not in stream.recv(65536):
        pass
    return stream


def change_steadily(client: Client, seconds: float) -> int:
    """So many changes a second for a while; how many there were."""
    part, times = A_SECOND // 10, max(round(seconds * 10), 1)
    due = perf_counter()
    for _ in range(times):
        client.add([client.new_task("bench.work", [], {}, hold=True)] * part)
        due += 0.1
        time.sleep(max(due - perf_counter(), 0))
    return part * times


@contextmanager
def changing(home: Home) -> Iterator[None]:
    """So many changes a second, in a thread, until the block ends."""
    over = threading.Event()

    def change_on() -> None:
        with Client(home=home.path) as client:
            while not over.is_set():
                change_steadily(client, 0.1)

    thread = threading.Thread(target=change_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Crowd:
    """Those who follow, and how many changes each has been told of."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self._told = dict.fromkeys(sockets, 0)
        self._rest = dict.fromkeys(sockets, b"")
        self._selector = selectors.DefaultSelector()
        self._over = False
        for one in sockets:
            one.setblocking(False)
            self._selector.register(one, selectors.EVENT_READ)

    def read(self, wait: float) -> None:
        for key, _ in self._selector.select(wait):
            one: socket.socket = key.fileobj  # type: ignore[assignment]
            whole, mark, rest = (self._rest[one] + one.recv(1 << 20)).rpartition(b"\n\n")
            self._told[one] += (whole + mark).count(b'"seq"')
            self._rest[one] = rest

    def have(self, changes: int) -> bool:
        """Whether all have been told of all of them, once."""
        return set(self._told.values()) == {changes}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """In a thread, until the block ends."""

        def read_on() -> None:
            while not self._over:
                self.read(0.1)

        thread = threading.Thread(target=read_on)
        thread.start()
        try:
            yield
        finally:
            self._over = True
            thread.join()


def run_by_hand(client: Client) -> int:
    """A job with a run, whose output is up to us."""
    client.command("true")
    (claim,) = client.fetch("default", 1)
    client.complete(claim)
    return claim.id


def write_log(file: Path, size: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    line = b"a line of output that is neither long nor short, one of very many\n"
    with file.open("wb") as log:
        block = line * 16_000
        while log.tell() < size:
            log.write(block[: size - log.tell()])
