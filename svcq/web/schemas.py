"""What the API's document says of each kind of value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svcq.client.verbs import COMMAND, FLAG, LABEL, NAME, STATE, TEXT, whole
from svcq.config import SETTINGS
from svcq.jobs import How
from svcq.policy import MAX_PARENTS, MAX_PRIORITY, MAX_TAGS
from svcq.schedules import MISSED, OVERLAP
from svcq.schedules import How as FiringHow
from svcq.web.settings import is_safe

Schema = Mapping[str, Any]

_WORDS = r"^(\d+(\.\d+)?(ms|[smhdw]))+$"
DURATION: Schema = {
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": 3_153_600_000},
        {"type": "string", "pattern": _WORDS},
    ],
    "description": 'seconds, or words such as "90s", "5m", "1h30m"',
}
MOMENT: Schema = {
    "anyOf": [
        {"type": "string", "format": "date-time"},
        {"type": "number", "minimum": 0, "maximum": 32_503_680_000},
    ],
    "description": "ISO 8601, or Unix seconds",
}
SIZE: Schema = {
    "anyOf": [
        {"type": "integer", "minimum": 4096, "maximum": 1 << 50},
        {"type": "string", "pattern": r"^\d+(\.\d+)? ?[KMGTkmgt]?([iI]?[bB])?$"},
    ],
    "description": 'bytes, or words such as "512M"',
}
CODES: Schema = {"type": "array", "items": whole(-(2**31), 2**32 - 1)}
JOB_ID = whole(1, 1 << 62)
PARENTS: Schema = {
    "anyOf": [JOB_ID, {"type": "array", "items": JOB_ID, "maxItems": MAX_PARENTS}],
}
TIME: Schema = {"type": "string", "format": "date-time"}
ANYTHING: Schema = {}


def number(low: float, high: float) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high}


def one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


# What holds for a job, or for all of a queue.
POLICIES: dict[str, Schema] = {
    "max_attempts": whole(1, 1000),
    "backoff": one_of("exponential", "linear", "fixed"),
    "backoff_base": number(0, 86400),
    "backoff_cap": DURATION,
    "jitter": number(0, 1),
    "timeout": DURATION,
    "grace": DURATION,
    "on_lost": one_of("retry", "dead"),
    "max_losses": whole(0, 1000),
    "max_interruptions": whole(0, 1_000_000),
    "success": CODES,
    "retry_on": CODES,
    "reject": CODES,
    "notify": FLAG,
    "tty": FLAG,
    "max_output": SIZE,
    "when_over": one_of("drop", "end"),
    "keep_awake": one_of("mains", "always", "never"),
    "nice": whole(-20, 19),
    "cpus": whole(1, 4096),
    "memory": SIZE,
}
OPTIONS: dict[str, Schema] = {
    "queue": LABEL,
    "name": NAME,
    "tags": {"type": "array", "items": LABEL, "maxItems": MAX_TAGS},
    "priority": whole(-MAX_PRIORITY, MAX_PRIORITY),
    "delay": DURATION,
    "run_at": MOMENT,
    "expires": DURATION,
    "hold": FLAG,
    **POLICIES,
    "unique_key": NAME,
    "unique_for": DURATION,
    "on_duplicate": one_of("existing", "refuse", "replace"),
    "after": PARENTS,
    "after_any": PARENTS,
    "if_parent_fails": one_of("cancel", "wait"),
    "when": {**NAME, "description": "a condition, such as ac-power or battery>30"},
    "host": LABEL,
    "concurrency_key": NAME,
    "concurrency": whole(1, 1_000_000),
    "cwd": {**TEXT, "pattern": "^/"},
    "env": {"type": "object", "additionalProperties": {"type": "string"}},
}
_CALL: dict[str, Schema] = {
    "command": COMMAND,
    "task": NAME,
    "args": {"type": "array"},
    "kwargs": {"type": "object"},
}
_WHEN: dict[str, Schema] = {
    "cron": {**TEXT, "description": "five fields or an @name, as crontab(5) has them"},
    "every": DURATION,
    "at": MOMENT,
    "tz": {**TEXT, "description": "an IANA name, such as Europe/Paris"},
    "start": MOMENT,
    "end": MOMENT,
    "missed": one_of(*MISSED),
    "overlap": one_of(*OVERLAP),
}
QUEUE_SETTINGS: dict[str, Schema] = {
    "paused": FLAG,
    "weight": whole(1, 1000),
    "concurrency": whole(0, 1_000_000),
    "rate": {"type": "string", "pattern": r"^\d{1,7}/(\d+(\.\d+)?(ms|[smhdw]))+$"},
    "aging": {"anyOf": [*DURATION["anyOf"], one_of("never")]},
    "dead_letter": LABEL,
    "when": NAME,
    "keep_completed": DURATION,
    "keep_dead": DURATION,
    "keep_cancelled": DURATION,
    **POLICIES,
}
_NOT_OF_SCHEDULES = ("name", "run_at", "after", "after_any", "if_parent_fails")


def _object(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    """An answer: more may be added to it later."""
    properties = {**required, **optional}
    return {"type": "object", "properties": properties, "required": list(required)}


def _request(properties: Mapping[str, Schema], *, null: bool, **more: Any) -> Schema:
    """What a caller may send; nothing else is taken."""
    allowed = {name: maybe(one) if null else one for name, one in properties.items()}
    return {"type": "object", "properties": allowed, "additionalProperties": False, **more}


_TEXT: Schema = {"type": "string"}
_MORE: Schema = {
    "type": "object",
    "description": "options of its jobs that have a name of the schedule's own, such as jitter",
    "properties": {name: maybe(one) for name, one in OPTIONS.items()},
    "additionalProperties": False,
}
_VALUE: Schema = {"type": ["string", "number"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_COUNTS: Schema = {"type": "object", "additionalProperties": _COUNT}
_ID: Schema = {"type": "integer", "minimum": 1}
_TIMES = _object(
    {"n": _COUNT, **{name: maybe({"type": "number"}) for name in ("mean", "p50", "p95", "p99")}}
)
_SCHEDULE_OPTIONS = {name: one for name, one in OPTIONS.items() if name not in _NOT_OF_SCHEDULES}

SCHEMAS: dict[str, Schema] = {
    "Problem": _object(
        {"type": _TEXT, "title": _TEXT, "status": whole(400, 599), "detail": _TEXT, "error": _TEXT},
        job=_ID,
    ),
    "Nothing": {"type": "object"},
    "Number": _object({"n": _COUNT}),
    "Counts": {"type": "object", "additionalProperties": _COUNT},
    "Variables": _object(
        {"variables": maybe({"type": "object", "additionalProperties": _TEXT})}
    ),
    "Job": _object(
        {
            "id": _ID, "queue": _TEXT, "state": STATE, "name": maybe(_TEXT),
            "reason": maybe(_TEXT), "priority": {"type": "integer"}, "run": _COUNT,
            "attempts": _COUNT, "max_attempts": _COUNT, "failures": _COUNT, "losses": _COUNT,
            "interruptions": _COUNT, "snoozes": _COUNT, "created_at": TIME, "run_at": maybe(TIME),
            "expires_at": maybe(TIME), "started_at": maybe(TIME), "finished_at": maybe(TIME),
            "exit_code": maybe({"type": "integer"}), "error": maybe(_TEXT),
            "progress": maybe(number(0, 1)), "progress_note": maybe(_TEXT),
            "cancel_requested": FLAG, "paused": FLAG, "result": ANYTHING,
            "tags": {"type": "array", "items": _TEXT}, "owner": maybe(_TEXT),
            "worker": maybe(_ID), "options": {"type": "object"}, "cwd": maybe(_TEXT),
            "host": maybe(_TEXT), "condition": maybe(_TEXT), "concurrency_key": maybe(_TEXT),
            "unique_key": maybe(_TEXT), "after": {"type": "array", "items": _ID},
            "copy_of": maybe(_ID),
        },
        **_CALL,
    ),
    "JobList": _object({"jobs": {"type": "array", "items": ref("Job")}}, next=maybe(_ID)),
    "Added": _object({"id": _ID, "state": STATE, "created": FLAG}),
    "AddedList": _object({"jobs": {"type": "array", "items": ref("Added")}}),
    "Run": _object(
        {
            "job": _ID, "run": _ID, "worker": maybe(_ID), "host": maybe(_TEXT),
            "started_at": TIME, "ended_at": TIME, "how": one_of(*How),
            "exit_code": maybe({"type": "integer"}), "error": maybe(_TEXT), "tail": maybe(_TEXT),
            "result": ANYTHING, "cpu_ms": maybe(_COUNT), "peak_bytes": maybe(_COUNT),
        }
    ),
    "RunList": _object({"runs": {"type": "array", "items": ref("Run")}}),
    "Why": _object(
        {
            "job": _ID, "state": STATE, "cause": _TEXT, "why": _TEXT, "at": maybe(TIME),
            "jobs": {"type": "array", "items": _ID}, "in_front": maybe(_COUNT),
        }
    ),
    "Change": _object({"seq": _ID, "job": _COUNT, "kind": _TEXT, "at": TIME}),
    "Changes": _object(
        {
            "changes": {"type": "array", "items": ref("Change")}, "cursor": _COUNT,
            "missed": FLAG,
        }
    ),
    "Queue": _object(
        {
            "name": _TEXT, "paused": FLAG, "weight": _ID, "concurrency": maybe(_COUNT),
            "rate": maybe(_TEXT), "aging": _TEXT, "dead_letter": maybe(_TEXT),
        }
    ),
    "QueueList": _object({"queues": {"type": "array", "items": ref("Queue")}}),
    "QueueSettings": _request(QUEUE_SETTINGS, null=True),
    "QueueStats": _object(
        {
            "queue": _TEXT, "counts": _COUNTS, "oldest": maybe(number(0, 1e12)), "added": _COUNT,
            "tasks": {"type": "object", "additionalProperties": _COUNTS}, "completed": _COUNT,
            "failed": _COUNT, "wait": _TIMES, "run": _TIMES,
        }
    ),
    "QueueStatsList": _object({"queues": {"type": "array", "items": ref("QueueStats")}}),
    "Activity": _object(
        {"minute": TIME, "queue": _TEXT, "counts": _COUNTS, "wait": _TIMES, "run": _TIMES}
    ),
    "ActivityList": _object({"minutes": {"type": "array", "items": ref("Activity")}}),
    "Worker": _object(
        {
            "id": _ID, "host": _TEXT, "pid": _COUNT, "started_at": TIME, "slots": _COUNT,
            "running": _COUNT, "version": _TEXT, "state": _TEXT, "heard_at": maybe(TIME),
        }
    ),
    "WorkerList": _object({"workers": {"type": "array", "items": ref("Worker")}}),
    "Schedule": _object(
        {
            "name": _TEXT, "cron": maybe(_TEXT), "tz": maybe(_TEXT),
            "every": maybe({"type": "number"}), "at": maybe(TIME), "start": maybe(TIME),
            "end": maybe(TIME), "jitter": {"type": "number"}, "missed": one_of(*MISSED),
            "overlap": one_of(*OVERLAP), "paused": FLAG, "fired_by": _TEXT,
            "options": {"type": "object"}, "owner": maybe(_TEXT), "created_at": TIME,
            "next_at": maybe(TIME), "last_at": maybe(TIME), "last_job": maybe(_ID), "says": _TEXT,
        },
        **_CALL,
    ),
    "ScheduleList": _object({"schedules": {"type": "array", "items": ref("Schedule")}}),
    "Firing": _object(
        {
            "schedule": _TEXT, "number": _ID, "nominal": maybe(TIME), "at": TIME,
            "how": one_of(*FiringHow), "job": maybe(_ID), "missed": _COUNT, "ran": _COUNT,
            "note": maybe(_TEXT), "says": _TEXT,
        }
    ),
    "FiringList": _object({"firings": {"type": "array", "items": ref("Firing")}}),
    "MaybeFiring": _object({"firing": maybe(ref("Firing"))}),
    "Times": _object({"times": {"type": "array", "items": TIME}}),
    "Options": _request({**OPTIONS, "command": COMMAND}, null=True),
    "NewJob": _request(
        {**_CALL, **{name: maybe(one) for name, one in OPTIONS.items()}}, null=False,
        oneOf=[{"required": ["command"]}, {"required": ["task"]}],
    ),
    "NewJobs": _request(
        {"jobs": {"type": "array", "items": ref("NewJob"), "minItems": 1, "maxItems": 10_000}},
        null=False, required=["jobs"],
    ),
    "NewSchedule": _request(
        {"name": LABEL, **_CALL, **_SCHEDULE_OPTIONS, **_WHEN, "replace": FLAG, "paused": FLAG,
         "options": _MORE}, null=False,
        required=["name"],
    ),
    "ScheduleChanges": _request(
        {**_CALL, **_SCHEDULE_OPTIONS, **_WHEN, "options": _MORE}, null=True
    ),
    "Clock": _object(
        {
            "running": FLAG, "pids": {"type": "array", "items": _ID},
            "elsewhere": {"type": "array", "items": _TEXT}, "schedules": _COUNT,
            "active": _COUNT, "paused": _COUNT, "next": maybe(_TEXT), "next_at": maybe(TIME),
            "next_due": maybe(TIME),
        }
    ),
    "Service": _object(
        {
            "version": _TEXT, "pid": _ID, "started_at": TIME, "resting": FLAG,
            "workers": {"type": "array", "items": ref("Worker")}, "clock": {"type": "object"},
            "caller": _object({"name": maybe(_TEXT), "role": one_of("reader", "user", "admin")}),
        }
    ),
    "OutputPlace": _object({"run": _ID, "size": maybe(_COUNT), "start": _COUNT}),
    "Settings": _object(
        {
            "settings": {
                "type": "object",
                "additionalProperties": _object(
                    {
                        "value": _VALUE, "default": _VALUE, "set": FLAG, "about": _TEXT,
                        "allowed": _TEXT, "writable": FLAG,
                    }
                ),
            }
        }
    ),
    "SettingChanges": {
        "type": "object",
        "properties": {key: maybe(_VALUE) for key in SETTINGS if is_safe(key)},
        "additionalProperties": False,
    },
}  # fmt: skip
