"""The service itself: how it stands, and what its workers are to do."""

from __future__ import annotations

import os
import time
from typing import Any

from starlette.responses import Response

from svcq.client import Client
from svcq.client.verbs import FLAG, PREFIX, Role
from svcq.errors import InvalidInput, shown
from svcq.service.wishes import Wishes
from svcq.times import iso
from svcq.version import __version__
from svcq.web.api import encoded, json_response, need
from svcq.web.body import check_known, read_object
from svcq.web.callers import Caller
from svcq.web.desk import Desk
from svcq.web.routes import Asked, Route

_SMALL = 4 << 10


def routes(desk: Desk, wishes: Wishes) -> list[Route]:
    began = round(time.time() * 1000)

    async def stands(caller: Caller) -> Response:
        def look(client: Client) -> dict[str, Any]:
            return {
                "version": __version__,
                "pid": os.getpid(),
                "started_at": iso(began),
                "workers": [worker.as_json() for worker in client.workers()],
                "clock": client.clock().as_json(),
                "resting": bool(wishes.rest),
                "caller": {"name": caller.name, "role": caller.role.name.lower()},
            }

        return json_response(encoded(await desk.look(look)))

    async def look(asked: Asked) -> Response:
        return await stands(asked.caller)

    async def drain(asked: Asked) -> Response:
        need(asked.caller, Role.ADMIN)
        said = await read_object(asked.request, _SMALL)
        check_known(said, {"now": FLAG})
        now = said.get("now", False)
        if not isinstance(now, bool):
            raise InvalidInput(f"now is {shown(now)}: give true or false.")
        wishes.rest = "now" if now else "drain"
        return await stands(asked.caller)

    async def resume(asked: Asked) -> Response:
        need(asked.caller, Role.ADMIN)
        wishes.rest = ""
        return await stands(asked.caller)

    async def restart_workers(asked: Asked) -> Response:
        need(asked.caller, Role.ADMIN)
        wishes.ask_anew()
        return await stands(asked.caller)

    return [
        Route("GET", f"{PREFIX}/service", look),
        Route("POST", f"{PREFIX}/service/drain", drain),
        Route("POST", f"{PREFIX}/service/resume", resume),
        Route("POST", f"{PREFIX}/service/restart-workers", restart_workers),
    ]
