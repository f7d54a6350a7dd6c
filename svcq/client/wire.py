"""What the client's verbs answer, as JSON and back: the service writes it, a remote client reads
it, and the API's document describes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from svcq.jobs import Change, How, Job, Run, State
from svcq.schedules import Firing, Schedule
from svcq.schedules import How as FiringHow
from svcq.store import Activity, Added, Queue, QueueStats, Times, Worker
from svcq.store.clocks import Standing
from svcq.store.queues import read_back
from svcq.times import iso, parse_moment
from svcq.why import Why

Json = Any


class Kind(NamedTuple):
    """One kind of answer: `schema` is its name in the API's document."""

    schema: str
    write: Callable[[Any], Json]
    read: Callable[[Json], Any]


def many(kind: Kind, name: str) -> Kind:
    """A list of them, under a name: an object can be added to later."""
    return Kind(
        f"{kind.schema}List",
        lambda values: {name: [kind.write(value) for value in values]},
        lambda said: [kind.read(value) for value in said[name]],
    )


def said(value: Any) -> Json:
    """What a caller may give to a verb, as JSON has it."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.astimezone().isoformat()
    if isinstance(value, Mapping):
        return {key: said(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [said(inner) for inner in value]
    return value


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _read_job(given: Mapping[str, Any]) -> Job:
    values = {name: given[name] for name in Job._fields if name in given}
    for name in ("created_at", "run_at", "expires_at", "started_at", "finished_at"):
        values[name] = _time(values[name])
    values["state"] = State(values["state"])
    for name in ("tags", "after"):
        values[name] = tuple(values[name])
    return Job(**{"args": [], "kwargs": {}, **values})


def _read_run(given: Mapping[str, Any]) -> Run:
    times = {name: _time(given[name]) for name in ("started_at", "ended_at")}
    return Run(**{**_known(Run, given), **times, "how": How(given["how"])})


def _read_change(given: Mapping[str, Any]) -> Change:
    return Change(**{**_known(Change, given), "at": _time(given["at"])})


def _read_worker(given: Mapping[str, Any]) -> Worker:
    unsaid = {"boot": None, "born": None, "program": 0, "beat": 0, "lease_until": None,
              "silence_ms": None}  # fmt: skip
    times = {"started_at": _ms(given["started_at"]), "heard_at": _ms(given.get("heard_at"))}
    return Worker(**{**unsaid, **_known(Worker, given), **times})


def _read_stats(given: Mapping[str, Any]) -> QueueStats:
    return QueueStats(**{**_known(QueueStats, given), **_read_times(given)})


def _read_activity(given: Mapping[str, Any]) -> Activity:
    known = {**_known(Activity, given), "minute": _time(given["minute"])}
    return Activity(**{**known, **_read_times(given)})


def _read_times(given: Mapping[str, Any]) -> dict[str, Times]:
    """A service of an older version may say less."""
    return {name: Times(**_known(Times, given[name])) for name in ("wait", "run") if name in given}


def _read_why(given: Mapping[str, Any]) -> Why:
    return Why(
        job=given["job"],
        state=State(given["state"]),
        cause=given["cause"],
        text=given["why"],
        at=None if given["at"] is None else parse_moment(given["at"]),
        jobs=tuple(given["jobs"]),
        in_front=given["in_front"],
    )


def _write_schedule(schedule: Schedule) -> Json:
    return {
        **schedule.as_json(),
        **{name: getattr(schedule, name) for name in _SCHEDULE_NOTES},
        **{f"{name}_at": iso(getattr(schedule, f"{name}_ms")) for name in _SCHEDULE_TIMES},
    }


def _read_schedule(given: Mapping[str, Any]) -> Schedule:
    args = [given["args"], given["kwargs"]] if "task" in given else None
    values = {
        **_known(Schedule, given),
        "zone": given["tz"],
        "every_ms": None if given["every"] is None else round(given["every"] * 1000),
        "jitter_ms": round(given["jitter"] * 1000),
        "task": given.get("task", ""),
        "paused": int(given["paused"]),
        "command_json": _compact(given["command"]) if "command" in given else None,
        "args_json": None if args is None else _compact(args),
        "options_json": _compact(given["options"]),
        **{f"{name}_ms": _ms(given[name]) for name in ("at", "start", "end")},
        **{
            f"{name}_ms": _ms(given[f"{name}_at"])
            for name in ("created", "next", "last", *_SCHEDULE_TIMES)
        },
    }
    return Schedule(**values)


def _compact(value: Any) -> str:
    """As the store writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# What the service knows of it beside what people are shown.
_SCHEDULE_NOTES = ("revision", "firings", "last_how", "last_missed", "last_ran", "last_note")
_SCHEDULE_TIMES = ("anchor", "set", "due")


def _read_firing(given: Mapping[str, Any]) -> Firing:
    times = {"nominal_ms": _ms(given["nominal"]), "at_ms": _ms(given["at"])}
    return Firing(**{**_known(Firing, given), **times, "how": FiringHow(given["how"])})


def _write_clock(clock: Standing) -> Json:
    return {**clock.as_json(), "next_due": iso(clock.next_due)}


def _read_clock(given: Mapping[str, Any]) -> Standing:
    return Standing(
        tuple(given["pids"]),
        given["schedules"],
        given["active"],
        given["paused"],
        _ms(given["next_due"]),
        given["next"],
        _ms(given["next_at"]),
        tuple(given.get("elsewhere", ())),
    )


def _ms(text: str | None) -> int | None:
    return None if text is None else parse_moment(text)


def _known(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """A newer service may say more than this program knows of."""
    return {name: given[name] for name in kind._fields if name in given}


def _write_added(added: Added) -> Json:
    return {"id": added.id, "state": added.state.value, "created": added.created}


def _read_added(given: Mapping[str, Any]) -> Added:
    return Added(given["id"], State(given["state"]), 0, created=given["created"])


def _same(value: Any) -> Any:
    return value


def _as_json(value: Any) -> Json:
    return value.as_json()


NOTHING = Kind("Nothing", lambda _: {}, lambda _: None)
COUNTS = Kind("Counts", _same, _same)
NUMBER = Kind("Number", lambda n: {"n": n}, lambda given: given["n"])
VARIABLES = Kind("Variables", lambda env: {"variables": env}, lambda given: given["variables"])
JOB = Kind("Job", _as_json, _read_job)
ADDED = Kind("Added", _write_added, _read_added)
RUN = Kind("Run", _as_json, _read_run)
WHY = Kind("Why", _as_json, _read_why)
CHANGE = Kind("Change", _as_json, _read_change)
QUEUE = Kind("Queue", _as_json, lambda given: Queue(**read_back(given)))
WORKER = Kind("Worker", _as_json, _read_worker)
STATS = Kind("QueueStats", _as_json, _read_stats)
ACTIVITY = Kind("Activity", _as_json, _read_activity)
SCHEDULE = Kind("Schedule", _write_schedule, _read_schedule)
FIRING = Kind("Firing", _as_json, _read_firing)
MAYBE_FIRING = Kind(
    "MaybeFiring",
    lambda firing: {"firing": None if firing is None else firing.as_json()},
    lambda given: None if given["firing"] is None else _read_firing(given["firing"]),
)
TIMES = Kind(
    "Times",
    lambda times: {"times": [time.isoformat() for time in times]},
    lambda given: [_time(text) for text in given["times"]],
)
CLOCK = Kind("Clock", _write_clock, _read_clock)
