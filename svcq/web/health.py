"""Whether the service lives, and whether it can do its work. Neither says anything about jobs."""

from __future__ import annotations

from starlette.responses import Response

from svcq.errors import SvcqError
from svcq.web.api import encoded, json_response
from svcq.web.desk import Desk
from svcq.web.routes import Asked, Route


def routes(desk: Desk) -> list[Route]:
    async def live(_: Asked) -> Response:
        return json_response(encoded({"status": "ok"}))

    async def ready(_: Asked) -> Response:
        try:
            await desk.look(lambda client: client.counts())
        except SvcqError:
            return json_response(encoded({"status": "the store cannot be used"}), 503)
        return json_response(encoded({"status": "ok"}))

    return [
        Route("GET", "/health", ready),
        Route("GET", "/health/live", live),
        Route("GET", "/health/ready", ready),
    ]
