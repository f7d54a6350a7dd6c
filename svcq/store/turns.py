"""Weighted turns between queues: a queue of weight 3 gets three jobs for each one of weight 1.

Stride scheduling: each queue has a pass, the next turn goes to the lowest, and a turn moves it on
by 1/weight. Each claimer keeps its own passes: what is fair for each is fair for all together,
and no row has to be written for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heapreplace


class Turns:
    def __init__(self) -> None:
        self._passes: dict[str, float] = {}
        self._now = 0.0
        self._last = 0.0  # where the latest turn was taken; `now` when the next ones are shared out

    def share(self, weights: Mapping[str, int], n: int) -> dict[str, int]:
        """How many of the next `n` turns each queue gets. Nothing is spent yet."""
        self._now = self._last
        if len(weights) == 1:
            return dict.fromkeys(weights, n)
        heap = [(self._pass_of(queue), queue) for queue in sorted(weights)]
        heapify(heap)
        shares = dict.fromkeys(weights, 0)
        for _ in range(n):
            at, queue = heap[0]
            shares[queue] += 1
            heapreplace(heap, (at + 1 / weights[queue], queue))
        return {queue: share for queue, share in shares.items() if share}

    def spend(self, queue: str, weight: int, n: int) -> None:
        """The queue really used `n` turns."""
        at = self._pass_of(queue)
        self._passes[queue] = at + n / weight
        if n:
            self._last = max(self._last, at + (n - 1) / weight)

    def _pass_of(self, queue: str) -> float:
        # A queue that was empty does not save up turns: it joins where the others are.
        return max(self._passes.get(queue, self._now), self._now - 1)
