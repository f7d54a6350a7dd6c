"""Claiming: who is next, and what the limits let through."""

from __future__ import annotations

from collections import Counter

import pytest

from svcq.jobs import State, completed, failed
from svcq.store import WorkerInfo
from tests.store.conftest import Desk

HOUR = 3600


def test_nothing_is_claimed_when_nothing_waits(desk: Desk) -> None:
    assert desk.claim(10) == []
    assert desk.store.last_change() == 0


@pytest.mark.parametrize("n", [0, -1])
def test_a_claim_for_no_jobs_takes_none(desk: Desk, n: int) -> None:
    job = desk.add()
    assert desk.claim(n) == []
    assert desk.state(job) is State.PENDING


def test_first_come_first_served(desk: Desk) -> None:
    jobs = []
    for _ in range(5):
        jobs.append(desk.add())
        desk.clock.advance(1)
    assert desk.claimed(3) + desk.claimed(3) == jobs


def test_jobs_of_the_same_instant_go_by_id(desk: Desk) -> None:
    jobs = [added.id for added in desk.store.enqueue([desk.new() for _ in range(20)])]
    assert desk.claimed(7) + desk.claimed(20) == jobs


def test_ties_between_lanes_go_by_id(desk: Desk) -> None:
    """Commands, tasks, keys and hosts stand in lanes of their own; the order is one."""
    ways = (
        {},
        {"command": '"ls"'},
        {"concurrency_key": "a"},
        {"host": "here"},
        {"when": "idle>10m"},
    )
    jobs = [desk.add(**ways[i % len(ways)]) for i in range(4)] + [desk.add(when="idle>10m")]
    assert desk.claimed(5, host="here", holding={"idle>10m"}) == jobs


def test_a_higher_priority_goes_first(desk: Desk) -> None:
    low, middle, high = desk.add(priority=-1), desk.add(), desk.add(priority=9)
    assert desk.claimed(3) == [high, middle, low]


def test_a_job_gains_a_level_for_each_aging_it_waits(desk: Desk) -> None:
    old = desk.add()
    desk.clock.advance(HOUR - 1)
    lifted = desk.add(priority=1)
    desk.clock.advance(2)
    late = desk.add(priority=1)
    assert desk.claimed(3) == [lifted, old, late]


def test_the_aging_of_a_queue_is_its_own(desk: Desk) -> None:
    desk.store.set_queue("default", {"aging": "10s"})
    old = desk.add()
    desk.clock.advance(11)
    assert [old, desk.add(priority=1)] == desk.claimed(2)


def test_without_aging_priority_is_strict(desk: Desk) -> None:
    desk.store.set_queue("default", {"aging": "never"})
    old = desk.add()
    desk.clock.advance(20 * 365 * 24 * HOUR)
    urgent = desk.add(priority=1)
    assert desk.claimed(2) == [urgent, old]


def test_lanes_are_merged_in_rank_order(desk: Desk) -> None:
    jobs = []
    for i in range(24):
        options = [{}, {"command": '"ls"'}, {"concurrency_key": f"k{i}"}, {"when": "idle>10m"}][
            i % 4
        ]
        jobs.append(desk.add(**options))
        desk.clock.advance(1)
    assert desk.claimed(10, holding={"idle>10m"}) + desk.claimed(20, holding={"idle>10m"}) == jobs


def test_a_claim_has_all_that_a_run_needs(desk: Desk) -> None:
    job = desk.add("send", '[["a"],{"b":1}]', name="letter", cwd="/tmp", max_attempts=7)
    (claim,) = desk.claim()
    assert claim.id == job
    assert (claim.run, claim.worker, claim.queue) == (1, desk.worker, "default")
    assert (claim.task, claim.args, claim.command) == ("send", '[["a"],{"b":1}]', None)
    assert (claim.name, claim.cwd, claim.failures) == ("letter", "/tmp", 0)
    assert claim.options == '{"max_attempts":7}'
    assert claim.started_at == desk.clock.now


