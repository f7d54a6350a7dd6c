"""/metrics: what Prometheus reads agrees with what happened."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from svcq.store.ledger import bucket_of
from svcq.web.metrics import Times
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.web.served import Served


def measured(served: Served) -> dict[tuple[str, frozenset[Any]], float]:
    answer = served.ask("GET", "/metrics", token=served.token("token-read"))
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def labels(**said: str) -> frozenset[Any]:
    return frozenset(said.items())


def test_counters_grow_by_what_happens(served: Served) -> None:
    before = measured(served)
    for command in ("exit 0", "exit 0", "exit 3"):
        served.run(command, queue="m")
    after = measured(served)

    def grown(name: str, **said: str) -> float:
        key = (name, labels(**said))
        return after.get(key, 0) - before.get(key, 0)

    assert grown("svcq_jobs_enqueued_total", queue="m") == 3
    assert grown("svcq_runs_started_total", queue="m") == 3
    assert grown("svcq_runs_ended_total", queue="m", how="completed") == 2
    assert grown("svcq_runs_ended_total", queue="m", how="failed") == 1
    assert grown("svcq_job_run_seconds_count", queue="m") == 3
    assert grown("svcq_job_run_seconds_bucket", queue="m", le="+Inf") == 3
    assert grown("svcq_job_wait_seconds_count", queue="m") == 3
    assert after["svcq_jobs", labels(queue="m", state="completed")] == 2
    assert after["svcq_jobs", labels(queue="m", state="dead")] == 1
    # Asked again, nothing is counted twice.
    again = measured(served)
    assert (
        again["svcq_jobs_enqueued_total", labels(queue="m")]
        == after["svcq_jobs_enqueued_total", labels(queue="m")]
    )


def test_how_things_are(served: Served) -> None:
    served.client.queue("waiting", paused=True)
    served.client.command("true", queue="waiting")
    served.client.schedule("late", "true", every="1h")
    found = measured(served)
    assert found["svcq_jobs", labels(queue="waiting", state="pending")] == 1
    eventually(
        lambda: measured(served)["svcq_oldest_pending_seconds", labels(queue="waiting")] > 0,
        PATIENCE,
    )
    assert found["svcq_workers", labels(state="running")] == 1
    assert found["svcq_slots", labels()] >= 1
    assert found["svcq_store_bytes", labels()] > 4096
    assert found["svcq_clock_lag_seconds", labels()] == 0
    served.client.remove_schedule("late")


def test_times_fall_into_the_right_buckets() -> None:
    times = Times.none()
    for ms in (0, 1, 3, 4, 5, 1000, 5_000_000_000):
        times.buckets[bucket_of(ms)] += 1
    found = dict(times.cumulative())
    assert (found["0.001"], found["0.004"], found["0.016"]) == (1, 3, 5)
    assert found["1.024"] == 6
    assert list(found.values()) == sorted(found.values())
    assert found["+Inf"] == 7


def test_without_a_token_there_are_none(served: Served) -> None:
    assert served.ask("GET", "/metrics", token="").status == 401
