"""The application: routes behind the guard."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp

from svcq.client.verbs import PREFIX, Role
from svcq.errors import InvalidInput, NotPermitted, shown
from svcq.service.wishes import Wishes
from svcq.web import (
    adding,
    api,
    health,
    metrics,
    openapi,
    output,
    page,
    schedules,
    service,
    session,
    settings,
    stream,
)
from svcq.web.access import Access, Site, cookie_header, cookie_of
from svcq.web.body import check_known, read_object
from svcq.web.desk import Desk
from svcq.web.guard import Guard, headers_of
from svcq.web.hub import Hub
from svcq.web.problems import Problem
from svcq.web.routes import Asked, Route, Routes
from svcq.web.sessions import CODE_LIFE

_SMALL = 4 << 10


def build(
    desk: Desk, hub: Hub, access: Access, wishes: Wishes, say: Callable[[str], None]
) -> ASGIApp:
    streams = stream.Streams()
    routes = [
        *api.routes(desk),
        *adding.routes(desk),
        *schedules.routes(desk),
        *openapi.routes(),
        *stream.routes(desk, hub, streams),
        *output.routes(desk, hub, streams),
        *settings.routes(desk),
        *service.routes(desk, wishes),
        *session.routes(desk),
        *health.routes(desk),
        *metrics.routes(desk),
        *_login_routes(access),
        *page.routes(desk),
    ]
    return Guard(Routes(routes), access, say)


def _login_routes(access: Access) -> list[Route]:
    def _site_of(asked: Asked) -> Site:
        return access.site(secure=asked.request.scope["connection"].scheme == "https")

    async def new_code(asked: Asked) -> Response:
        """For whoever is let in already: what a browser can log in with, once, and soon."""
        said = await read_object(asked.request, _SMALL)
        check_known(said, {"read_only": {}, "beyond": {}})
        for name, value in said.items():
            if not isinstance(value, bool):
                raise InvalidInput(f"{name} is {shown(value)}: give true or false.")
        caller = asked.caller
        if said.get("read_only"):
            caller = caller._replace(role=Role.READER)
        code = access.sessions.new_code(caller)
        url = f"{access.site(secure=said.get('beyond', False)).origin}/login#code={code}"
        data = {"code": code, "url": url, "seconds": CODE_LIFE}
        return api.json_response(api.encoded(data), 201)

    async def log_in(asked: Asked) -> Response:
        site = _site_of(asked)
        if asked.request.headers.get("origin") != site.origin:
            raise Problem(403, "A login must come from svcq's own page.", kind=NotPermitted)
        said = await read_object(asked.request, _SMALL)
        code = said.get("code")
        cookie = access.sessions.log_in(code) if isinstance(code, str) else None
        if cookie is None:
            await access.failures.count()
            raise Problem(
                401, "This code is used up or too old: run svcq open again.", kind=NotPermitted
            )
        return Response(status_code=204, headers={"set-cookie": cookie_header(cookie, site)})

    async def log_out(asked: Asked) -> Response:
        access.sessions.log_out(cookie_of(headers_of(asked.request.scope)))
        return Response(
            status_code=204, headers={"set-cookie": cookie_header("", _site_of(asked), life=0)}
        )

    return [
        Route("POST", f"{PREFIX}/login-codes", new_code),
        Route("POST", "/login", log_in),
        Route("POST", "/logout", log_out),
    ]
