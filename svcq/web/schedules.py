"""Adding schedules for someone, in place of nobody else's. The other verbs are in the table."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from svcq.client import Client
from svcq.client.verbs import PREFIX, Role
from svcq.client.wire import SCHEDULE
from svcq.errors import NotFound
from svcq.policy import read_options
from svcq.web.adding import at_home
from svcq.web.api import BODY_LIMIT, check_options, encoded, json_response, need, not_theirs
from svcq.web.body import read_object
from svcq.web.callers import Caller
from svcq.web.desk import Desk
from svcq.web.routes import Asked, Route


def routes(desk: Desk) -> list[Route]:
    return [Route("POST", f"{PREFIX}/schedules", partial(_schedule, desk))]


async def _schedule(desk: Desk, asked: Asked) -> Response:
    need(asked.caller, Role.USER)
    said = await read_object(asked.request, BODY_LIMIT)
    name, what = said.pop("name", None), said.pop("command", None)
    said = {key: value for key, value in said.items() if value is not None}
    if "options" in said:
        said["options"] = read_options(check_options(said["options"]))

    def act(client: Client) -> bytes:
        if said.get("replace") is True:
            _need_own(client, asked.caller, name)
        mine = client.acting_for(asked.caller.name)
        made = mine.schedule(name, what, **at_home(said) if what is not None else said)
        return encoded(SCHEDULE.write(made))

    return json_response(await desk.write(act), 201)


def _need_own(client: Client, caller: Caller, name: Any) -> None:
    if caller.may(Role.ADMIN):
        return
    try:
        owner = client.get_schedule(name).owner
    except NotFound:
        return
    if owner != caller.name:
        raise not_theirs(f"The schedule {name}", owner, caller)
