"""The API: each verb of the client as a route."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from svcq.client import Client
from svcq.client.verbs import PREFIX, VERBS, Role, Verb
from svcq.client.wire import VARIABLES
from svcq.environment import masked
from svcq.errors import InvalidInput, NotPermitted, shown
from svcq.web.body import check_known, read_object, read_query
from svcq.web.callers import Caller
from svcq.web.desk import Desk
from svcq.web.problems import Problem
from svcq.web.routes import Asked, Handler, Route

BODY_LIMIT = 8 << 20
_LONG = ("purge", "cleanup", "retry_dead")


def routes(desk: Desk) -> list[Route]:
    return [Route(verb.method, PREFIX + verb.path, _handler(desk, verb)) for verb in VERBS]


def _handler(desk: Desk, verb: Verb) -> Handler:
    where = desk.look if verb.method == "GET" else desk.write
    if verb.name in _LONG:
        where = desk.take_time

    async def handle(asked: Asked) -> Response:
        need(asked.caller, verb.role)
        arguments = {**_path(verb, asked.path), **read_query(asked.request, verb.query)}
        # A page shows what it is sent; a program may need what it once gave. Who may only look is
        # perhaps a dashboard that many see.
        plain = not arguments.pop("masked", True) and asked.caller.by != "cookie"
        plain = plain and asked.caller.may(Role.USER)
        if verb.body is not None:
            given = await read_object(asked.request, BODY_LIMIT)
            _check_body(verb, given, arguments)
            arguments |= given

        def act(client: Client) -> bytes:
            if verb.own:
                need_own(client, asked.caller, arguments)
            result = call(client, asked.caller, verb.name, arguments)
            if verb.answers is VARIABLES and not plain:
                result = masked(result or {})
            return encoded(_answer(verb, result, arguments))

        return json_response(await where(act), verb.status)

    return handle


def _answer(verb: Verb, result: Any, arguments: dict[str, Any]) -> Any:
    said = verb.answers.write(result)
    if verb.name == "list":
        # A page that is full may not be the last.
        full = len(result) == arguments.get("limit", 100)
        said["next"] = result[-1].id if full else None
    return said


def call(client: Client, caller: Caller, verb: str, arguments: dict[str, Any]) -> Any:
    return getattr(client.acting_for(caller.name), verb)(**arguments)


def _path(verb: Verb, named: dict[str, str]) -> dict[str, Any]:
    numbered = "worker" if "worker" in named else "job" if verb.name == "firing_of" else None
    return {
        name: whole_id(value, name) if name == numbered else value for name, value in named.items()
    }


def whole_id(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem(404, f"There is no {what} {shown(text)}: it has a number.")
    return int(text)


def _check_body(verb: Verb, given: dict[str, Any], named: dict[str, Any]) -> None:
    """What the verb itself cannot see: the values are for it to check."""
    assert verb.body is not None
    if verb.rest is None:
        check_known(given, verb.body)
    for name in verb.required:
        if name not in given:
            raise InvalidInput(f"The body has no {name!r}: say it.")
    if verb.rest == "ScheduleChanges" and given.get("options") is not None:
        check_options(given["options"])
    for name, value in given.items():
        if name in named:
            raise InvalidInput(f"The body may not have {name!r}: it stands in the path.")
        if verb.body.get(name, {}).get("type") == "boolean" and not isinstance(value, bool):
            raise InvalidInput(f"The {name} is {shown(value)}: give true or false.")


def check_options(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidInput(f"The options {shown(given)} are not a JSON object: send one.")
    return given


# Who may do what


def need(caller: Caller, role: Role) -> None:
    if caller.may(role):
        return
    if caller.role is Role.READER:
        who = caller.name if caller.by == "peer" else f"This {caller.by}"
        raise NotPermitted(f"{who} may only look here: the owner of the store can allow more.")
    raise NotPermitted(
        f"{caller.name} may steer their own jobs alone: this is for the owner of the store."
    )


def need_own(client: Client, caller: Caller, named: dict[str, Any]) -> None:
    """What belongs to others is not theirs to change, or to look into."""
    if caller.may(Role.ADMIN):
        return
    if "job" in named:
        what, owner = f"Job {named['job']}", client.get(named["job"]).owner
    else:
        what, owner = f"The schedule {named['name']}", client.get_schedule(named["name"]).owner
    if not caller.may_look_into(owner):
        raise not_theirs(what, owner, caller)


def not_theirs(what: str, owner: str | None, caller: Caller) -> NotPermitted:
    return NotPermitted(
        f"{what} belongs to {owner or 'nobody'}, not to {caller.name}: ask them, "
        "or the owner of the store."
    )


def encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def json_response(data: bytes, status: int = 200) -> Response:
    return Response(data, status_code=status, media_type="application/json")
