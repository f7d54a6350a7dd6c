"""The page: one template a view, drawn on the server. Its scripts call the API for what a person
clicks, and ask for the view anew when the stream tells that something happened."""

from __future__ import annotations

import mimetypes
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from svcq.client import Client
from svcq.client.verbs import Role
from svcq.errors import NotFound, SvcqError
from svcq.times import format_duration
from svcq.version import __version__
from svcq.web import views
from svcq.web.desk import Desk
from svcq.web.problems import status_of
from svcq.web.routes import Asked, Handler, Route

_HERE = Path(__file__).parent
_KEPT_FOR = "max-age=3600"


def routes(desk: Desk) -> list[Route]:
    return [
        *(Route("GET", path, _handler(desk, path)) for path in views.VIEWS),
        Route("GET", "/login", _log_in),
        *_static_routes(),
    ]


def _handler(desk: Desk, path: str) -> Handler:
    async def handle(asked: Asked) -> Response:
        return await desk.look(lambda client: _draw(client, path, asked))

    return handle


def _draw(client: Client, path: str, asked: Asked) -> Response:
    """A view; only its inside where the page asks for it again."""
    request = asked.request
    name, look = views.VIEWS[path]
    status = 200
    try:
        shown = look(client, {**request.query_params, **asked.path}, asked.caller)
    except SvcqError as error:
        name, status = "problem", status_of(error)
        shown = {"title": "Not here", "problem": str(error)}
    text = (
        _environment()
        .get_template(f"{name}.html")
        .render(
            **{**_frame(client, path), **shown},
            frame="part.html" if request.headers.get("hx-request") == "true" else "base.html",
            may=asked.caller.may_steer,
            may_add=asked.caller.may(Role.USER),
            may_all=asked.caller.may(Role.ADMIN),
        )
    )
    # Going back must not show, as if it were a page, the part that was last asked for.
    return HTMLResponse(text, status, headers={"vary": "hx-request"})


def _frame(client: Client, path: str) -> dict[str, Any]:
    """What stands around every view."""
    counts = client.counts()
    return {
        "here": "/jobs" if path.startswith("/jobs") else path,
        "views": [
            ("/", "Now", "now", _short(counts["processing"]), False),
            ("/jobs", "Jobs", "jobs", "", False),
            ("/queues", "Queues", "queues", "", False),
            ("/schedules", "Schedules", "schedules", "", False),
            ("/workers", "Workers", "workers", "", False),
            ("/letters", "Dead", "letters", _short(counts["dead"]), True),
            ("/activity", "Activity", "activity", "", False),
        ],
        "queue_names": [queue.name for queue in client.queues()],
        "default_queue": client.config.queue,
        "folder": os.path.expanduser("~"),
        "machine": socket.gethostname(),
        "version": __version__,
    }


async def _log_in(_: Asked) -> Response:
    return HTMLResponse(_environment().get_template("login.html").render())


def _static_routes() -> Iterator[Route]:
    for folder in ("", "vendor/"):
        # Read once: what a request names is looked up, and never becomes a path.
        place = _HERE / "static" / folder
        files = {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()}
        yield Route("GET", f"/static/{folder}{{file}}", _static(files))


def _static(files: dict[str, bytes]) -> Handler:
    async def handle(asked: Asked) -> Response:
        name = asked.path["file"]
        if name not in files:
            raise NotFound(f"There is no file {name[:100]!r}.")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(files[name], media_type=kind, headers={"cache-control": _KEPT_FOR})

    return handle


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("svcq.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["iso"] = _iso
    made.filters["thousands"] = lambda n: f"{n:,}"
    made.filters["span"] = lambda s: "" if s is None else format_duration(round(s * 1000))
    made.tests["moment"] = lambda value: isinstance(value, datetime)
    return made


def _iso(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds")


def _short(n: int) -> str:
    """A number for a small place."""
    if n < 1000:
        return str(n or "")
    return f"{n // 1000}k" if n < 1_000_000 else f"{n // 1_000_000}M"
