"""The API does what the client does, for real jobs of a real service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from svcq.client.verbs import VERBS
from svcq.jobs import Job
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.web.served import Served


def add(served: Served, command: Any = "exit 0", **options: Any) -> int:
    job: int = served.ok("POST", "/jobs", {"command": command, **options})["id"]
    return job


def ended(served: Served, job: int) -> dict[str, Any]:
    served.client.wait(job, PATIENCE)
    found: dict[str, Any] = served.ok("GET", f"/jobs/{job}")
    return found


def test_a_job_is_queued_run_and_seen(served: Served, tmp_path: Path) -> None:
    answer = served.ask(
        "POST", "/jobs",
        {"command": "pwd; echo $COLOUR", "cwd": str(tmp_path), "env": {"COLOUR": "blue"},
         "queue": "api", "name": "first", "tags": ["a", "b"], "priority": 3, "timeout": "30s"},
    )  # fmt: skip
    assert answer.status == 201
    job = answer.json
    assert (job["name"], job["queue"], job["tags"]) == ("first", "api", ["a", "b"])
    assert ended(served, job["id"])["state"] == "completed"
    assert served.client.get(job["id"]).as_json() == served.ok("GET", "/jobs/first")
    output = served.ask("GET", f"/jobs/{job['id']}/output")
    assert output.body.decode() == f"{tmp_path}\nblue\n"
    assert output.headers["content-type"].startswith("text/plain")
    (run,) = served.ok("GET", f"/jobs/{job['id']}/runs")["runs"]
    assert (run["how"], run["exit_code"]) == ("completed", 0)
    assert "ended well" in served.ok("GET", f"/jobs/{job['id']}/why")["why"]
    env = served.ok("GET", f"/jobs/{job['id']}/environment")["variables"]
    assert env["COLOUR"] == "blue"


def test_a_command_that_says_nothing_runs_at_home_as_its_worker_does(served: Served) -> None:
    job = add(served, ["sh", "-c", "pwd; echo $SVCQ_HOME"])
    ended(served, job)
    said = served.ask("GET", f"/jobs/{job}/output").body.decode()
    assert said == f"{Path.home()}\n{served.path}\n"


def test_secrets_are_masked(served: Served) -> None:
    job = add(served, env={"API_TOKEN": "hush", "PLAIN": "seen"}, hold=True)
    env = served.ok("GET", f"/jobs/{job}/environment")["variables"]
    assert (env["API_TOKEN"], env["PLAIN"]) == ("********", "seen")
    env = served.ok("GET", f"/jobs/{job}/environment?masked=false")["variables"]
    assert env["API_TOKEN"] == "hush"


def test_names_may_hold_anything(served: Served) -> None:
    name = "a/b c?d#e%f é .."
    job = add(served, name=name, hold=True)
    assert served.ok("GET", f"/jobs/{quote(name, safe='')}")["id"] == job
    served.ok("POST", f"/jobs/{quote(name, safe='')}/cancel")
    assert served.client.get(job).state == "cancelled"


def test_many_are_queued_or_none(served: Served) -> None:
    before = served.client.counts()
    said = served.ask("POST", "/jobs/batch", {"jobs": [{"command": "true"}, {"command": ""}]})
    assert said.status == 422
    assert "Job 2 of the list" in said.sentence
    assert served.client.counts() == before
    jobs = [{"command": "exit 0", "hold": True}, {"task": "a.b", "args": [1], "hold": True}]
    added = served.ok("POST", "/jobs/batch", {"jobs": jobs})["jobs"]
    assert [one["state"] for one in added] == ["held", "held"]
    assert served.client.get(added[1]["id"]).args == [1]


def test_the_same_request_adds_once(served: Served) -> None:
    key = {"Idempotency-Key": '"first-of-its-kind"'}
    body = {"command": "exit 0", "hold": True}
    first = served.ask("POST", "/jobs", body, key)
    again = served.ask("POST", "/jobs", body, key)
    assert (first.status, again.status) == (201, 201)
    assert first.json["id"] == again.json["id"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    other = served.ask("POST", "/jobs", {**body, "priority": 1}, key)
    assert other.status == 409
    assert "'first-of-its-kind'" in other.sentence
    many = {"Idempotency-Key": "many"}
    jobs = {"jobs": [body, body]}
    before = served.client.counts()["held"]
    assert (
        served.ask("POST", "/jobs/batch", jobs, many).json
        == served.ask("POST", "/jobs/batch", jobs, many).json
    )
    assert served.client.counts()["held"] == before + 2
    bad = served.ask("POST", "/jobs", body, {"Idempotency-Key": ""})
    assert bad.status == 400


def test_a_unique_key_answers_with_the_job_that_has_it(served: Served) -> None:
    body = {"command": "exit 0", "unique_key": "once", "hold": True}
    first = served.ask("POST", "/jobs", body)
    second = served.ask("POST", "/jobs", body)
    assert (first.status, second.status) == (201, 200)
    assert first.json["id"] == second.json["id"]
    refused = served.ask("POST", "/jobs", {**body, "on_duplicate": "refuse"})
    assert refused.status == 409
    assert (refused.json["error"], refused.json["job"]) == ("UniqueTaken", first.json["id"])


def test_jobs_are_listed_by_filters_and_pages(served: Served) -> None:
    jobs = [add(served, f"echo {n}", queue="pages", hold=True, tags=["p"]) for n in range(5)]
    first = served.ok("GET", "/jobs?queue=pages&limit=2")
    assert [job["id"] for job in first["jobs"]] == jobs[:-3:-1]
    second = served.ok("GET", f"/jobs?queue=pages&limit=2&before={first['next']}")
    third = served.ok("GET", f"/jobs?queue=pages&limit=2&before={second['next']}")
    assert [job["id"] for job in (*second["jobs"], *third["jobs"])] == jobs[2::-1]
    assert third["next"] is None
    assert len(served.ok("GET", "/jobs?tag=p&state=held,pending")["jobs"]) == 5
    assert served.ok("GET", "/jobs?queue=pages&state=dead")["jobs"] == []
    assert [job["id"] for job in served.ok("GET", "/jobs?grep=echo+3&queue=pages")["jobs"]] == [
        jobs[3]
    ]
    assert served.ok("GET", "/jobs?queue=pages&since=2999-01-01T00:00:00Z")["jobs"] == []


def test_jobs_are_steered(served: Served) -> None:
    job = add(served, "exit 0", hold=True, queue="steer")
    assert served.ok("POST", f"/jobs/{job}/cancel")["state"] == "cancelled"
    served.ok("POST", f"/jobs/{job}/retry")
    assert ended(served, job)["state"] == "completed"
    copy = served.ok("POST", f"/jobs/{job}/retry", {"copy": True})
    assert copy["id"] > job
    served.ok("PATCH", "/queues/steer", {"paused": True})
    waiting = add(served, "exit 0", queue="steer")
    last = add(served, "exit 0", queue="steer")
    assert served.ok("POST", f"/jobs/{waiting}/hold")["state"] == "held"
    assert served.ok("POST", f"/jobs/{waiting}/release")["state"] == "pending"
    served.ok("POST", f"/jobs/{last}/move")
    line = [one["id"] for one in served.ok("GET", "/line")["jobs"] if one["queue"] == "steer"]
    assert line.index(last) < line.index(waiting)
    edited = served.ok("PATCH", f"/jobs/{waiting}", {"command": ["echo", "new"], "priority": 7})
    assert (edited["command"], edited["priority"]) == (["echo", "new"], 7)
    refused = served.ask("POST", f"/jobs/{job}/release")
    assert refused.status == 409
    assert f"Job {job}" in refused.sentence


def test_a_running_job_stands_still_goes_on_and_is_stopped(served: Served) -> None:
    job = add(served, "echo begun; sleep 60")
    eventually(lambda: served.ask("GET", f"/jobs/{job}/output").body == b"begun\n", PATIENCE)
    assert served.ok("POST", f"/jobs/{job}/suspend")["paused"]
    assert not served.ok("POST", f"/jobs/{job}/suspend", {"paused": False})["paused"]
    assert served.ok("POST", f"/jobs/{job}/cancel")["cancel_requested"]
    assert ended(served, job)["state"] == "cancelled"


def test_queues_are_made_set_paused_and_deleted(served: Served) -> None:
    made = served.ok("PATCH", "/queues/made", {"concurrency": 2, "rate": "10/1m", "timeout": 5})
    assert (made["concurrency"], made["rate"], made["timeout"]) == (2, "10/1m", 5.0)
    assert served.ok("GET", "/queues/made") == made
    assert made in served.ok("GET", "/queues")["queues"]
    served.ok("POST", "/queues/made/pause")
    assert served.client.queue("made").paused
    served.ok("POST", "/queues/made/resume")
    assert served.ok("PATCH", "/queues/made", {"concurrency": None})["concurrency"] is None
    served.ok("DELETE", "/queues/made")
    assert served.ask("GET", "/queues/made").status == 404


def test_dead_letters_are_listed_retried_and_purged(served: Served) -> None:
    job = add(served, "exit 9", queue="letters")
    assert ended(served, job)["state"] == "dead"
    (dead,) = served.ok("GET", "/jobs?state=dead&queue=letters")["jobs"]
    assert (dead["id"], dead["exit_code"]) == (job, 9)
    served.ok("POST", f"/jobs/{job}/retry")
    assert ended(served, job)["run"] == 2
    assert served.ok("POST", "/jobs/retry-dead", {"queue": "others"}) == {"n": 0}
    assert served.ok("POST", "/jobs/retry-dead", {"queue": "letters"}) == {"n": 1}
    assert ended(served, job)["run"] == 3
    assert served.ok("POST", "/jobs/purge", {"state": ["dead"], "queue": "letters"}) == {"n": 1}
    assert served.ask("GET", f"/jobs/{job}").status == 404


def test_numbers(served: Served) -> None:
    job = add(served, "exit 0", queue="numbers")
    ended(served, job)
    assert served.ok("GET", "/counts?queue=numbers")["completed"] == 1
    (stats,) = served.ok("GET", "/stats?queue=numbers&minutes=10")["queues"]
    assert (stats["added"], stats["completed"], stats["run"]["n"]) == (1, 1, 1)
    activity = served.ok("GET", "/activity?queue=numbers")["minutes"]
    assert sum(one["counts"].get("completed", 0) for one in activity) == 1
    (worker,) = served.ok("GET", "/workers")["workers"]
    assert (worker["state"], worker["version"]) == ("running", worker["version"])


def test_schedules(served: Served) -> None:
    made = served.ask(
        "POST", "/schedules",
        {"name": "nightly", "command": "exit 0", "cron": "0 3 * * *", "tz": "Europe/Paris",
         "queue": "night", "priority": 2},
    )  # fmt: skip
    assert made.status == 201
    assert (made.json["cron"], made.json["options"]["queue"]) == ("0 3 * * *", "night")
    assert served.ok("GET", "/schedules/nightly") == made.json
    assert [one["name"] for one in served.ok("GET", "/schedules")["schedules"]] == ["nightly"]
    assert len(served.ok("GET", "/schedules/nightly/next?n=10")["times"]) == 10
    preview = served.ok("GET", f"/next-runs?cron={quote('*/5 * * * *')}&tz=UTC&n=3")
    assert len(preview["times"]) == 3
    changed = served.ok("PATCH", "/schedules/nightly", {"cron": "0 4 * * *", "priority": None})
    assert (changed["cron"], "priority" in changed["options"]) == ("0 4 * * *", False)
    assert served.ok("POST", "/schedules/nightly/pause")["paused"]
    assert not served.ok("POST", "/schedules/nightly/resume")["paused"]
    job = served.ask("POST", "/schedules/nightly/fire")
    assert job.status == 201
    assert job.json["queue"] == "night"
    assert served.ok("GET", f"/jobs/{job.json['id']}/firing")["firing"]["schedule"] == "nightly"
    (firing,) = served.ok("GET", "/schedules/nightly/firings")["firings"]
    assert (firing["how"], firing["job"]) == ("asked", job.json["id"])
    assert served.ok("GET", "/firings")["firings"] == [firing]
    served.ok("DELETE", "/schedules/nightly")
    gone = served.ask("GET", "/schedules/nightly")
    assert gone.status == 404
    assert "nightly" in gone.sentence
    never = served.ask("POST", "/schedules", {"name": "x", "command": "true", "cron": "0 0 30 2 *"})
    assert never.status == 422


def test_settings_are_read_and_the_safe_ones_changed(served: Served) -> None:
    settings = served.ok("GET", "/config")["settings"]
    assert settings["jobs.max_attempts"]["value"] == 1
    assert (settings["store"]["writable"], settings["web.port"]["writable"]) == (False, False)
    changed = served.ok("PATCH", "/config", {"jobs.max_attempts": 7})["settings"]
    assert (changed["jobs.max_attempts"]["value"], changed["jobs.max_attempts"]["set"]) == (7, True)
    # What is queued from now on has it.
    assert served.ok("GET", f"/jobs/{add(served, hold=True)}")["max_attempts"] == 7
    served.ok("PATCH", "/config", {"jobs.max_attempts": 1})
    for body, status in (
        ({"store": "/tmp/x.db"}, 403),
        ({"web.address": "0.0.0.0"}, 403),
        ({"jobs.max_attempts": 0}, 422),
        ({"jobs.max_attempts": True}, 422),
        ({"jobs.nonsense": 1}, 422),
    ):
        refused = served.ask("PATCH", "/config", body)
        assert refused.status == status, body
        assert next(iter(body)) in refused.sentence
    assert served.ok("GET", "/config")["settings"]["jobs.max_attempts"]["value"] == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/jobs/999999", 404),
        ("GET", "/jobs/nobody", 404),
        ("GET", "/jobs/999999/output", 404),
        ("POST", "/jobs/999999/cancel", 404),
        ("POST", "/workers/999999/stop", 404),
        ("POST", "/workers/x/stop", 404),
        ("GET", "/nothing", 404),
        ("GET", "/jobs/", 404),
        ("GET", "/jobs//runs", 404),
        ("DELETE", "/jobs/1", 405),
        ("PUT", "/queues", 405),
    ],
)
def test_what_is_not_there_is_a_sentence(
    served: Served, method: str, path: str, status: int
) -> None:
    answer = served.ask(method, path)
    assert answer.status == status
    assert answer.sentence
    if status == 405:
        assert method not in answer.headers["allow"]


def test_head_is_get_without_its_body(served: Served) -> None:
    answer = served.ask("HEAD", "/counts")
    assert (answer.status, answer.body) == (200, b"")


def test_every_verb_of_the_table_has_its_route(served: Served) -> None:
    paths = served.ok("GET", "/openapi.json")["paths"]
    for verb in VERBS:
        assert verb.method.lower() in paths[f"/api/v1{verb.path}"]


def test_a_job_is_the_same_object_everywhere(served: Served) -> None:
    job = add(served, hold=True)
    shown = served.svcq("show", job, "--json")
    from_command_line = json.loads(shown.stdout)
    del from_command_line["runs"], from_command_line["schedule"]
    assert served.ok("GET", f"/jobs/{job}") == from_command_line
    assert set(from_command_line) <= set(Job._fields)
