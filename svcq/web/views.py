"""What each view of the page holds: reads of the client, put the way the templates want them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from svcq.client import Client
from svcq.ends import title_of, what_runs
from svcq.environment import masked
from svcq.errors import NotFound, SvcqError
from svcq.handoff import SCHEDULER
from svcq.jobs import FINISHED, Job, Run, State
from svcq.logs import log_file, tail
from svcq.schedules import How, Schedule
from svcq.store import Queue, Worker
from svcq.times import format_duration, moment
from svcq.web import shape
from svcq.web.callers import Caller
from svcq.why import Why, clock_time

_PAGE = 50
_RUNNING = 12
_WAITING = 5
_ENDED = 8
_SOON = 4
_SPANS = ((60, "the last hour"), (360, "6 hours"), (1440, "a day"), (10080, "a week"))
_AS_PLANNED = (How.FIRED, How.ASKED)
_TONES = {"dead": "bad", "processing": "run", "completed": "good"}

View = Callable[[Client, Mapping[str, str], Caller], dict[str, Any]]


def now(client: Client, _: Mapping[str, str], __: Caller) -> dict[str, Any]:
    counts = client.counts()
    workers = client.workers()
    running = client.list(state=State.PROCESSING, limit=_RUNNING) if counts["processing"] else []
    ended = sorted(
        (job for state in FINISHED for job in client.list(state=state, limit=_ENDED)),
        key=lambda job: (job.finished_at is not None, job.finished_at),
        reverse=True,
    )[:_ENDED]
    hour = client.stats(minutes=60)
    queues = client.queues()
    return {
        "title": "Now",
        "counts": counts,
        "later": counts["scheduled"] + counts["retrying"] + counts["blocked"] + counts["held"],
        "hour": {"completed": sum(one.completed for one in hour)},
        "running": [
            {
                "job": job,
                "title": title_of(job),
                "left": shape.left(job),
                "last": _last_line(client, job),
            }
            for job in running
        ],
        "waiting": [
            {"job": job, "title": title_of(job), "why": _why(client, job)}
            for job in (client.first_in_line(_WAITING) if counts["pending"] else [])
        ],
        "ended": [{"job": job, "title": title_of(job)} for job in ended],
        "busy": sum(one.running for one in workers),
        "slots": sum(one.slots for one in workers),
        "paused": bool(queues) and all(queue.paused for queue in queues),
        "all_queues": lambda verb: ", ".join(
            f"POST /api/v1/queues/{quote(queue.name, safe='')}/{verb}" for queue in queues
        ),
        "upcoming": _upcoming(client),
    }


def jobs(client: Client, asked: Mapping[str, str], _: Caller) -> dict[str, Any]:
    wanted = {key: asked.get(key, "").strip() for key in ("state", "queue", "tag", "grep")}
    said: dict[str, Any] = {key: value for key, value in wanted.items() if value}
    if before := asked.get("before", ""):
        said["before"] = int(before) if before.isdecimal() and len(before) < 19 else None
    found = client.list(**said, limit=_PAGE + 1)
    counts = client.counts()

    def with_filter(**changes: Any) -> str:
        chosen = {**wanted, **changes}
        query = urlencode({key: value for key, value in chosen.items() if value})
        return f"/jobs?{query}" if query else "/jobs"

    return {
        "title": "Jobs",
        "jobs": [shape.shown(job) for job in found[:_PAGE]],
        "older": found[_PAGE - 1].id if len(found) > _PAGE else None,
        "counts": counts,
        "total": sum(counts.values()),
        "filter": wanted,
        "filtered": bool(said),
        "order": _order(wanted["state"]),
        "with_filter": with_filter,
    }


def job(client: Client, asked: Mapping[str, str], caller: Caller) -> dict[str, Any]:
    shown = client.get(asked["job"])
    runs = client.runs(shown)
    mine = caller.may_look_into(shown.owner)
    environment = client.environment(shown) if mine else None
    return {
        "title": title_of(shown),
        "job": shown,
        "why": _with_times(client.explain(shown), shown),
        "tone": _TONES.get(shown.state.value, ""),
        "verbs": shape.verbs_of(shown),
        "editable": shown.state not in FINISHED and shown.state is not State.PROCESSING,
        "runs": [
            {
                **run._asdict(),
                "how": run.how.value,
                "took": shape.took(run),
                "used": shape.used(run),
            }
            for run in runs
        ],
        "bars": shape.bars(runs),
        "logs": _logs(shown, runs),
        "facts": _facts(shown),
        "spelled": shape.spelled(shown),
        "environment": None if environment is None else masked(environment),
    }


def queues(client: Client, _: Mapping[str, str], __: Caller) -> dict[str, Any]:
    hour = {one.queue: one for one in client.stats(minutes=60)}
    return {
        "title": "Queues",
        "queues": [_queue(one, hour.get(one.name)) for one in client.queues()],
    }


def workers(client: Client, _: Mapping[str, str], __: Caller) -> dict[str, Any]:
    found = client.workers()
    hosts: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(found, key=lambda one: (one.host, one.id)):
        hosts.setdefault(one.host, []).append(_worker(one))
    return {
        "title": "Workers",
        "hosts": hosts,
        "busy": sum(one.running for one in found),
        "slots": sum(one.slots for one in found),
    }


def letters(client: Client, asked: Mapping[str, str], _: Caller) -> dict[str, Any]:
    before = asked.get("before", "")
    found = client.list(
        state=State.DEAD, limit=_PAGE + 1, before=int(before) if before.isdecimal() else None
    )
    return {
        "title": "Dead letters",
        "letters": [shape.shown(job) for job in found[:_PAGE]],
        "older": found[_PAGE - 1].id if len(found) > _PAGE else None,
        "total": client.counts()["dead"],
    }


def activity(client: Client, asked: Mapping[str, str], _: Caller) -> dict[str, Any]:
    spans = dict(_SPANS)
    minutes = int(asked.get("minutes", "") if asked.get("minutes", "").isdecimal() else 60)
    minutes = minutes if minutes in spans else 60
    queue = asked.get("queue") or None
    return {
        "title": "Activity",
        "spans": _SPANS,
        "minutes": minutes,
        "span_text": spans[minutes],
        "queue": queue,
        "stats": client.stats(queue, minutes=minutes),
    }


def _why(client: Client, job: Job) -> str:
    try:
        # The view says already which state they are in.
        return client.why(job).removeprefix(f"{job.state.value}: ")
    except NotFound:  # it was removed meanwhile
        return ""


def _with_times(why: Why, job: Job) -> list[str | datetime]:
    """The sentences, with times as such: they are told in the reader's zone, as all others are."""
    known = [why.at and moment(why.at), job.run_at, job.finished_at, job.expires_at]
    return shape.split_at({clock_time(one): one for one in known if one}, why.text)


