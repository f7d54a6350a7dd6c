"""The arguments of a request: from its query and its body, in the types that the verb declares."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from svcq.client.verbs import Schema
from svcq.errors import InvalidInput, shown
from svcq.web.problems import Problem

BODY_PATIENCE = 10.0  # seconds for more of a body to arrive
BODY_LONGEST = 120.0  # seconds for all of it


async def read_body(request: Request, limit: int) -> bytes:
    """All of it, if it comes soon and is not too large."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    data = bytearray()
    stream = aiter(request.stream())
    try:
        async with asyncio.timeout(BODY_LONGEST):
            while True:
                async with asyncio.timeout(BODY_PATIENCE):
                    chunk = await anext(stream, None)
                if chunk is None:
                    break
                data += chunk
                if len(data) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise Problem(408, f"Nothing more of the body came for {BODY_PATIENCE:g} s.") from None
    return bytes(data)


def _too_large(limit: int) -> Problem:
    return Problem(413, f"The body is over the limit of {limit:,} bytes: send less at a time.")


async def read_object(request: Request, limit: int) -> dict[str, Any]:
    return parse_object(request, await read_body(request, limit))


def parse_object(request: Request, data: bytes) -> dict[str, Any]:
    """The JSON object of a body; an empty one where there is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if data and kind != "application/json":
        # A form of another page can send other types without asking first.
        raise Problem(415, f"The body is {kind[:100]!r}: send application/json.")
    given = parse_json(data) if data else {}
    if not isinstance(given, dict):
        raise InvalidInput(f"The body {shown(given)} is not a JSON object: send one.")
    return given


def parse_json(data: bytes) -> Any:
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise Problem(400, f"The body is not UTF-8 (byte {error.start}): encode it so.") from None
    except RecursionError:
        raise Problem(400, "The body is nested too deeply: send plain values.") from None
    except ValueError as error:
        raise Problem(400, f"The body is not JSON ({str(error)[:200]}).") from None


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def read_query(request: Request, known: Mapping[str, Schema]) -> dict[str, Any]:
    given = request.query_params
    said: dict[str, Any] = {}
    for name in given:
        if name not in known:
            hint = ", ".join(known) or "none"
            raise InvalidInput(f"There is no parameter {shown(name)} here: there is {hint}.")
        values = given.getlist(name)
        if known[name].get("type") == "array":
            said[name] = [word for value in values for word in value.split(",")]
        elif len(values) > 1:
            raise InvalidInput(f"The parameter {name} is given twice: give it once.")
        else:
            said[name] = _typed(name, values[0], known[name])
    return said


def _typed(name: str, text: str, schema: Schema) -> Any:
    match schema.get("type"):
        case "integer":
            return _whole(name, text, schema)
        case "boolean":
            if text not in ("true", "false"):
                raise InvalidInput(f"The parameter {name} is {shown(text)}: give true or false.")
            return text == "true"
    if "enum" in schema and text not in schema["enum"]:
        raise InvalidInput(
            f"The parameter {name} is {shown(text)}: give {' or '.join(schema['enum'])}."
        )
    return text


def _whole(name: str, text: str, schema: Schema) -> int:
    low, high = schema["minimum"], schema["maximum"]
    digits = text.removeprefix("-")
    if not (
        digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high
    ):
        raise InvalidInput(
            f"The parameter {name} is {shown(text)}: give a whole number from {low:,} to {high:,}."
        )
    return int(text)


def check_known(given: Mapping[str, Any], known: Mapping[str, Schema]) -> None:
    for name in given:
        if name not in known:
            hint = ", ".join(known) or "nothing"
            raise InvalidInput(f"The body may not have {shown(name)}: it may have {hint}.")
