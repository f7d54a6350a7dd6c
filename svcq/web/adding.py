"""Adding jobs for someone: in their name, once, and in place of nobody else's."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svcq.client import Client
from svcq.client.verbs import PREFIX, Role
from svcq.client.wire import ADDED, JOB
from svcq.environment import capture
from svcq.errors import InvalidInput, shown
from svcq.policy import NewJob
from svcq.store import Added
from svcq.store.requests import Request as Once
from svcq.web.api import BODY_LIMIT, encoded, json_response, need, not_theirs
from svcq.web.body import check_known, parse_object, read_body
from svcq.web.callers import Caller
from svcq.web.desk import Desk
from svcq.web.problems import Problem
from svcq.web.routes import Asked, Route
from svcq.words import new_job

MOST_AT_ONCE = 10_000
REPLAYED = "idempotency-replayed"


def routes(desk: Desk) -> list[Route]:
    async def add_one(asked: Asked) -> Response:
        given, once = await _read(asked)

        def act(client: Client) -> tuple[bytes, bool, bool]:
            mine = client.acting_for(asked.caller.name)
            new = _new(mine, asked.caller, given)
            if once is None:
                (added,) = mine.add([new])
                return encoded(JOB.write(mine.as_job(added, new))), added.created, False
            (added,), replayed = mine.store.enqueue_once([new], once)
            return encoded(JOB.write(mine.get(added.id))), added.created, replayed

        data, created, replayed = await desk.write(act)
        return _answer(data, 201 if created else 200, replayed)

    async def add_many(asked: Asked) -> Response:
        body, once = await _read(asked)
        check_known(body, {"jobs": {}})
        given = body.get("jobs")
        if not isinstance(given, list) or not 1 <= len(given) <= MOST_AT_ONCE:
            raise InvalidInput(
                f"The jobs are not a list of 1 to {MOST_AT_ONCE:,} objects: send one."
            )

        def act(client: Client) -> tuple[list[Added], bool]:
            mine = client.acting_for(asked.caller.name)
            new = [
                _placed(lambda one=one: _new(mine, asked.caller, one), n)  # type: ignore[misc]
                for n, one in enumerate(given, 1)
            ]
            return (mine.add(new), False) if once is None else mine.store.enqueue_once(new, once)

        added, replayed = await desk.write(act)
        data = encoded({"jobs": [ADDED.write(one) for one in added]})
        return _answer(data, 201, replayed)

    return [
        Route("POST", f"{PREFIX}/jobs", add_one),
        Route("POST", f"{PREFIX}/jobs/batch", add_many),
    ]


async def _read(asked: Asked) -> tuple[dict[str, Any], Once | None]:
    need(asked.caller, Role.USER)
    data = await read_body(asked.request, BODY_LIMIT)
    return parse_object(asked.request, data), _once(asked.request, asked.caller, data)


def _once(request: Request, caller: Caller, data: bytes) -> Once | None:
    """The key by which the caller would know this request again, if it has one."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    key = key.strip().strip('"')
    if not 1 <= len(key) <= 255 or not key.isprintable():
        raise Problem(400, f"The Idempotency-Key {shown(key)} is not 1 to 255 plain characters.")
    path = request.url.path.encode()
    digest = hashlib.blake2b(path + b"\n" + data, digest_size=16).hexdigest()
    return Once(caller.name or "", key, digest)


def _answer(data: bytes, status: int, replayed: bool) -> Response:
    response = json_response(data, status)
    if replayed:
        response.headers[REPLAYED] = "true"
    return response


def _new(client: Client, caller: Caller, given: Any) -> NewJob:
    base = None
    if isinstance(given, dict) and "command" in given:
        given = at_home(given)
        if given.get("env"):
            base = capture().variables
    new = new_job(given, client, base)
    _check_replaced(client, caller, new)
    return new


def at_home(given: dict[str, Any]) -> dict[str, Any]:
    """Where the service stands is no place for a command that names none."""
    cwd = given.get("cwd")
    if cwd is None:
        return {**given, "cwd": os.path.expanduser("~")}
    if isinstance(cwd, str) and not os.path.isabs(cwd):
        raise InvalidInput(f"The directory {shown(cwd)} is not a whole path: give one from / on.")
    return given


def _check_replaced(client: Client, caller: Caller, new: NewJob) -> None:
    """Others' jobs are not theirs to end by a unique key. All that users of the service write is
    written by one clerk, one after the other: none of them comes between this look and that."""
    plan = new.plan
    if plan.on_duplicate != "replace" or plan.unique_key is None or caller.may(Role.ADMIN):
        return
    holder = client.store.holder_of(plan.queue, plan.unique_key)
    owner = None if holder is None else client.get(holder).owner
    if holder is not None and owner != caller.name:
        raise not_theirs(f"Job {holder}, which has the unique key,", owner, caller)


def _placed(make: Callable[[], NewJob], n: int) -> NewJob:
    try:
        return make()
    except InvalidInput as error:
        raise InvalidInput(f"Job {n} of the list: {error} Nothing was queued.") from None
