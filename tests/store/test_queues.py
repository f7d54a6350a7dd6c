"""Queues: their settings, and what a change of them does."""

from __future__ import annotations

import pytest

from svcq.errors import InvalidInput, NotFound, Refused
from svcq.jobs import State
from svcq.store import Queue
from tests.store.conftest import Desk


def test_a_queue_comes_to_be_with_its_first_job_or_setting(desk: Desk) -> None:
    desk.add(queue="a")
    desk.store.set_queue("b", {})
    assert [queue.name for queue in desk.store.queues()] == ["a", "b"]
    assert desk.store.queue("a") == Queue(name="a", aging_ms=3_600_000)


def test_a_queue_that_is_not_there_is_named(desk: Desk) -> None:
    for act in (desk.store.queue, desk.store.pause, desk.store.delete_queue):
        with pytest.raises(NotFound, match="no queue 'mial'"):
            act("mial")


@pytest.mark.parametrize(
    ("given", "attribute", "value"),
    [
        ({"paused": True}, "paused", True),
        ({"weight": 5}, "weight", 5),
        ({"concurrency": 3}, "concurrency", 3),
        ({"concurrency": 0}, "concurrency", 0),
        ({"rate": "10/1m"}, "rate", (10, 60_000)),
        ({"rate": "5/30s"}, "rate", (5, 30_000)),
        ({"rate": (2, 1.5)}, "rate", (2, 1500)),
        ({"aging": "10m"}, "aging_ms", 600_000),
        ({"aging": "never"}, "aging_ms", None),
        ({"dead_letter": "letters"}, "dead_letter", "letters"),
        ({"max_attempts": 4}, "options", {"max_attempts": 4}),
        ({"keep_dead": "3d"}, "options", {"keep_dead": 259_200_000}),
    ],
)
def test_each_setting_is_kept_and_can_be_removed(
    desk: Desk, given: dict[str, object], attribute: str, value: object
) -> None:
    queue = desk.store.set_queue("q", given)
    assert getattr(queue, attribute) == value
    desk.store.set_queue("q", {"weight": queue.weight})
    assert getattr(desk.store.queue("q"), attribute) == value
    if "paused" not in given:
        assert desk.store.set_queue("q", dict.fromkeys(given)) == Queue(
            name="q", aging_ms=3_600_000
        )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("paused", "no"),
        ("weight", 0),
        ("weight", "3"),
        ("weight", 10**6),
        ("concurrency", -1),
        ("concurrency", 1.5),
        ("concurrency", True),
        ("rate", "ten/1m"),
        ("rate", "10"),
        ("rate", "10/"),
        ("rate", "0/1m"),
        ("rate", "-1/1m"),
        ("rate", "10/0s"),
        ("rate", "10/soon"),
        ("rate", 10),
        ("rate", (1, 2, 3)),
        ("aging", "0s"),
        ("aging", "2000d"),
        ("aging", "sometimes"),
        ("aging", -3),
        ("dead_letter", ""),
        ("dead_letter", "a b"),
        ("dead_letter", 7),
        ("max_attempts", 0),
        ("backoff", "sometimes"),
        ("keep_dead", "long"),
        ("keep_dead", -1),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(desk: Desk, key: str, value: object) -> None:
    words = [str(part) for part in value] if isinstance(value, tuple) else str(value).split("/")
    with pytest.raises(InvalidInput) as caught:
        desk.store.set_queue("q", {"weight": 2, key: value})
    sentence = str(caught.value)
    assert any(word in sentence for word in words)
    assert sentence.endswith(".")
    assert desk.store.queues() == []


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 101, "a\0b", "-x", 5])
def test_a_queue_has_a_proper_name(desk: Desk, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"The queue"):
        desk.store.set_queue(name, {})


def test_an_unknown_setting_is_named_with_the_nearest_known_one(desk: Desk) -> None:
    with pytest.raises(
        InvalidInput, match=r"'max_atempts' of a queue: did you mean max_attempts\?"
    ):
        desk.store.set_queue("q", {"max_atempts": 3})
    with pytest.raises(InvalidInput, match=r"'wieght' of a queue: did you mean weight\?"):
        desk.store.set_queue("q", {"wieght": 3})


def test_a_queue_as_json_can_be_read_back(desk: Desk) -> None:
    given = {"rate": "7/1500ms", "aging": "90s", "weight": 2, "keep_dead": "36h", "timeout": "10m"}
    queue = desk.store.set_queue("q", given)
    shown = queue.as_json()
    assert (shown.pop("name"), shown["rate"], shown["aging"]) == ("q", "7/1500ms", "1m30s")
    assert desk.store.set_queue("copy", shown).as_json() == {**shown, "name": "copy"}


def test_a_change_of_aging_ranks_pending_jobs_anew(desk: Desk) -> None:
    old, keyed = desk.add(), desk.add(concurrency_key="k")
    desk.clock.advance(100)
    urgent = desk.add(priority=1)
    desk.store.set_queue("default", {"aging": "10s"})
    assert desk.claimed(3) == [old, keyed, urgent]


def test_a_large_queue_is_ranked_anew_in_batches(desk: Desk) -> None:
    desk.store.enqueue([desk.new(priority=i % 3) for i in range(2500)])
    desk.clock.advance(100)
    desk.store.set_queue("default", {"aging": "never"})
    taken = [desk.get(job).priority for job in desk.claimed(900)]
    assert taken == [2] * 833 + [1] * 67


def test_a_new_rate_starts_with_a_new_burst(desk: Desk) -> None:
    desk.store.set_queue("default", {"rate": "2/1h"})
    for _ in range(10):
        desk.add()
    assert len(desk.claim(10)) == 2
    desk.store.set_queue("default", {"weight": 3})
    assert desk.claim(10) == []
    desk.store.set_queue("default", {"rate": "3/1h"})
    assert len(desk.claim(10)) == 3


def test_a_queue_with_jobs_is_not_deleted(desk: Desk) -> None:
    desk.add(queue="q")
    with pytest.raises(Refused, match="'q' still has 1 job"):
        desk.store.delete_queue("q")
    assert desk.store.queue("q")


def test_a_queue_that_gets_dead_letters_is_not_deleted(desk: Desk) -> None:
    desk.store.set_queue("q", {"dead_letter": "letters"})
    with pytest.raises(Refused, match="'letters' gets the dead letters of queue 'q'"):
        desk.store.delete_queue("letters")


def test_an_empty_queue_is_deleted_and_can_be_used_again(desk: Desk) -> None:
    desk.store.set_queue("q", {"weight": 7})
    desk.add(queue="q", concurrency_key="k")
    desk.run()
    desk.store.purge([State.COMPLETED])
    desk.store.delete_queue("q")
    assert desk.store.queues() == []
    job = desk.add(queue="q")
    assert desk.store.queue("q").weight == 1
    assert desk.claimed() == [job]
