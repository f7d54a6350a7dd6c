"""For how long a worker has been silent, as one machine sees it."""

from __future__ import annotations

from svcq.worker.leases import Silences

LEASE = 60.0


class Boot:
    """Seconds since the machine was started, the time it slept among them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def watch(boot: Boot, silences: Silences, number: int, seconds: float) -> float:
    """Look every 5 s at a worker whose number stays as it is; for how long it has been silent."""
    silence = 0.0
    for _ in range(round(seconds / 5)):
        boot.now += 5
        silence = silences.look([(1, number)])[1]
    return silence


def test_silence_counts_from_when_a_number_was_first_seen() -> None:
    boot = Boot()
    silences = Silences(LEASE, boot)
    assert silences.look([(1, 7)]) == {1: 0}
    assert watch(boot, silences, 7, 60) == 60
    assert watch(boot, silences, 8, 5) == 0
    assert watch(boot, silences, 8, 30) == 30


def test_what_was_not_seen_does_not_count() -> None:
    boot = Boot()
    silences = Silences(LEASE, boot)
    watch(boot, silences, 7, 50)
    boot.now += 3600  # we slept
    assert silences.look([(1, 7)]) == {1: 0}
    watch(boot, silences, 7, 50)
    silences.forget()  # the store could not be reached
    assert watch(boot, silences, 7, 5) == 0
    assert watch(boot, silences, 7, 60) == 60


def test_a_worker_that_is_gone_is_forgotten() -> None:
    boot = Boot()
    silences = Silences(LEASE, boot)
    watch(boot, silences, 7, 50)
    boot.now += 5
    assert silences.look([(2, 1)]) == {2: 0}
    boot.now += 5
    assert silences.look([(1, 7), (2, 1)]) == {1: 0, 2: 5}
