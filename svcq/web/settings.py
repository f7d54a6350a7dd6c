"""The configuration: read, and changed where that can harm nobody.

Where the store is, and who is let in, is for the owner's own hands.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from svcq.client import Client
from svcq.client.verbs import PREFIX, Role
from svcq.config import SETTINGS, set_value, unset_value
from svcq.config.check import checked
from svcq.config.shown import said_values, shown_values
from svcq.errors import ConfigError, InvalidInput, NotPermitted, shown
from svcq.web.api import encoded, json_response, need
from svcq.web.body import read_object
from svcq.web.desk import Desk
from svcq.web.routes import Asked, Route

_SAFE_SECTIONS = ("jobs", "queues", "retention", "workers", "clock", "tray")
_SAFE = ("queue",)
_LIMIT = 64 << 10


def routes(desk: Desk) -> list[Route]:
    async def look(_: Asked) -> Response:
        return json_response(encoded(await desk.look(_shown)))

    async def change(asked: Asked) -> Response:
        need(asked.caller, Role.ADMIN)
        given = await read_object(asked.request, _LIMIT)

        def act(client: Client) -> Any:
            for key, value in given.items():
                _check(key, value)
            for key, value in given.items():
                home = client.config.home
                unset_value(home, key) if value is None else set_value(home, key, str(value))
            return _shown(client)

        return json_response(encoded(await desk.write(act)))

    return [Route("GET", f"{PREFIX}/config", look), Route("PATCH", f"{PREFIX}/config", change)]


def _shown(client: Client) -> dict[str, Any]:
    home = client.config.home
    said = said_values(home)
    return {
        "settings": {
            key: {
                "value": value,
                "default": SETTINGS[key].default,
                "set": key in said,
                "about": SETTINGS[key].about,
                "allowed": SETTINGS[key].kind.allowed,
                "writable": is_safe(key),
            }
            for key, value in shown_values(home).items()
        }
    }


def _check(key: str, value: Any) -> None:
    if key not in SETTINGS:
        raise ConfigError(f"There is no setting {shown(key)}: GET /api/v1/config lists them.")
    if not is_safe(key):
        raise NotPermitted(
            f"The setting {key} cannot be changed from here: use svcq config set, as the owner."
        )
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidInput(f"The setting {key} is {shown(value)}: give text or a number.")
    checked(key, value, "the request")


def is_safe(key: str) -> bool:
    return key in _SAFE or key.partition(".")[0] in _SAFE_SECTIONS