def test_a_claimed_job_is_processing_and_no_one_else_gets_it(desk: Desk) -> None:
    job = desk.add()
    desk.claim()
    shown = desk.get(job)
    assert (shown.state, shown.run, shown.worker) == (State.PROCESSING, 1, desk.worker)
    assert desk.claim(5) == []


def test_run_counts_claims_and_never_goes_down(desk: Desk) -> None:
    job = desk.add(backoff="fixed", backoff_base=0, max_attempts=9)
    runs = []
    for _ in range(3):
        (claim,) = desk.claim()
        runs.append(claim.run)
        desk.end(claim, failed("boom"))
    desk.store.cancel(job)
    desk.store.retry(job)
    assert [*runs, desk.claim()[0].run] == [1, 2, 3, 4]


def test_a_job_for_another_host_is_left(desk: Desk) -> None:
    there, here = desk.add(host="there"), desk.add(host="here")
    assert desk.claimed(5) == []
    assert desk.claimed(5, host="here") == [here]
    assert desk.claimed(5, host="there") == [there]


def test_a_job_waits_until_its_condition_holds(desk: Desk) -> None:
    job = desk.add(when="ac-power")
    assert desk.store.conditions() == ["ac-power"]
    assert desk.claimed(5) == []
    assert desk.claimed(5, holding={"idle>10m"}) == []
    assert desk.claimed(5, holding={"ac-power"}) == [job]
    assert desk.store.conditions() == [], "nobody waits for it any more"


def test_a_queue_waits_until_its_condition_holds(desk: Desk) -> None:
    desk.store.set_queue("video", {"when": "ac-power"})
    plain = desk.add(queue="video")
    idle = desk.add(queue="video", when="idle>10m")
    keyed = desk.add(queue="mail", when="load<2", concurrency_key="k")
    assert desk.store.conditions() == ["ac-power", "idle>10m", "load<2"]
    assert desk.claimed(5, holding={"idle>10m"}) == []
    assert desk.claimed(5, holding={"ac-power"}) == [plain]
    assert desk.claimed(5, holding={"ac-power", "idle>10m"}) == [idle]
    desk.store.set_queue("video", {"when": None})
    assert desk.store.conditions() == ["load<2"]
    free = desk.add(queue="video")
    assert desk.claimed(5) == [free]
    assert desk.claimed(5, holding={"load<2"}) == [keyed]


def test_a_worker_may_take_commands_or_tasks_alone(desk: Desk) -> None:
    task, command = desk.add(), desk.add(command='["ls"]')
    assert desk.claimed(5, kinds=("command",)) == [command]
    assert desk.claimed(5, kinds=("task",)) == [task]


def test_a_worker_may_serve_some_queues_only(desk: Desk) -> None:
    desk.add(queue="mail")
    video = desk.add(queue="video")
    assert desk.claimed(5, serves=lambda queue: queue.startswith("v")) == [video]


def test_a_paused_queue_gives_nothing_until_it_is_resumed(desk: Desk) -> None:
    job, keyed = desk.add(), desk.add(concurrency_key="k")
    desk.store.pause("default")
    assert desk.claimed(5) == []
    desk.store.pause("default", paused=False)
    assert desk.claimed(5) == [job, keyed]


def test_a_queue_runs_no_more_than_its_concurrency(desk: Desk) -> None:
    desk.store.set_queue("default", {"concurrency": 2})
    jobs = [desk.add(**({"concurrency_key": f"k{i}"} if i % 2 else {})) for i in range(5)]
    first = desk.claim(5)
    assert [claim.id for claim in first] == jobs[:2]
    assert desk.claim(5) == []
    desk.end(first[0])
    assert desk.claimed(5) == [jobs[2]]


def test_the_concurrency_of_a_queue_counts_all_workers(desk: Desk) -> None:
    desk.store.set_queue("default", {"concurrency": 1})
    desk.add(), desk.add()
    desk.claim()
    desk.worker = desk.store.register(WorkerInfo(host="there", pid=2))
    assert desk.claim(5) == []


