"""The API's own document (OpenAPI 3.1), made of the table of verbs and of what is more than one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from starlette.responses import Response

from svcq.client.verbs import FLAG, PREFIX, VERBS, Schema, Verb
from svcq.version import __version__
from svcq.web import metrics, output, session, stream
from svcq.web.api import encoded, json_response
from svcq.web.problems import MEDIA_TYPE
from svcq.web.routes import Asked, Route
from svcq.web.schemas import SCHEMAS, ref

PATH = f"{PREFIX}/openapi.json"

_NAMED_IN_PATHS: dict[str, Schema] = {
    "job": {"type": "string", "minLength": 1, "description": "an id or a name"},
    "worker": {"type": "integer", "minimum": 1},
}
_NAME: Schema = {"type": "string", "minLength": 1}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "the same request with the same key, within a day, adds nothing again",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
_RESUME = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "the id of the last event that was seen",
    "schema": {"type": "string", "pattern": "^[0-9:]*$"},
}
_ERRORS = {
    "400": "the request cannot be read",
    "401": "nobody is let in without a token",
    "403": "not permitted",
    "404": "there is no such thing",
    "405": "not with this method",
    "408": "the body did not arrive in time",
    "409": "the answer is no, for the reason given",
    "413": "the body is too large",
    "415": "the body is not application/json",
    "416": "there are no such bytes",
    "421": "not the name of this server",
    "422": "a value cannot be used as given",
    "429": "too many guesses",
    "503": "the store or the service cannot do it now",
    "507": "the disk is full",
}


def routes() -> list[Route]:
    async def document(_: Asked) -> Response:
        return json_response(_encoded())

    return [Route("GET", PATH, document)]


@cache
def _encoded() -> bytes:
    return encoded(describe())


def describe() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for verb in VERBS:
        _put(paths, verb.method, PREFIX + verb.path, _of_verb(verb))
    for (method, path), operation in _OTHERS.items():
        _put(paths, method, path, operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "svcq",
            "version": __version__,
            "description": "A job queue that a computer runs as a service.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "svcq"},
            },
        },
    }


def _put(
    paths: dict[str, dict[str, Any]], method: str, path: str, operation: dict[str, Any]
) -> None:
    tag = path.removeprefix(PREFIX).split("/")[1]
    named = [
        {"name": name, "in": "path", "required": True, "schema": _NAMED_IN_PATHS.get(name, _NAME)}
        for name in re.findall(r"\{(\w+)\}", path)
    ]
    parameters = [*named, *operation.pop("parameters", ())]
    paths.setdefault(path, {})[method.lower()] = {
        "tags": [tag],
        **operation,
        **({"parameters": parameters} if parameters else {}),
    }


def _of_verb(verb: Verb) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(verb),
        "summary": verb.about,
        "description": f"For a {verb.role.name.lower()}{' who owns it' if verb.own else ''}.",
        "parameters": _in_query(verb.query),
        "responses": _responses(str(verb.status), ref(verb.answers.schema)),
    }
    if verb.body is not None:
        operation["requestBody"] = _body(
            ref(verb.rest)
            if verb.rest
            else {
                "type": "object",
                "properties": dict(verb.body),
                "additionalProperties": False,
                **({"required": list(verb.required)} if verb.required else {}),
            },
            required=bool(verb.required),
        )
    return operation


def _operation_id(verb: Verb) -> str:
    same = [other for other in VERBS if other.name == verb.name]
    return verb.name if len(same) == 1 else f"{verb.name}_{same.index(verb) + 1}"


def _in_query(query: Mapping[str, Schema]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "query",
            "schema": schema,
            **({"style": "form", "explode": False} if schema.get("type") == "array" else {}),
        }
        for name, schema in query.items()
    ]


def _body(schema: Schema, *, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _responses(
    status: str, schema: Schema | None, kind: str = "application/json", **more: Any
) -> dict[str, Any]:
    content = {} if schema is None else {"content": {kind: {"schema": schema}}}
    problem = {"content": {MEDIA_TYPE: {"schema": ref("Problem")}}}
    errors = {code: {"description": said, **problem} for code, said in _ERRORS.items()}
    return {status: {"description": "done", **content}, **more, **errors}


def _operation(
    name: str,
    about: str,
    responses: dict[str, Any],
    *,
    query: Mapping[str, Schema] | None = None,
    headers: tuple[dict[str, Any], ...] = (),
    body: Schema | None = None,
    needs_body: bool = True,
    public: bool = False,
) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": about,
        "parameters": [*_in_query(query or {}), *headers],
        "responses": responses,
        **({} if body is None else {"requestBody": _body(body, required=needs_body)}),
        **({"security": []} if public else {}),
    }


_EVENTS: Schema = {"type": "string"}
_TEXT: Schema = {"type": "string"}
_STATUS: Schema = {
    "type": "object",
    "properties": {"status": {"type": "string"}},
    "required": ["status"],
}
_RANGE = {
    "name": "Range",
    "in": "header",
    "schema": {"type": "string", "pattern": "^bytes=[0-9]+-$"},
}
_OTHERS: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", f"{PREFIX}/jobs"): _operation(
        "add", "Queue a job; with a unique key that is taken, the job that has it.",
        {"200": _responses("200", ref("Job"))["200"], **_responses("201", ref("Job"))},
        headers=(_KEY,), body=ref("NewJob"),
    ),
    ("POST", f"{PREFIX}/jobs/batch"): _operation(
        "add_many", "Queue many jobs, all or none.", _responses("201", ref("AddedList")),
        headers=(_KEY,), body=ref("NewJobs"),
    ),
    ("POST", f"{PREFIX}/schedules"): _operation(
        "schedule", "Queue a job again and again.", _responses("201", ref("Schedule")),
        body=ref("NewSchedule"),
    ),
    ("GET", f"{PREFIX}/jobs/{{job}}/output"): _operation(
        "output", "What a run has written: all of it, its last lines, or a range of bytes.",
        {"206": {"description": "a part", "content": {"text/plain": {"schema": _TEXT}}},
         **_responses("200", _TEXT, "text/plain")},
        query=output.OUTPUT_QUERY, headers=(_RANGE,),
    ),
    ("GET", f"{PREFIX}/jobs/{{job}}/output/stream"): _operation(
        "follow_output", "What a job writes, as it does, until it has ended.",
        _responses("200", _EVENTS, "text/event-stream"), query=output.FOLLOW_QUERY,
        headers=(_RESUME,),
    ),
    ("GET", f"{PREFIX}/changes"): _operation(
        "changes", "What happened since a change; with `wait`, as soon as something does.",
        _responses("200", ref("Changes")), query=stream.CHANGES_QUERY,
    ),
    ("GET", f"{PREFIX}/changes/last"): _operation(
        "last_change", "The number of the last change.", _responses("200", ref("Number")),
    ),
    ("GET", f"{PREFIX}/jobs/{{job}}/output/place"): _operation(
        "output_place", "How long the output of a run is, and where its last lines begin.",
        _responses("200", ref("OutputPlace")), query=output.PLACE_QUERY,
    ),
    ("GET", f"{PREFIX}/config"): _operation(
        "config", "The settings, and which of them can be changed here.",
        _responses("200", ref("Settings")),
    ),
    ("PATCH", f"{PREFIX}/config"): _operation(
        "change_config", "Change settings; null returns one to its default.",
        _responses("200", ref("Settings")), body=ref("SettingChanges"), needs_body=False,
    ),
    ("GET", f"{PREFIX}/service"): _operation(
        "service", "How the service stands.", _responses("200", ref("Service")),
    ),
    ("POST", f"{PREFIX}/session"): _operation(
        "tell_session", "What a session says of itself: seconds without use, a metered network.",
        _responses("200", ref("Nothing")), needs_body=False,
        body={"type": "object", "properties": session.BODY, "additionalProperties": False},
    ),
    ("POST", f"{PREFIX}/service/drain"): _operation(
        "drain", "Let all workers finish what they hold, or give it back now, and start no others.",
        _responses("200", ref("Service")), needs_body=False,
        body={"type": "object", "properties": {"now": FLAG}, "additionalProperties": False},
    ),
    ("POST", f"{PREFIX}/service/resume"): _operation(
        "resume_service", "Let workers come again.", _responses("200", ref("Service")),
    ),
    ("POST", f"{PREFIX}/service/restart-workers"): _operation(
        "restart_workers", "Replace all workers by new ones, each when it is done.",
        _responses("200", ref("Service")),
    ),
    ("GET", f"{PREFIX}/stream"): _operation(
        "follow", "What happens, as it does.", _responses("200", _EVENTS, "text/event-stream"),
        query=stream.STREAM_QUERY, headers=(_RESUME,),
    ),
    ("POST", f"{PREFIX}/login-codes"): _operation(
        "new_login_code", "A code with which a browser can log in, once, within half a minute.",
        _responses("201", {
            "type": "object", "required": ["code", "url", "seconds"],
            "properties": {"code": _TEXT, "url": _TEXT, "seconds": {"type": "number"}},
        }),
        body={"type": "object", "properties": {"read_only": FLAG, "beyond": FLAG},
              "additionalProperties": False},
        needs_body=False,
    ),
    ("GET", PATH): _operation("document", "This document.", _responses("200", {"type": "object"})),
    ("GET", metrics.PATH): _operation(
        "metrics", "Numbers for Prometheus.", _responses("200", _TEXT, "text/plain"),
    ),
    ("GET", "/health/live"): _operation(
        "live", "Whether the service lives.", _responses("200", _STATUS), public=True
    ),
    ("GET", "/health/ready"): _operation(
        "ready", "Whether the store can be used.", {
            **_responses("200", _STATUS),
            "503": {"description": "not now", "content": {"application/json": {"schema": _STATUS}}},
        }, public=True,
    ),
}  # fmt: skip