def _last_line(client: Client, job: Job) -> str:
    last = tail(log_file(client.config.home, job.id, job.run), 1) or ""
    return shape.without_codes(last.rpartition("\r")[2] or last)


def _upcoming(client: Client) -> list[dict[str, Any]]:
    """Of all there are, however many: those of our clocks, and those that were handed over."""
    found = [
        *client.store.timetable.coming(_SOON),
        *client.schedules(fired_by=SCHEDULER, paused=False),
    ]
    soon = sorted((one.next_at, one.name) for one in found if one.next_at is not None)
    return [{"name": name, "next_at": at} for at, name in soon[:_SOON]]


def _order(state: str) -> str:
    match state:
        case "scheduled" | "retrying":
            return "the next to be due first"
        case "completed" | "dead" | "cancelled":
            return "the last to end first"
        case _:
            return "newest first"


def _logs(job: Job, runs: list[Run]) -> list[int]:
    """The runs whose output is there: those of the history, and the one that is under way."""
    numbers = sorted({run.run for run in runs} | ({job.run} if job.run else set()))
    return numbers[-50:]


def _facts(job: Job) -> list[tuple[str, Any]]:
    facts: list[tuple[str, Any]] = [
        ("task" if job.task else "folder", job.task or job.cwd),
        ("queue", job.queue),
        ("priority", job.priority or None),
        ("attempts", f"{job.attempts} of {job.max_attempts}"),
        ("exit code", job.exit_code),
        ("added", job.created_at),
        ("not before", job.run_at),
        ("expires", job.expires_at),
        ("started", job.started_at),
        ("ended", job.finished_at),
        ("only when", job.condition),
        ("only on", job.host),
        ("key", job.concurrency_key),
        ("unique", job.unique_key),
        ("copy of", job.copy_of),
        *(
            (name.replace("_", " "), value)
            for name, value in job.options.items()
            if name != "max_attempts"
        ),  # told by the attempts
    ]
    return [(name, value) for name, value in facts if value not in (None, "", [], ())]