def test_no_concurrency_at_all_stops_a_queue(desk: Desk) -> None:
    desk.add()
    desk.store.set_queue("default", {"concurrency": 0})
    assert desk.claim(5) == []


def test_one_job_of_a_key_runs_at_a_time(desk: Desk) -> None:
    first, second = desk.add(concurrency_key="disk"), desk.add(concurrency_key="disk")
    free = desk.add(concurrency_key="net")
    claims = desk.claim(5)
    assert [claim.id for claim in claims] == [first, free]
    assert desk.claim(5) == []
    desk.end(claims[0])
    assert desk.claimed(5) == [second]


def test_a_key_may_allow_more_than_one(desk: Desk) -> None:
    jobs = [desk.add(concurrency_key="gpu", concurrency=2) for _ in range(5)]
    claims = desk.claim(5)
    assert [claim.id for claim in claims] == jobs[:2]
    desk.end(claims[0])
    assert desk.claimed(5) == [jobs[2]]


def test_the_newest_limit_of_a_key_holds(desk: Desk) -> None:
    jobs = [desk.add(concurrency_key="gpu") for _ in range(3)]
    assert desk.claimed(5) == jobs[:1]
    jobs.append(desk.add(concurrency_key="gpu", concurrency=3))
    assert desk.claimed(5) == jobs[1:3]


def test_a_key_is_one_in_all_queues_kinds_hosts_and_conditions(desk: Desk) -> None:
    ways = (
        {"queue": "a"},
        {"queue": "b"},
        {"queue": "a", "command": '"ls"'},
        {"queue": "a", "host": "here"},
        {"queue": "b", "when": "idle>10m"},
    )
    jobs = {desk.add(concurrency_key="one", **way) for way in ways}
    ran = set()
    for _ in ways:
        (claim,) = desk.claim(5, host="here", holding={"idle>10m"})
        ran.add(claim.id)
        assert desk.claim(5, host="here", holding={"idle>10m"}) == []
        desk.end(claim)
    assert ran == jobs


def test_a_saturated_key_does_not_keep_others_back(desk: Desk) -> None:
    for _ in range(50):
        desk.add(concurrency_key="busy", priority=5)
    free = [desk.add(), desk.add(concurrency_key="other")]
    assert len(desk.claimed(1)) == 1
    assert desk.claimed(5) == free


def test_a_claim_is_filled_from_keys_behind_a_key_it_has_just_saturated(desk: Desk) -> None:
    """Two queues share the turns; one runs dry, so the other is asked again in the same claim."""
    jobs = [desk.add(queue="a", concurrency_key=f"k{i}") for i in range(4)]
    jobs.append(desk.add(queue="b"))
    assert sorted(desk.claimed(5)) == jobs


@pytest.mark.parametrize("how", ["finished", "retrying", "interrupted", "cancelled"])
def test_however_a_run_ends_its_key_is_free_again(desk: Desk, how: str) -> None:
    from svcq.jobs import cancelled, interrupted

    outcomes = {
        "finished": completed(),
        "retrying": failed("boom"),
        "interrupted": interrupted(),
        "cancelled": cancelled(),
    }
    desk.add(concurrency_key="k")
    desk.add(concurrency_key="k")
    desk.run(outcomes[how])
    assert len(desk.claim(5)) == 1


def test_a_rate_lets_a_burst_through_and_then_a_steady_flow(desk: Desk) -> None:
    desk.store.set_queue("default", {"rate": "3/1m"})
    for _ in range(10):
        desk.add()
    assert len(desk.claim(10)) == 3
    desk.clock.advance(19.9)
    assert desk.claim(10) == []
    desk.clock.advance(0.1)
    assert len(desk.claim(10)) == 1
    desk.clock.advance(40)
    assert len(desk.claim(10)) == 2
    desk.clock.advance(3600)
    assert len(desk.claim(10)) == 3


