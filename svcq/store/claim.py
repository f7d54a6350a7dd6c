"""Claiming: up to n jobs for a worker, by rank within a queue and by weighted turns between them.

What is closed costs nothing: paused queues, lanes of other hosts and of conditions that do not
hold are never looked into, and the lanes of a saturated key are not in the index of open ones.
All limits are enforced here, inside the transaction.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from svcq.jobs import Claim, State
from svcq.store.engine import NotAlone, Row, Transaction
from svcq.store.ledger import Ledger
from svcq.store.turns import Turns

_UNLIMITED = 1 << 62


class Claimer(NamedTuple):
    """Who asks for work, and for which."""

    worker: int
    host: str = ""
    serves: Callable[[str], bool] | None = None  # which queues; None for all
    kinds: Collection[str] = ("command", "task")
    holding: Container[str] = ()  # the conditions that hold where it runs


class _Lane(NamedTuple):
    """A plain lane of an open queue, and the way to the keyed lanes beside it."""

    id: int
    queue: str
    kind: str
    host: str
    condition: str
    weight: int
    concurrency: int | None
    rate_count: int | None
    rate_ms: int | None
    rate_next: int
    options: str
    head: int | None
    keyed: int | None


class View(NamedTuple):
    """What a claim must know before it begins."""

    asked: Row | None  # what the worker was asked for
    late: bool  # whether the time of a job has come or passed, which goes before any claim
    lanes: list[_Lane]


def view(ask: Callable[..., list[list[Row]]], claimer: Claimer, now: int) -> View:
    """`ask` is a transaction's `all`, or an engine's `look`."""
    asked, due, expired, lanes = ask(
        ("worker_asked", (claimer.worker,)), ("due", (now, 1)), ("expired", (now, 1)),
        ("candidates", (claimer.host,)),
    )  # fmt: skip
    return View(asked[0] if asked else None, bool(due or expired), _open_to(claimer, lanes))


def claim(
    tx: Transaction, ledger: Ledger, claimer: Claimer, n: int, turns: Turns,
    lanes: list[_Lane] | None = None,
) -> list[Claim]:  # fmt: skip
    """Take up to `n` jobs; the first returned are the first to run. `lanes` if they were read."""
    if lanes is None:
        lanes = _open_to(claimer, tx.rows("candidates", host=claimer.host))
    queues: dict[str, _Queue] = {}
    for lane in lanes:
        if lane.queue not in queues:
            queues[lane.queue] = _Queue(tx, lane)
        queues[lane.queue].lanes.append(lane)
    if not tx.alone and any(queue.limited and queue.room for queue in queues.values()):
        raise NotAlone  # what limits them is read, then written
    weights = {name: queue.weight for name, queue in queues.items() if queue.room}
    claims: list[Claim] = []
    while weights and len(claims) < n:
        for name, share in turns.share(weights, n - len(claims)).items():
            queue = queues[name]
            taken = queue.take(tx, min(share, queue.room))
            turns.spend(name, queue.weight, len(taken))
            claims += _start(tx, ledger, claimer.worker, queue, taken)
            if len(taken) < share:
                del weights[name]
    return claims


def _open_to(claimer: Claimer, rows: list[Row]) -> list[_Lane]:
    return [
        lane
        for lane in map(_Lane._make, rows)
        if (lane.head is not None or lane.keyed is not None)
        and lane.kind in claimer.kinds
        and (claimer.serves is None or claimer.serves(lane.queue))
        and all(condition in claimer.holding for condition in _conditions(lane))
    ]


def _conditions(lane: _Lane) -> list[str]:
    """What its jobs wait for, and all jobs of its queue."""
    found = [lane.condition] if lane.condition else []
    if '"when"' in lane.options:  # few have one, and every claim comes by here
        found += filter(None, [json.loads(lane.options).get("when")])
    return found


class _Queue:
    """One queue during one claim: its room under its limits, and its lanes by rank."""

    def __init__(self, tx: Transaction, lane: _Lane) -> None:
        self.name = lane.queue
        self.weight = lane.weight
        self.options = lane.options
        self.rated = lane.rate_count is not None
        self._bounded = self.rated or lane.concurrency is not None
        self.lanes: list[_Lane] = []
        self.room = min(_concurrency_room(tx, lane), _rate_room(tx.now, lane))

    @property
    def limited(self) -> bool:
        return self._bounded or any(lane.keyed is not None for lane in self.lanes)

    def take(self, tx: Transaction, n: int) -> list[tuple[str, Row]]:
        """The next `n` jobs by rank, merged from all lanes, each with its concurrency key."""
        # A lane enters the heap by its head, unread (job 0); read, it stands at its next job.
        heap = [(head, 0, _Reader(lane, key, room)) for head, lane, key, room in self._heads(tx, n)]
        if len(heap) == 1 and not heap[0][2].key:
            # The usual case: nothing to merge.
            return self._took([("", row) for row in heap[0][2].fetch(tx, n)])
        heapify(heap)
        taken: list[tuple[str, Row]] = []
        used: dict[str, int] = defaultdict(int)
        while heap and len(taken) < n:
            _, job, reader = heap[0]
            if reader.key and used[reader.key] >= reader.room:
                heappop(heap)
                continue
            if job:
                taken.append((reader.key, reader.rows.pop()))
                used[reader.key] += 1
            else:
                reader.rows = reader.fetch(tx, n - len(taken))[::-1]
            if reader.rows:
                heapreplace(heap, (reader.rows[-1][0], reader.rows[-1][1], reader))
            else:
                heappop(heap)
        return self._took(taken)

    def _took(self, taken: list[tuple[str, Row]]) -> list[tuple[str, Row]]:
        self.room -= len(taken)
        return taken

    def _heads(self, tx: Transaction, n: int) -> Iterator[tuple[int, int, str, int]]:
        """Each lane with jobs: the best rank in it, its id, its key and the key's room."""
        for lane in self.lanes:
            if lane.head is not None:
                yield lane.head, lane.id, "", 0
            if lane.keyed is not None:
                for keyed, head, key, room in tx.rows(
                    "open_lanes", queue=lane.queue, kind=lane.kind, host=lane.host,
                    condition=lane.condition, n=n,
                ):  # fmt: skip
                    yield head, keyed, key, room


