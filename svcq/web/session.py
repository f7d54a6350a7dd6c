"""What the session of someone at this machine says of itself, for conditions of jobs."""

from __future__ import annotations

from starlette.responses import Response

from svcq.client import Client
from svcq.client.verbs import PREFIX, Role, Schema
from svcq.errors import InvalidInput, shown
from svcq.host import sessions
from svcq.web.api import encoded, json_response, need
from svcq.web.body import check_known, read_object
from svcq.web.desk import Desk
from svcq.web.routes import Asked, Route

_SMALL = 4 << 10
_LONGEST_IDLE = 10 * 365 * 86400
BODY: dict[str, Schema] = {
    "idle": {"type": ["number", "null"], "minimum": 0, "maximum": _LONGEST_IDLE},
    "metered": {"type": ["boolean", "null"]},
}


def routes(desk: Desk) -> list[Route]:
    async def hear(asked: Asked) -> Response:
        need(asked.caller, Role.USER)
        said = await read_object(asked.request, _SMALL)
        check_known(said, BODY)
        idle, metered = said.get("idle"), said.get("metered")
        number = isinstance(idle, int | float) and not isinstance(idle, bool)
        if idle is not None and not (number and 0 <= idle <= _LONGEST_IDLE):
            raise InvalidInput(f"The idle {shown(idle)} is no time: give seconds, or null.")
        if metered is not None and not isinstance(metered, bool):
            raise InvalidInput(f"The metered {shown(metered)}: give true, false or null.")
        who = asked.caller.name or "nobody"

        def keep(client: Client) -> None:
            sessions.note(str(client.config.home), who, idle=idle, metered=metered)

        await desk.look(keep)
        return json_response(encoded({}))

    return [Route("POST", f"{PREFIX}/session", hear)]
