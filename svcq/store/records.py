"""What a line of an export may hold, checked before any of it reaches the tables.

Whatever a program reads later, it trusts: a policy that is no JSON, or a job that is processing
without a worker, would trouble the store long after the import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from svcq.cron import parse_cron
from svcq.errors import InvalidInput, shown
from svcq.jobs import FINISHED, How, State
from svcq.policy import (
    DURATIONS,
    MAX_PRIORITY,
    POLICY_NAMES,
    check_choice,
    check_int,
    check_job_name,
    check_name,
    check_number,
    check_policy,
    check_when,
    clean_text,
    make_plan,
    read_options,
    storable_text,
)
from svcq.schedules import MISSED, OURS, OVERLAP
from svcq.schedules import How as Fired
from svcq.store.lanes import NEVER
from svcq.store.queues import RETENTION_KEYS
from svcq.strict import parse_json

_MAX_ID = 1 << 53
_LATEST = 1 << 53  # in milliseconds
_MAX_COUNT = 1 << 31
_IMPORTED = tuple(state for state in State if state is not State.PROCESSING)

Check = Callable[[Any, str], Any]


def checked_queue(record: object) -> dict[str, Any]:
    queue = _checked(record, "queue", _QUEUE)
    if (queue["rate_count"] is None) != (queue["rate_ms"] is None):
        raise InvalidInput("The queue has one of rate_count and rate_ms without the other.")
    return queue


def checked_job(record: object) -> dict[str, Any]:
    job = _checked(record, "job", _JOB)
    if bool(job["task"]) == bool(job["command"]):
        raise InvalidInput(f"The job {job['id']} has not one of task and command.")
    if (job["state"] in FINISHED) != (job["finished_at"] is not None):
        raise InvalidInput(f"The job {job['id']} is {job['state']}, but finished_at disagrees.")
    if len({run["run"] for run in job["runs"]}) != len(job["runs"]):
        raise InvalidInput(f"The job {job['id']} has a run twice.")
    return job


def checked_schedule(record: object) -> dict[str, Any]:
    schedule = _checked(record, "schedule", _SCHEDULE)
    name = schedule["name"]
    if bool(schedule["task"]) == bool(schedule["command"]):
        raise InvalidInput(f"The schedule {name} has not one of task and command.")
    if sum(schedule[times] is not None for times in ("cron", "every_ms", "at")) != 1:
        raise InvalidInput(f"The schedule {name} has not one of cron, every_ms and at.")
    if schedule["cron"] is not None:
        parse_cron(schedule["cron"], schedule["zone"])
    if any(one["number"] > schedule["firings"] for one in schedule["history"]):
        raise InvalidInput(f"The schedule {name} has a firing beyond its last one.")
    for numbers in (
        [one["number"] for one in schedule["history"]],
        [one["nominal"] for one in schedule["history"] if one["nominal"] is not None],
    ):
        if len(set(numbers)) != len(numbers):
            raise InvalidInput(f"The schedule {name} has a firing twice.")
    return schedule


def _checked(record: object, what: str, checks: Mapping[str, Check]) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise InvalidInput(f"The {what} {shown(record)} is not an object.")
    return {name: check(record.get(name), name) for name, check in checks.items()}


def _maybe(check: Check, default: Any = None) -> Check:
    return lambda value, what: default if value is None else check(value, what)


def _whole(low: int, high: int) -> Check:
    return lambda value, what: check_int(value, what, low, high)


def _state(value: Any, what: str) -> State:
    return State(check_choice(value, what, _IMPORTED))


def _json(value: Any, what: str) -> Any:
    try:
        return parse_json(clean_text(value, what, _MAX_ID))
    except (ValueError, RecursionError):
        raise InvalidInput(f"The {what} {shown(value)} is not JSON.") from None


def _policy(value: Any, what: str) -> str:
    """Job policies and retention as the store keeps them; what a newer program knows may pass."""
    options = _json(value, what)
    if not isinstance(options, dict):
        raise InvalidInput(f"The {what} {shown(value)} are not a JSON object.")
    for name, option in options.items():
        if name in DURATIONS or name in RETENTION_KEYS:
            check_int(option, name, 0, _LATEST)
        elif name in POLICY_NAMES:
            check_policy(name, option)
        elif name == "when":
            check_when(option)
    return str(value)


def _call(value: Any, what: str) -> str:
    match _json(value, what):
        case [list(), dict()]:
            return str(value)
    raise InvalidInput(f"The {what} {shown(value)} are not positional and named arguments.")


def _command(value: Any, what: str) -> str:
    match _json(value, what):
        case str(line) if line:
            return str(value)
        case [*words] if words and all(isinstance(word, str) for word in words):
            return str(value)
    raise InvalidInput(f"The {what} {shown(value)} is neither a line nor a list of words.")


def _tags(value: Any, what: str) -> tuple[str, ...]:
    tags = _json(value, what)
    if not isinstance(tags, list):
        raise InvalidInput(f"The {what} {shown(value)} are not a list.")
    return tuple(check_name(tag, "tag") for tag in tags)


def _environment(value: Any, what: str) -> str:
    variables = _json(value, what)
    if not isinstance(variables, dict) or not all(isinstance(v, str) for v in variables.values()):
        raise InvalidInput("The env is not a JSON object of text.")
    return str(value)


def _result(value: Any, what: str) -> str:
    _json(value, what)
    return str(value)


def _parents(value: Any, what: str) -> list[tuple[int, str, int]]:
    return [_parent(one) for one in _listed(value, what)]


def _parent(value: Any) -> tuple[int, str, int]:
    if not isinstance(value, list) or len(value) != 3:
        raise InvalidInput(f"The parent {shown(value)} is not an id, a need and whether it is met.")
    job, needs, met = value
    return (
        check_int(job, "id of a parent", 1, _MAX_ID),
        check_choice(needs, "need of a parent", ("success", "end")),
        check_int(met, "met of a parent", 0, 1),
    )


def _runs(value: Any, what: str) -> list[dict[str, Any]]:
    return [_checked(one, "run", _RUN) for one in _listed(value, what)]


def _words(value: Any, what: str) -> str:
    """Options as a caller says them."""
    options = _json(value, what)
    if not isinstance(options, dict):
        raise InvalidInput(f"The {what} {shown(value)} are not a JSON object.")
    make_plan(read_options(options), default_queue="default")
    return str(value)


def _history(value: Any, what: str) -> list[dict[str, Any]]:
    return [_checked(one, "firing", _FIRING) for one in _listed(value, what)]


def _listed(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"The {what} {shown(value)} are not a list.")
    return value


def _how(value: Any, what: str) -> How:
    return How(check_choice(value, what, tuple(How)))


_time = _whole(-_LATEST, _LATEST)
_count = _maybe(_whole(0, _MAX_COUNT), 0)

_QUEUE: Mapping[str, Check] = {
    "name": check_name,
    "paused": _whole(0, 1),
    "weight": _whole(1, 1000),
    "concurrency": _maybe(_whole(0, 1_000_000)),
    "rate_count": _maybe(_whole(1, 1_000_000)),
    "rate_ms": _maybe(_whole(1, _LATEST)),
    "aging_ms": _whole(1000, NEVER),
    "dead_letter": _maybe(check_name),
    "options": _policy,
}
_RUN: Mapping[str, Check] = {
    "cpu_ms": _maybe(_whole(0, 2**62)),
    "peak_bytes": _maybe(_whole(0, 2**62)),
    "run": _whole(1, _MAX_COUNT),
    "started_at": _time,
    "ended_at": _time,
    "how": _how,
    "exit_code": _maybe(_whole(-(2**31), 2**32 - 1)),
    "error": _maybe(storable_text),
    "tail": _maybe(storable_text),
    "result": _maybe(_result),
}
_FIRING: Mapping[str, Check] = {
    "number": _whole(1, _MAX_ID),
    "nominal": _maybe(_time),
    "at": _time,
    "how": lambda value, what: check_choice(value, what, tuple(Fired)),
    "job": _maybe(_whole(1, _MAX_ID)),
    "missed": _count,
    "ran": _count,
    "note": _maybe(storable_text),
}
_SCHEDULE: Mapping[str, Check] = {
    "name": check_name,
    "cron": _maybe(clean_text),
    "zone": _maybe(clean_text),
    "every_ms": _maybe(_whole(1000, _LATEST)),
    "at": _maybe(_time),
    "start_at": _maybe(_time),
    "end_at": _maybe(_time),
    "anchor": _time,
    "jitter_ms": _maybe(_whole(0, _LATEST), 0),
    "missed": lambda value, what: check_choice(value, what, MISSED),
    "overlap": lambda value, what: check_choice(value, what, OVERLAP),
    "paused": _maybe(_whole(0, 1), 0),
    "fired_by": _maybe(check_name, OURS),
    "task": _maybe(clean_text, ""),
    "command": _maybe(_command),
    "args": _maybe(_call),
    "options": _words,
    "owner": _maybe(clean_text),
    "created_at": _time,
    "set_at": _time,
    "next_at": _maybe(_time),
    "last_at": _maybe(_time),
    "last_job": _maybe(_whole(1, _MAX_ID)),
    "firings": _count,
    "env": _maybe(_environment),
    "history": _maybe(_history, ()),
}
_JOB: Mapping[str, Check] = {
    "id": _whole(1, _MAX_ID),
    "state": _state,
    "priority": _maybe(_whole(-MAX_PRIORITY, MAX_PRIORITY), 0),
    "run": _count,
    "failures": _count,
    "losses": _count,
    "interruptions": _count,
    "snoozes": _count,
    "ready_at": _maybe(_time),
    "run_at": _maybe(_time),
    "due_at": _maybe(_time),
    "expires_at": _maybe(_time),
    "started_at": _maybe(_time),
    "finished_at": _maybe(_time),
    "reason": _maybe(storable_text),
    "progress": _maybe(lambda value, what: check_number(value, what, 0, 1)),
    "progress_note": _maybe(storable_text),
    "queue": check_name,
    "task": _maybe(clean_text, ""),
    "command": _maybe(_command),
    "args": _maybe(_call),
    "options": _policy,
    "created_at": _time,
    "name": _maybe(lambda value, _: check_job_name(value)),
    "tags": _maybe(_tags, ()),
    "owner": _maybe(clean_text),
    "cwd": _maybe(lambda value, what: clean_text(value, what, 4096)),
    "env": _maybe(_environment),
    "host": _maybe(check_name, ""),
    "condition": _maybe(lambda value, _: check_when(value), ""),
    "key": _maybe(clean_text, ""),
    "key_concurrency": _maybe(_whole(1, 1_000_000)),
    "unique_key": _maybe(clean_text),
    "unique_until": _maybe(_time),
    "orphaned": _maybe(lambda value, what: check_choice(value, what, ("cancel", "wait"))),
    "copy_of": _maybe(_whole(1, _MAX_ID)),
    "moved": _maybe(_whole(-(2**62), 2**62), 0),
    "parents": _maybe(_parents, ()),
    "runs": _maybe(_runs, ()),
}
