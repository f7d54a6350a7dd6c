"""What can be asked of the service: each verb of the client with its place in the API, once.

The service makes its routes and its document of this table, a remote client its requests. A verb's
name is that of a method of the client; what it takes is checked there, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from svcq.client import wire
from svcq.client.wire import Kind, many
from svcq.policy import MAX_SOUGHT
from svcq.states import State

PREFIX = "/api/v1"

Schema = Mapping[str, Any]


class Role(IntEnum):
    """What a caller may do: each includes the one before it."""

    READER = 1
    """See everything but the environments of others' jobs."""
    USER = 2
    """Add jobs, and steer those that are one's own."""
    ADMIN = 3
    """Everything: the owner of the store, and root."""


_BOUNDS = {"minLength": 1, "maxLength": MAX_SOUGHT}
TEXT: Schema = {"type": "string", **_BOUNDS}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
LABEL: Schema = {"type": "string", "pattern": r"^\w[\w.:@-]*$", "minLength": 1, "maxLength": 100}
TIME: Schema = {"type": "string", "description": "ISO 8601, such as 2031-05-01T03:00:00Z"}
FLAG: Schema = {"type": "boolean"}
STATE: Schema = {"type": "string", "enum": [state.value for state in State]}
STATES: Schema = {"type": "array", "items": STATE}
MINUTES: Schema = {"type": "integer", "minimum": 1, "maximum": 525_600, "default": 60}
COMMAND: Schema = {
    "oneOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    ],
    "description": "a line for the shell, or a program and its arguments",
}


def whole(low: int, high: int, default: int | None = None) -> Schema:
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return schema if default is None else {**schema, "default": default}


class Verb(NamedTuple):
    name: str
    method: str
    path: str  # what stands in braces is an argument
    answers: Kind
    about: str
    role: Role = Role.READER
    own: bool = False
    """Only for the job's owner, and for those who may do everything."""
    query: Mapping[str, Schema] = {}
    body: Mapping[str, Schema] | None = None
    rest: str | None = None
    """The schema of all that a body may have besides, as the verb's own keywords."""
    required: tuple[str, ...] = ()
    status: int = 200

    @property
    def tag(self) -> str:
        return self.path.split("/")[1]


def _steer(name: str, about: str, **body: Schema) -> Verb:
    """What is done with one job, which it then answers with."""
    return Verb(
        name, "POST", f"/jobs/{{job}}/{name}", wire.JOB, about, Role.USER, own=True, body=body
    )


