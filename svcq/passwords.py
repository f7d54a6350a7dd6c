"""The password of a store's address: hidden where people see it, left out where programs get it."""

from __future__ import annotations

MASK = "********"
_NAMES = ("password", "sslpassword")


def hide_password(address: str) -> str:
    return _with(address, MASK)


def strip_password(address: str) -> str:
    return _with(address, None)


def _with(address: str, instead: str | None) -> str:
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    rest, asked, query = rest.partition("?")
    user, at, place = rest.rpartition("@")
    name, colon, _ = user.partition(":")
    if colon:
        user = name if instead is None else f"{name}:{instead}"
    said = []
    for part in query.split("&"):
        key, equals, _ = part.partition("=")
        if equals and key.lower() in _NAMES:
            if instead is not None:
                said.append(f"{key}={instead}")
        else:
            said.append(part)
    query = "&".join(said)
    return f"{scheme}://{user}{at}{place}{asked if query else ''}{query}"