@pytest.mark.parametrize("rate", ["3/1s", "700/1s", "1500/1s", "7/13ms"])
def test_a_rate_holds_over_time_however_few_are_claimed_at_once(desk: Desk, rate: str) -> None:
    queue = desk.store.set_queue("default", {"rate": rate})
    assert queue.rate is not None
    allowed, period_ms = queue.rate
    desk.store.enqueue([desk.new() for _ in range(4 * allowed + 10)])
    started = 0
    steps = max(period_ms, 1)
    for _ in range(min(steps, 200)):
        while desk.claim(1):
            started += 1
        desk.clock.advance(period_ms / min(steps, 200) / 1000)
    # One burst, and what flows in during one period.
    assert allowed <= started <= 2 * allowed + 1


def test_a_worker_may_sleep_until_the_rate_lets_the_next_one_in(desk: Desk) -> None:
    desk.store.set_queue("default", {"rate": "2/1m"})
    for _ in range(3):
        desk.add()
    desk.claim(10)
    assert desk.store.next_due() == desk.clock.now + 30_000
    desk.clock.advance(30)
    assert len(desk.claim(10)) == 1


def test_turns_between_queues_go_by_weight(desk: Desk) -> None:
    desk.store.set_queue("heavy", {"weight": 3})
    for queue in ("heavy", "light"):
        desk.store.enqueue([desk.new(queue=queue) for _ in range(400)])
    for batch in (1, 4, 7):
        taken = Counter(claim.queue for _ in range(84 // batch) for claim in desk.claim(batch))
        assert taken["light"] == pytest.approx(21, abs=1)
        assert taken["heavy"] == pytest.approx(63, abs=1)


def test_a_queue_that_was_empty_has_not_saved_up_turns(desk: Desk) -> None:
    desk.store.enqueue([desk.new(queue="busy") for _ in range(200)])
    desk.claim(100)
    desk.store.enqueue([desk.new(queue="fresh") for _ in range(100)])
    taken = Counter(claim.queue for claim in desk.claim(20))
    assert taken["busy"] == pytest.approx(10, abs=1)


def test_a_queue_with_too_few_jobs_leaves_its_turns_to_the_others(desk: Desk) -> None:
    desk.store.set_queue("heavy", {"weight": 9})
    desk.add(queue="heavy")
    light = [desk.add(queue="light") for _ in range(5)]
    assert len(desk.claim(6)) == 6
    assert all(desk.state(job) is State.PROCESSING for job in light)


def test_due_jobs_are_promoted_by_the_claim(desk: Desk) -> None:
    job = desk.add(delay=10)
    assert desk.claim() == []
    assert desk.store.next_due() == desk.clock.now + 10_000
    desk.clock.advance(10)
    assert desk.claimed() == [job]


def test_a_scheduled_job_is_ready_from_its_time_on(desk: Desk) -> None:
    scheduled = desk.add(delay=10)
    desk.clock.advance(20)
    later = desk.add()
    assert desk.claimed(2) == [scheduled, later]


def test_no_job_is_started_after_its_expiry(desk: Desk) -> None:
    desk.store.enqueue([desk.new(expires=10) for _ in range(450)])
    alive = desk.add()
    desk.clock.advance(10)
    assert desk.claimed(1000) == [alive]
    assert desk.store.counts()["dead"] == 450


def test_ties_go_by_id_between_keys_too(desk: Desk) -> None:
    """A key that is older than another is not in front of it for that."""
    first = desk.add(concurrency_key="old")
    second = desk.add(concurrency_key="new")
    third = desk.add(concurrency_key="old")
    assert desk.run() == first
    assert desk.claimed(1) == [second]
    assert desk.claimed(1) == [third]


def test_among_many_keys_the_oldest_jobs_are_taken(desk: Desk) -> None:
    keys = [f"key-{n}" for n in range(50)]
    for key in keys:
        desk.add(concurrency_key=key)
    jobs = [desk.add(concurrency_key=key) for key in reversed(keys)]
    for _ in keys:
        desk.run()
    assert [desk.claimed(1) for _ in keys] == [[job] for job in jobs]