def _queue(queue: Queue, hour: Any) -> dict[str, Any]:
    counts = hour.counts if hour else {}
    settings = queue.as_json()
    limits = [
        f"rate {settings['rate']}" if settings["rate"] else "",
        f"weight {queue.weight}" if queue.weight != 1 else "",
        f"aging {settings['aging']}" if settings["aging"] != "1h" else "",
        f"when {queue.options['when']}" if queue.options.get("when") else "",
        f"dead letters to {queue.dead_letter}" if queue.dead_letter else "",
    ]
    waiting = ("pending", "scheduled", "retrying", "blocked", "held")
    return {
        "name": queue.name,
        "paused": queue.paused,
        "concurrency": queue.concurrency,
        "running": counts.get("processing", 0),
        "waiting": sum(counts.get(state, 0) for state in waiting),
        "oldest": ""
        if not hour or hour.oldest is None
        else format_duration(int(hour.oldest) * 1000),
        "completed": hour.completed if hour else 0,
        "failed": hour.failed if hour else 0,
        "limits": ", ".join(filter(None, limits)),
        "settings": {key: value for key, value in settings.items() if value is not None},
    }


def _worker(worker: Worker) -> dict[str, Any]:
    return {**worker._asdict(), "started_at": moment(worker.started_at)}


def schedules(client: Client, asked: Mapping[str, str], _: Caller) -> dict[str, Any]:
    found = client.schedules(after=asked.get("after", ""), limit=_PAGE + 1)
    return {
        "title": "Schedules",
        "schedules": [_schedule(client, one) for one in found[:_PAGE]],
        "last": found[_PAGE - 1].name if len(found) > _PAGE else None,
    }


def _schedule(client: Client, one: Schedule) -> dict[str, Any]:
    args, kwargs = one.call
    last = one.last_firing
    state = None
    if one.last_job is not None:
        try:
            state = client.get(one.last_job).state.value
        except SvcqError:  # it is past its retention
            state = None
    return {
        "name": one.name,
        "title": what_runs(one.task, one.command, args, kwargs),
        "rule": one.cron or one.times,
        "zone": one.zone,
        "paused": bool(one.paused),
        "handed_to": None if one.fired_by == "svcq" else one.fired_by,
        "next_at": one.next_at,
        "last_job": one.last_job if state else None,
        "last_state": state,
        "owner": one.owner,
        "at": moment(one.at_ms) if one.at_ms is not None else None,
        "note": "" if last is None or last.how in _AS_PLANNED else last.says,
        "over": one.over,
    }


VIEWS: Mapping[str, tuple[str, View]] = {
    "/": ("now", now),
    "/jobs": ("jobs", jobs),
    "/jobs/{job}": ("job", job),
    "/queues": ("queues", queues),
    "/schedules": ("schedules", schedules),
    "/workers": ("workers", workers),
    "/letters": ("letters", letters),
    "/activity": ("activity", activity),
}
"""By path: the template, and what it is filled with."""