class _Reader:
    """The next jobs of one lane; in `rows` the first of them last."""

    def __init__(self, lane: int, key: str, room: int) -> None:
        self.lane = lane
        self.key = key
        self.room = room
        self.rows: list[Row] = []

    def fetch(self, tx: Transaction, n: int) -> list[Row]:
        wanted = min(n, self.room) if self.key else n
        return tx.rows("first_in_lane", lane=self.lane, n=wanted)

    def __lt__(self, other: _Reader) -> bool:
        return self.lane < other.lane


def _concurrency_room(tx: Transaction, lane: _Lane) -> int:
    if lane.concurrency is None:
        return _UNLIMITED
    row = tx.row("running_in", queue=lane.queue)
    return max(lane.concurrency - (row[0] if row else 0), 0)


def _rate_room(now: int, lane: _Lane) -> int:
    """GCRA: how many starts fit before the next one is due more than a period ahead."""
    if lane.rate_count is None or lane.rate_ms is None:
        return _UNLIMITED
    due = max(lane.rate_next, now * 1000)  # in microseconds
    period = lane.rate_ms * 1000
    return max((now * 1000 + period - due) * lane.rate_count // period, 0)


def _start(
    tx: Transaction, ledger: Ledger, worker: int, queue: _Queue, taken: list[tuple[str, Row]]
) -> list[Claim]:
    """Mark the jobs as processing and note it."""
    if not taken:
        return []
    now = tx.now
    tx.each(("start_runs", (worker, now, json.dumps([row[1] for _, row in taken]))))
    if queue.rated:
        tx.run("take_rate", queue=queue.name, taken=len(taken), now=now)
    ids_by_task: dict[str, list[int]] = defaultdict(list)
    keys: dict[str, int] = defaultdict(int)
    waits: list[int] = []
    claims: list[Claim] = []
    for key, row in taken:
        (_, job, run, task, command, args, options, name, cwd, env, failures, ready_at,
         setbacks) = row  # fmt: skip
        ids_by_task[task].append(job)
        if key:
            keys[key] += 1
        if not setbacks:
            waits.append(now - ready_at)
        claims.append(
            Claim(job, run, worker, queue.name, task, command, args, options, queue.options, name,
                  cwd, env, failures, now)
        )  # fmt: skip
    ledger.timed(queue.name, "started", waits)
    for task, ids in ids_by_task.items():
        ledger.moved(ids, State.PENDING, State.PROCESSING, queue.name, task)
    for key, n in keys.items():
        tx.run("use_key", key=key, n=n)
        ledger.touched(key)
    ledger.settle_keys()  # the next queue of this claim may have lanes of the same keys
    return claims
