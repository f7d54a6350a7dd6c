"""Being known to live, where machines share a store: a number that is raised again and again.

Others take a worker's jobs when they have seen its number unchanged for `lease`. So a worker that
is not heard ends its jobs before that, counted from when it sent what was last acknowledged, on the
clock of its own machine that goes on while that sleeps.

Two threads, since the one that speaks may have to wait for an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from svcq.errors import SvcqError
from svcq.host import clocks
from svcq.store import Store

# Shares of the lease: between two signs of life; from the last one until jobs are asked to end, and
# until they are killed. What is left after that is the margin.
BEAT = 1 / 6
CUT_OFF = 2 / 3
KILL = 3 / 4
_STEP = 1 / 60
_LONGEST_STEP = 1.0


class Jobs(NamedTuple):
    """What a worker does with what it runs; called in a thread of ours."""

    interrupt: Callable[[str], None]  # ask them to end, and give them back
    kill: Callable[[], None]  # whoever is left; may be called again


class Heartbeat:
    def __init__(
        self, store: Store, worker: int, since: float, *, on_cut: str, say: Callable[[str], None]
    ) -> None:
        """`since`: before others could know of it."""
        config = store.config
        # With a connection of its own: where there are none left to be had, it is still heard.
        self._store = Store(store.engine.fresh(), config)
        self._worker = worker
        self._lease = config.workers.lease / 1000
        self._keep = on_cut == "keep"
        self._say = say
        self._jobs: Jobs | None = None
        self._heard = since
        self._was_cut = False
        self._given_up = False
        self._ended = threading.Event()
        self._speaker = threading.Thread(target=self._speak, name="svcq-heartbeat", daemon=True)
        self._watch = threading.Thread(target=self._watch_silence, name="svcq-fence", daemon=True)
        self._speaker.start()

    def guard(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._watch.start()

    def close(self) -> None:
        self._ended.set()
        self._speaker.join(1)
        if self._jobs is not None:
            self._watch.join()

    @property
    def cut_off(self) -> bool:
        """Whether nothing may be started, since others may be about to take it."""
        return self._given_up or not (self._keep or self._silence() < CUT_OFF * self._lease)

    def _silence(self) -> float:
        return clocks.since_boot() - self._heard

    def _speak(self) -> None:
        with closing(self._store):
            while not self._ended.is_set():
                sent = clocks.since_boot()
                try:
                    if self._store.pulse(self._worker, round(self._lease * 1000)):
                        self._heard = sent
                    else:
                        self._given_up = True
                        return
                except SvcqError:
                    pass  # the worker itself says what is wrong with the store
                self._ended.wait(BEAT * self._lease if self._heard == sent else self._step())

    def _step(self) -> float:
        return min(_STEP * self._lease, _LONGEST_STEP)

    def _watch_silence(self) -> None:
        """Often, since a machine that slept must end its jobs as soon as it wakes."""
        assert self._jobs is not None
        while not self._ended.wait(self._step()):
            silence = self._silence()
            if not self.cut_off:
                if self._was_cut:
                    self._was_cut = False
                    self._say("The store hears this worker again: it takes jobs.")
                continue
            if not self._was_cut:
                self._was_cut = True
                why = self._why(silence)
                self._say(f"Jobs are ended and given back: {why}.")
                self._jobs.interrupt(why)
            if self._given_up or silence > KILL * self._lease:
                self._jobs.kill()

    def _why(self, silence: float) -> str:
        if self._given_up:
            return "its worker was given up as lost"
        return f"its worker could not reach the store for {silence:.0f} s"