_TABLE = (
    # Jobs
    Verb(
        "list", "GET", "/jobs", many(wire.JOB, "jobs"),
        "Jobs, newest first; those of one state that ended by their end, those that wait for "
        "their time by that. `next` is the `before` of the next page.",
        query={"state": STATES, "queue": TEXT, "task": TEXT, "tag": TEXT, "owner": TEXT,
               "since": TIME,
               "grep": TEXT, "before": whole(1, 1 << 53), "limit": whole(1, 1000, 100)},
    ),
    Verb(
        "first_in_line", "GET", "/line", many(wire.JOB, "jobs"),
        "The pending jobs that start next, each queue by its own order.",
        query={"n": whole(1, 1000, 100)},
    ),
    Verb("get", "GET", "/jobs/{job}", wire.JOB, "A job, by its id or its name."),
    Verb(
        "runs", "GET", "/jobs/{job}/runs", many(wire.RUN, "runs"),
        "The runs of a job that failed or left something to show, oldest first.",
    ),
    Verb(
        "explain", "GET", "/jobs/{job}/why", wire.WHY,
        "Why a job is where it is, in a sentence, with the numbers behind it.",
    ),
    Verb(
        "environment", "GET", "/jobs/{job}/environment", wire.VARIABLES,
        "The environment a command was queued with; what looks like a secret is masked.",
        own=True, query={"masked": FLAG},
    ),
    Verb(
        "firing_of", "GET", "/jobs/{job}/firing", wire.MAYBE_FIRING,
        "Which schedule queued a job, and for which time; null for others.",
    ),
    _steer("cancel", "Stop a job: at once if it waits; if it runs, when its process has ended."),
    _steer(
        "retry", "Run an ended job again: the same job once more, or a new one like it.", copy=FLAG
    ),
    _steer("hold", "Park a job that waits until it is released."),
    _steer("release", "Let a held job go."),
    _steer("move", "Put a pending job first, or last, in its queue.", to_front=FLAG),
    _steer("suspend", "Let a running command stand still, or go on.", paused=FLAG),
    Verb(
        "edit", "PATCH", "/jobs/{job}", wire.JOB, "Change a job that waits.", Role.USER, own=True,
        body={"command": COMMAND}, rest="Options",
    ),
    Verb(
        "retry_dead", "POST", "/jobs/retry-dead", wire.NUMBER,
        "Run all dead jobs again, but for those whose unique key is taken; how many there were.",
        Role.ADMIN, body={"queue": {"type": ["string", "null"], **_BOUNDS}},
    ),
    Verb(
        "purge", "POST", "/jobs/purge", wire.NUMBER,
        "Remove all jobs in these states for good; how many there were.", Role.ADMIN,
        body={"state": STATES, "queue": {"type": ["string", "null"], **_BOUNDS}},
        required=("state",),
    ),
    Verb(
        "cleanup", "POST", "/jobs/cleanup", wire.NUMBER,
        "Remove what is past its retention; how many jobs there were.", Role.ADMIN, body={},
    ),
    # Numbers
    Verb(
        "counts", "GET", "/counts", wire.COUNTS, "How many jobs are in each state.",
        query={"queue": TEXT},
    ),
    Verb(
        "stats", "GET", "/stats", many(wire.STATS, "queues"),
        "How long jobs wait and run, by queue.", query={"queue": TEXT, "minutes": MINUTES},
    ),
    Verb(
        "activity", "GET", "/activity", many(wire.ACTIVITY, "minutes"),
        "What happened, minute by minute, oldest first.",
        query={"queue": TEXT, "minutes": MINUTES},
    ),
    # Queues
    Verb("queues", "GET", "/queues", many(wire.QUEUE, "queues"), "The queues."),
    Verb("queue", "GET", "/queues/{name}", wire.QUEUE, "A queue's settings."),
    Verb(
        "queue", "PATCH", "/queues/{name}", wire.QUEUE,
        "Change settings of a queue, or make one; null returns a setting to its default.",
        Role.ADMIN, body={}, rest="QueueSettings",
    ),
    Verb(
        "delete_queue", "DELETE", "/queues/{name}", wire.NOTHING, "Forget an empty queue.",
        Role.ADMIN,
    ),
    Verb(
        "pause", "POST", "/queues/{queue}/pause", wire.NOTHING,
        "Start nothing more from a queue; what runs goes on.", Role.ADMIN, body={},
    ),
    Verb(
        "resume", "POST", "/queues/{queue}/resume", wire.NOTHING, "Let a paused queue go on.",
        Role.ADMIN, body={},
    ),
    # Schedules
    Verb(
        "schedules", "GET", "/schedules", many(wire.SCHEDULE, "schedules"),
        "Schedules by name; `after` is the last name of the page before.",
        query={"paused": FLAG, "task": TEXT, "fired_by": LABEL,
               "after": {"type": "string", "maxLength": 100},
               "limit": whole(1, 10_000, 1000)},
    ),
    Verb("get_schedule", "GET", "/schedules/{name}", wire.SCHEDULE, "A schedule."),
    Verb(
        "schedule_environment", "GET", "/schedules/{name}/environment", wire.VARIABLES,
        "The environment its commands get; what looks like a secret is masked.", own=True,
        query={"masked": FLAG},
    ),
    Verb(
        "edit_schedule", "PATCH", "/schedules/{name}", wire.SCHEDULE,
        "Change what was said of a schedule; null takes an option away.", Role.USER, own=True,
        body={}, rest="ScheduleChanges",
    ),
    Verb(
        "remove_schedule", "DELETE", "/schedules/{name}", wire.NOTHING,
        "Take a schedule away, with its history; the jobs it queued stay.", Role.USER, own=True,
    ),
    Verb(
        "pause_schedule", "POST", "/schedules/{name}/pause", wire.SCHEDULE,
        "Fire no more until it is resumed.", Role.USER, own=True, body={},
    ),
    Verb(
        "resume_schedule", "POST", "/schedules/{name}/resume", wire.SCHEDULE,
        "Let a paused schedule go on.", Role.USER, own=True, body={},
    ),
    Verb(
        "fire_schedule", "POST", "/schedules/{name}/fire", wire.JOB,
        "Queue its job now, beside its times.", Role.USER, own=True, body={}, status=201,
    ),
    Verb(
        "fire_if_due", "POST", "/schedules/{name}/fire-if-due", many(wire.FIRING, "firings"),
        "Queue its job if a time for it has come, as the clock would; what became of it.",
        Role.USER, own=True, body={},
    ),
    Verb(
        "hand_off", "POST", "/schedules/{name}/hand-off", wire.SCHEDULE,
        "Note that another scheduler fires it from now on.", Role.ADMIN, body={"to": LABEL},
        required=("to",),
    ),
    Verb(
        "take_back", "POST", "/schedules/{name}/take-back", wire.SCHEDULE,
        "Let the clock of svcq fire it again.", Role.ADMIN, body={},
    ),
    Verb(
        "next_runs", "GET", "/schedules/{schedule}/next", wire.TIMES,
        "The next times of a schedule.", query={"n": whole(1, 1000, 5), "after": TIME},
    ),
    Verb(
        "next_runs", "GET", "/next-runs", wire.TIMES,
        "The next times of a schedule that is yet to be.",
        query={"n": whole(1, 1000, 5), "after": TIME, "cron": TEXT, "every": TEXT, "at": TEXT,
               "tz": TEXT, "start": TEXT, "end": TEXT},
    ),
    Verb(
        "firings", "GET", "/schedules/{name}/firings", many(wire.FIRING, "firings"),
        "What became of the times of a schedule, newest first.",
        query={"limit": whole(1, 10_000, 100), "before": whole(1, 1 << 53)},
    ),
    Verb(
        "firings", "GET", "/firings", many(wire.FIRING, "firings"),
        "What became of the times of all schedules, newest first.",
        query={"limit": whole(1, 10_000, 100)},
    ),
    Verb("clock", "GET", "/clock", wire.CLOCK, "Who fires schedules, and what comes next."),
    # Workers
    Verb(
        "workers", "GET", "/workers", many(wire.WORKER, "workers"),
        "The workers that run, on all machines.", query={"ended": FLAG},
    ),
    Verb(
        "stop_worker", "POST", "/workers/{worker}/stop", wire.NOTHING,
        "Let a worker finish what it holds and end; `now` gives back what it runs.", Role.ADMIN,
        body={"now": FLAG},
    ),
)  # fmt: skip

VERBS: tuple[Verb, ...] = _TABLE
