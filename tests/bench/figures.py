"""What a measurement says, and whether that is enough."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple


class Scale(NamedTuple):
    """How much is measured."""

    rounds: int  # repetitions of each side, one after the other
    singles: int  # enqueues of one job in a round
    bulk: int  # jobs in one enqueue_many
    drained: int  # jobs claimed and finished in a round
    rows: tuple[int, ...]  # sizes of the stores for the curve
    looks: int  # repetitions at each point of the curve
    samples: int  # enqueues beside busy workers
    starts: int  # runs of a command
    tasks: int  # tasks that do nothing, through a worker in a round
    commands: int  # the same of commands
    waits: int  # commands queued one by one to a worker that sleeps
    idle: float  # seconds for which a worker is watched doing nothing
    peers: bool = True  # other queues too, which come from the network
    schedules: int = 10_000  # in the store
    due: int = 1_000  # of them, at one instant
    followers: int = 200  # of the stream of changes
    log_bytes: int = 10**9  # of a very long log
    finished: int = 1_000_000  # jobs that have ended in a database, beside a tenth that waits
    churned: int = 3_000_000  # jobs through a database that nobody tends
    churned_beside: int = 1_000_000  # the same while someone's transaction stays open


FULL = Scale(
    9, 300, 10_000, 10_000, (1_000, 10_000, 100_000, 1_000_000), 150, 2_500, 20, 5_000, 500, 300, 20
)
QUICK = Scale(
    5, 200, 10_000, 5_000, (1_000, 100_000), 60, 2_000, 20, 3_000, 300, 150, 10,
    finished=100_000, churned=200_000, churned_beside=100_000,
)  # fmt: skip
TINY = Scale(
    2, 10, 200, 200, (200, 800), 4, 30, 2, 50, 10, 3, 0.5, peers=False, schedules=60, due=20,
    followers=5, log_bytes=10**6, finished=2_000, churned=2_000, churned_beside=2_000,
)  # fmt: skip


class Figure(NamedTuple):
    """One ratio. Exactly one of `at_least` and `at_most` is its target."""

    bench: str
    what: str
    ours: str
    other: str
    ratio: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ok(self) -> bool:
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return self.at_most is not None and self.ratio <= self.at_most

    @property
    def target(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"

    def line(self) -> str:
        verdict = "ok" if self.ok else "SHORT"
        return (
            f"{self.bench:13} {self.what:52} {self.ours:>34} {self.other:>24} "
            f"{self.ratio:8.2f} {self.target:>8}  {verdict}"
        )

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "ok": self.ok}


HEADING = f"{'figure':13} {'what':52} {'ours':>34} {'against':>24} {'ratio':>8} {'target':>8}"


def alternate(rounds: int, *sides: Callable[[], float]) -> list[list[float]]:
    """What each side measured in each round; a disturbance of the machine meets all sides."""
    measured: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, values in zip(sides, measured, strict=True):
            values.append(side())
    return measured


def rate_figure(
    bench: str, what: str, ours: list[float], other: list[float], against: str, at_least: float
) -> Figure:
    """Compare rates (jobs a second) that were measured in turns, round by round."""
    ratio = median(mine / theirs for mine, theirs in zip(ours, other, strict=True))
    return Figure(
        bench, what, f"{median(ours):,.0f}/s", f"{against} {median(other):,.0f}/s", ratio, at_least
    )


def limit_figure(bench: str, what: str, value: float, limit: float, unit: str) -> Figure:
    """A value against the most it may be."""
    return Figure(
        bench, what, f"{value:.2f} {unit}", f"limit {limit:g}", value / limit, at_most=1.0
    )
